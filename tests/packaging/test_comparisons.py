"""What the stand-ins say of themselves and others: every claim about a stand-in has a test, about another a source."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from tests.packaging.sources import ROOT
from tests.packaging.test_packages import STAND_INS


def rows(name: str) -> list[list[str]]:
    """The cells of the comparison on a stand-in's page, without its heading."""
    page = (ROOT / "packages" / name / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## Compared with ")[2].partition("\n## ")[0]
    lines = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


ROWS: Final = [pytest.param(name, cells, id=f"{name}: {cells[0]}") for name in STAND_INS for cells in rows(name)]


@pytest.mark.parametrize(("name", "cells"), ROWS)
def test_a_claim_about_a_stand_in_is_shown_by_a_test(name: str, cells: list[str]) -> None:
    if cells[1] == "no":
        return
    shown = re.fullmatch(r'\[(?:yes|no: refused)\]\((\S+) "(\w+)"\)', cells[1])
    assert shown is not None, f"{cells[1]} leads to no test."
    tree = ast.parse((ROOT / "packages" / name / shown[1]).read_text(encoding="utf-8"))
    assert shown[2] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("name", "cells"), ROWS)
def test_a_claim_about_others_has_a_source_or_was_measured(name: str, cells: list[str]) -> None:
    _, _, theirs, *measured = cells
    assert re.fullmatch(r"not (?:known|documented)|\[[^]]+\]\(https://\S+\)", theirs), f"{name}: {theirs}"
    assert all(re.match(r"yes|no|not known", cell) for cell in measured), f"{name}: {measured}"


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_is_compared_with_others(name: str) -> None:
    assert len(rows(name)) > 8
