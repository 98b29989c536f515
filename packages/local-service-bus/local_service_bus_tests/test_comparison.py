"""The comparison with Microsoft's emulator: every claim about this one has a test, every claim about the other a source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
PAGE = (PACKAGE / "README.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Compared with Microsoft's emulator\n")[2].partition("\n## ")[0]
TABLE = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", SECTION, re.MULTILINE)]
ROWS = TABLE[2:]


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_claimed_of_this_emulator_is_shown_by_a_test(row: list[str]) -> None:
    if row[1] == "no":
        return
    shown = re.fullmatch(r'\[(?:yes|no: refused)\]\((\S+) "(\w+)"\)', row[1])
    assert shown is not None, f"{row[1]} leads to no test."
    assert shown[2] in names_in(PACKAGE / shown[1])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_claimed_of_the_other_has_a_source(row: list[str]) -> None:
    assert re.fullmatch(r"not (?:known|documented)|\[[^]]+\]\(https://\S+\)", row[2]), row[2]


def test_there_is_a_comparison() -> None:
    assert len(ROWS) > 8
