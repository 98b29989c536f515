"""Every suite has a budget of processor time, and the report has both side by side."""

from __future__ import annotations

import subprocess
import sys

import pytest

from devtools.budgets import budgets, report
from tests.packaging.sources import ROOT

PAGE = "| suite | CPU s |\n| --- | ---: |\n| `tests/a` | 10 | fast |\n| `packages/b` | 200 | slow |\n\nElse `x` | 3 |\n"


def test_every_suite_has_a_budget() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/__init__.py")}
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "packages").glob("*/pyproject.toml")}
    written = budgets((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert set(written) == (folders | packages) - {"tests/azure"}


def test_the_time_of_a_suite_stands_next_to_its_budget() -> None:
    taken = {"tests/a": 9.6, "packages/b": 201.2, "tests/c": 5.0}
    _, *rows = report(budgets(PAGE), [], taken.__getitem__)
    assert [row.split(maxsplit=3) for row in rows] == [
        ["tests/a", "10", "10"],
        ["packages/b", "201", "200", "over its budget"],
    ]
    _, row = report(budgets(PAGE), ["tests/c"], taken.__getitem__)
    assert row.split() == ["tests/c", "5", "none"]


BURNING = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
LEAVING = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURNING!r}])"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can wait for the children of others")
def test_processes_count_whose_parents_end_before_them() -> None:
    measuring = f"import sys; from devtools.budgets import spent; print(*spent([sys.executable, '-c', {LEAVING!r}]))"
    ran = subprocess.run([sys.executable, "-c", measuring], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, code = ran.stdout.split()
    assert float(seconds) >= 0.3
    assert code == "0"
