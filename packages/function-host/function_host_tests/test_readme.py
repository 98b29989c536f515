"""The page's test is one, and passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
PAGE = (PACKAGE / "README.md").read_text()


@pytest.mark.acceptance
async def test_the_quickstart_passes() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  # It is ours.
    test = names["test_a_message_is_handled"]
    assert callable(test)
    await test()
