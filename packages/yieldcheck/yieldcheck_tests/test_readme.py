"""The page's quickstart runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_the_quickstart_loses_an_update(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(code, {})  # noqa: S102  # It is ours.
    assert capsys.readouterr().out == printed
