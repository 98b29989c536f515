"""The page about Azure: each of its statements names a source, and a test that exists."""

from __future__ import annotations

import re

from tests.packaging.sources import ROOT

HOST = ROOT / "packages" / "function-host" / "function_host_tests"
SECTIONS = dict(
    re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "azure.md").read_text(), re.DOTALL | re.MULTILINE)
)


def rows(section: str) -> list[list[str]]:
    """Cells of a section's table."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def exists(file: str, name: str | None) -> bool:
    """Whether there is such a test below `tests`."""
    path = ROOT / "tests" / file
    return path.is_file() and (name is None or re.search(rf"def {name}\b", path.read_text()) is not None)


def test_every_statement_about_deployment_and_operation_has_a_test() -> None:
    found = [*rows("Deployment"), *rows("Operation")]
    assert len(found) > 20
    for row in found:
        named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", row[-1])
        assert named, row
        assert [item for item in named if not exists(item[0], item[1] or None)] == []


def test_every_statement_about_the_engine_has_a_test_of_the_function_host() -> None:
    tests = {path.name: path.read_text() for path in HOST.glob("test_*.py")}
    found = rows("The engine")
    assert len(found) > 6
    for row in found:
        (name,) = re.findall(r"`(test_\w+)`(?! of)", row[-1].partition(" in ")[0])
        (file,) = re.findall(r"in `(test_\w+\.py)`", row[-1]) or ["test_contract.py"]
        assert f"def {name}(" in tests[file], name


def test_the_checklist_is_one_page_and_each_step_has_a_command_and_what_is_expected() -> None:
    steps = rows("A first deployment")
    assert [int(step[0]) for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) <= 20
    assert all(len(step) >= 3 and step[-1].strip() for step in steps)
