"""Findings are kept as long as they count, and reported in full."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from verification.checker import __main__ as command
from verification.checker.report import Findings, finding, markdown
from verification.checker.search import explore
from verification.world.scenario import Budget, Scenario

SCENARIO = Scenario("tiny", (1,), workers=1)


def test_what_was_found_is_not_looked_for_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "several messages in a commit", "--findings", str(tmp_path / "findings.json")]
    assert command.main(arguments) == 0
    assert "several messages in a commit: holds, " in capsys.readouterr().out
    assert command.main(arguments) == 0
    assert "several messages in a commit: holds (found earlier)" in capsys.readouterr().out


def test_a_finding_on_another_scenario_of_that_name_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    Findings(path).keep(finding(SCENARIO, explore(SCENARIO, liveness=True), 1.0))
    assert Findings(path).of(SCENARIO) is not None
    assert Findings(path).of(replace(SCENARIO, budget=Budget(crashes=1))) is None


def test_a_search_that_was_cut_short_says_so() -> None:
    one = finding(SCENARIO, explore(SCENARIO, limit=3), 1.0)
    assert (one.verdict, one.fell) == ("holds so far", False)


def test_a_scenario_that_shows_less_than_it_says_does_not_hold() -> None:
    scenario = replace(SCENARIO, witnesses=frozenset({"a replica was behind"}))
    one = finding(scenario, explore(scenario, liveness=True), 1.0)
    assert (one.verdict, one.fell) == ("never seen: a replica was behind", True)


def test_a_scenario_for_which_no_explorer_is_imported_is_refused() -> None:
    class Unknown(Scenario):
        pass

    with pytest.raises(TypeError, match="No explorer for Unknown is imported"):
        explore(Unknown("unknown", (1,)))


def test_tables_go_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- table: begin -->\nold\n<!-- table: end -->\nthen\n<!-- companions: begin -->\n<!-- companions: end -->\n"
        "after\n"
    )
    kept = str(tmp_path / "findings.json")
    assert command.main(["--only", "tokens", "--limit", "500", "--findings", kept, "--docs", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- table: begin -->\nA core of")
    outboxes, _, companions = text.partition("<!-- companions: begin -->")
    assert "| processes that remember tokens | " in outboxes
    assert "| stream: tokens remembered | " in companions
    assert text.endswith("|\n<!-- companions: end -->\nafter\n")


def test_a_table_has_a_line_for_each_finding() -> None:
    one = finding(SCENARIO, explore(SCENARIO, liveness=True), 0.5)
    assert markdown([one]).splitlines()[2].startswith("| tiny | ")
