"""The page on testing: its tests of flows run as they stand, on the shop."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

import exactlyonce
from exactlyonce import Destination, Entity, Outbox, message, testing
from examples.shop import composition, customers, fakes, messages, orders, payments
from tests.packaging.sources import ROOT

HOWTO = ROOT / "docs" / "howto"
PAGE = (HOWTO / "testing-handlers.md").read_text(encoding="utf-8")


def blocks(page: str, word: str) -> list[str]:
    """The Python of a page with this word."""
    return [block for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if word in block]


FLOWS = blocks(PAGE, "PlaceOrder")


class Billed(BaseModel):
    """State of an order on the page about calls."""

    status: str = "new"
    total: int = 80


@message("orders.bill")
class Bill(BaseModel):
    order: str


class Amount(BaseModel):
    amount: int


@pytest.mark.parametrize("block", FLOWS, ids=["App", "explore"])
def test_the_tests_on_the_page_pass(block: str) -> None:
    names: dict[str, Any] = {}
    for module in (composition, messages, customers, orders, payments, fakes, testing):
        names.update(vars(module))
    exec(block, names)  # noqa: S102  # It is the page's.
    shop = fakes.opened()
    (test,) = [item for name, item in names.items() if name.startswith("test_")]
    test(*[shop] * test.__code__.co_argcount)


def test_the_handlers_on_the_page_about_calls_pass_the_test_on_this_one() -> None:
    (handlers,) = blocks((HOWTO / "call-other-services.md").read_text(encoding="utf-8"), "payments = Api(")
    (test,) = blocks(PAGE, "def bank")
    entity = Entity("order", state=Billed, container="orders", strategy=Outbox())
    given = {"orders": entity, "Order": Billed, "Bill": Bill, "Charge": Amount, "os": os, "timedelta": timedelta}
    names: dict[str, Any] = {**vars(exactlyonce), **given}
    exec(handlers.partition("\nonce = ")[0], names)  # noqa: S102  # The page's, without the functions.
    names["payments"] = replace(names["payments"], credentials=None)
    names["DESTINATIONS"] = (Destination("orders", receives=(names["Charged"],)), names["payments"])
    exec(test, names)  # noqa: S102  # As above.
    names["test_an_order_is_charged_once_though_an_answer_is_lost"]()


def test_every_argument_of_explore_is_on_the_page() -> None:
    section = PAGE.split("## Every order, and every fault")[1]
    named = set(re.findall(r"^\| `(\w+)", section, re.MULTILINE))
    code = testing.explore.__code__
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert named == set(arguments) - {"app", "messages"}
