"""Findings are kept as long as they count, and reported in full."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packaging.sources import ROOT
from verification.checker import __main__ as command
from verification.checker.report import Findings, finding, summary
from verification.checker.search import explore
from verification.scenarios import outbox
from verification.scenarios.catalogue import CATALOGUE, Scenarios
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


def test_the_summary_of_all_scenarios_goes_between_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CATALOGUE", {"tiny worlds": Scenarios((outbox.SMALL[3],), ())})
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.BEGIN}old\n{command.END}after\n")
    assert command.main(["--findings", str(tmp_path / "findings.json"), "--docs", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{command.BEGIN}| worlds | ")
    assert "\n| tiny worlds | 1 | " in text
    assert text.endswith(f" | holds |\n{command.END}after\n")


def test_a_page_takes_a_summary_of_all_scenarios_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "tokens", "--docs", str(tmp_path / "page.md")])
    assert "--docs sums up the small scenarios: leave out --only, --large and --list." in capsys.readouterr().err


def test_a_list_explores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ["--only", "several messages in a commit", "--findings", str(tmp_path / "findings.json")]
    assert command.main([*arguments, "--list"]) == 0
    assert "not explored" in capsys.readouterr().out
    command.main(arguments)
    assert command.main([*arguments, "--list"]) == 0
    assert "not explored" not in capsys.readouterr().out


def test_a_summary_has_a_row_for_each_kind_of_world() -> None:
    holds = finding(SCENARIO, explore(SCENARIO, liveness=True), 0.5)
    cut = finding(SCENARIO, explore(SCENARIO, limit=3), 0.5)
    states = holds.states + cut.states
    row = f"| tiny worlds | 2 | {states} | {holds.states} | holds, holds so far |"
    assert summary({"tiny worlds": [holds, cut]}).splitlines()[2:] == [row]


def test_the_page_has_a_row_for_each_kind_of_world() -> None:
    text = (ROOT / "docs" / "model-checking.md").read_text()
    _, _, table = text.partition(command.BEGIN)
    for kind, scenarios in CATALOGUE.items():
        assert f"\n| {kind} | {len(scenarios.small)} | " in table
