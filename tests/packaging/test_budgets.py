"""Every suite has a budget of processor time, and the report has both side by side."""

from __future__ import annotations

from devtools.budgets import budgets, report
from tests.packaging.sources import ROOT

PAGE = "| suite | CPU s |\n| --- | ---: |\n| `tests/a` | 10 | fast |\n| `packages/b` | 200 | slow |\n\nElse `x` | 3 |\n"


def test_every_suite_has_a_budget() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/__init__.py")}
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "packages").glob("*/pyproject.toml")}
    written = budgets((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert set(written) == (folders | packages) - {"tests/azure"}


def test_what_a_suite_takes_stands_beside_its_budget() -> None:
    taken = {"tests/a": 9.6, "packages/b": 201.2, "tests/c": 5.0}
    _, *rows = report(budgets(PAGE), [], taken.__getitem__)
    assert [row.split(maxsplit=3) for row in rows] == [
        ["tests/a", "10", "10"],
        ["packages/b", "201", "200", "over its budget"],
    ]
    _, row = report(budgets(PAGE), ["tests/c"], taken.__getitem__)
    assert row.split() == ["tests/c", "5", "none"]
