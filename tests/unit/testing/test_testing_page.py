"""The page on testing: its tests of flows run as they stand, on the shop."""

from __future__ import annotations

import re
from typing import Any

import pytest

from exactlyonce import testing
from examples.shop import composition, customers, messages, orders, payments
from tests.packaging.sources import ROOT

PAGE = (ROOT / "docs" / "howto" / "testing-handlers.md").read_text(encoding="utf-8")
FLOWS = [
    block for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "PlaceOrder" in block
]


@pytest.mark.parametrize("block", FLOWS, ids=["App", "explore"])
def test_the_tests_on_the_page_pass(block: str) -> None:
    names: dict[str, Any] = {}
    for module in (composition, messages, customers, orders, payments, testing):
        names.update(vars(module))
    exec(block, names)  # noqa: S102  # It is the page's.
    shop = testing.App(*composition.ENTITIES, destinations=composition.DESTINATIONS)
    (test,) = [one for name, one in names.items() if name.startswith("test_")]
    test(*[shop] * test.__code__.co_argcount)


def test_every_argument_of_explore_is_on_the_page() -> None:
    section = PAGE.split("## Every order, and every fault")[1]
    named = set(re.findall(r"^\| `(\w+)", section, re.MULTILINE))
    code = testing.explore.__code__
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert named == set(arguments) - {"app", "messages"}
