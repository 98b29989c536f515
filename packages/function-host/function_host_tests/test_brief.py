"""An error takes one line: what it is, what caused it, and the line of the app that raised it."""

import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from function_host.brief import BriefFormatter, brief

SOURCE = """
def fails():
    raise KeyError("tea")

def wraps():
    try:
        fails()
    except KeyError as error:
        raise ValueError("no such item") from error

def hides():
    try:
        fails()
    except KeyError:
        raise ValueError() from None

class Silent(Exception):
    def __str__(self):
        raise SystemExit

def circles():
    first, second = Silent(), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise second

def forgets():
    try:
        fails()
    except KeyError:
        raise ValueError("again")
"""


@pytest.fixture
def app(tmp_path: Path) -> ModuleType:
    path = tmp_path / "orders.py"
    path.write_text(SOURCE)
    module = ModuleType("orders")
    exec(compile(SOURCE, str(path), "exec"), vars(module))  # noqa: S102
    return module


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fails", "KeyError: 'tea' at orders.py:3"),
        ("wraps", "ValueError: no such item (from KeyError: 'tea') at orders.py:3"),
        ("hides", "ValueError at orders.py:15"),
        ("circles", "ValueError: second (from Silent: (its text raised SystemExit)) at orders.py:24"),
        ("forgets", "ValueError: again (from KeyError: 'tea') at orders.py:3"),
    ],
)
def test_an_error_is_told_with_its_innermost_cause_and_place(
    name: str, told: str, app: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises((KeyError, ValueError)) as raised:
        getattr(app, name)()
    assert brief(raised.value, tmp_path) == told
    assert brief(raised.value, tmp_path / "elsewhere") == told.partition(" at ")[0]


def test_a_record_with_an_error_is_one_line(tmp_path: Path) -> None:
    formatter = BriefFormatter("%(asctime)s %(levelname)s %(message)s", tmp_path)
    try:
        raise KeyError("tea")
    except KeyError:
        failed = logging.LogRecord("a", logging.ERROR, "", 1, "%s failed", ("serve",), sys.exc_info())
    assert formatter.format(failed).endswith(" ERROR serve failed: KeyError: 'tea'")
    plain = logging.LogRecord("a", logging.INFO, "", 1, "done", (), None)
    assert BriefFormatter("%(message)s", tmp_path).format(plain) == "done"
