"""Every command of the Makefile does something, and says what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
COMMANDS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()  # type: ignore[index]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_recipe_or_parts_and_a_description(command: str) -> None:
    rule = re.search(
        rf"^{command}:(?P<parts>[^#\n]*)(?P<description>## .+)?\n(?P<recipe>\t.+\n)?", MAKEFILE, re.MULTILINE
    )
    assert rule is not None, f"{command} is in .PHONY and has no rule"
    only_set_up = {part for part in rule["parts"].split() if not part.startswith(".make/")} == set()
    assert rule["recipe"] or not only_set_up
    assert rule["description"] or command in {"check", "pytest", "clean", "lock"}
