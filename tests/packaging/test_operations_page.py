"""The pages for operators have every metric and every command."""

from __future__ import annotations

import argparse
import re
from typing import Final

import pytest

from exactlyonce.cli.arguments import parser
from exactlyonce.telemetry import metrics
from tests.packaging.sources import ROOT

ON_CALL: Final = (ROOT / "docs" / "howto" / "on-call.md").read_text()
COMMANDS: Final = (ROOT / "docs" / "reference" / "commands.md").read_text()


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next heading of its kind or above."""
    level, _, _ = heading.partition(" ")
    _, _, rest = page.partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def commands() -> dict[str, argparse.ArgumentParser]:
    (actions,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    found: dict[str, argparse.ArgumentParser] = actions.choices
    return found


def explained() -> dict[str, str]:
    """Commands of the table, with what they are called with."""
    rows = re.findall(r"^\| `([a-z-]+)([^`]*)` \|", section(COMMANDS, "## Operators' commands"), re.MULTILINE)
    return dict(rows)


def test_every_metric_is_explained_and_no_other() -> None:
    known = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    rows = re.findall(r"^\| `([a-z_.]+)` \|", section(ON_CALL, "## What each metric means"), re.MULTILINE)
    assert sorted(rows) == sorted(known)


def test_every_command_is_explained_and_no_other() -> None:
    assert set(explained()) == set(commands())


@pytest.mark.parametrize("command", commands())
def test_a_command_is_explained_with_its_options_and_places(command: str) -> None:
    actions = [action for action in commands()[command]._actions if action.dest != "help"]
    written = explained()[command]
    assert set(re.findall(r"--[a-z-]+", written)) == {
        action.option_strings[0] for action in actions if action.option_strings
    }
    placed = [action.metavar for action in actions if not action.option_strings]
    assert re.sub(r"\[[^]]*\]|--[a-z-]+(?: [A-Z]+)?", "", written).split() == placed
