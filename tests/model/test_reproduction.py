"""The model and the real stack do the same: counterexamples fall in reality too, and the shipped strategies walk there as here.

One process of a trace is one production driver with the shipped adapter, the real SDK and a client of its own; the local
Cosmos DB makes the trouble of the trace, and nothing happens but in its order.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exactlyonce.effects.effect import BEHIND
from local_cosmos.inprocess import RunningEmulator
from tests.model.broken_chores import BROKEN_CHORES
from tests.model.broken_strategies import TWINS
from tests.model.walking import SCENARIOS, SEEDS, named, played, walked
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.explorers.explorer import Explorer
from verification.reproduction import __main__ as command
from verification.reproduction.careless import CarelessStore
from verification.reproduction.stories import Story, retraced
from verification.scenarios.outbox import SMALL
from verification.world.scenario import Scenario


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
async def test_what_falls_in_the_model_falls_in_reality(emulator: RunningEmulator, twin: Broken[Scenario]) -> None:
    scenario = twin.scenario_with_twin()
    report = explore(scenario, limit=150_000)
    reproduction = await played(emulator, scenario, report.trace, CarelessStore)
    assert report.violation is not None
    assert report.violation.partition(":")[0] in reproduction.fallen
    assert [step.told for step in reproduction.steps] == list(report.story)


@pytest.mark.parametrize("twin", BROKEN_CHORES, ids=lambda twin: twin.name)
async def test_what_a_chore_breaks_in_the_model_it_breaks_in_reality(
    emulator: RunningEmulator, twin: Broken[Scenario]
) -> None:
    scenario = twin.scenario_with_twin()
    report = explore(scenario)
    reproduction = await played(emulator, scenario, report.trace, CarelessStore)
    assert report.violation is not None
    assert reproduction.fallen == {report.violation.partition(":")[0]}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_what_the_shipped_strategy_does_in_the_model_it_does_in_reality(
    emulator: RunningEmulator, scenario: Scenario
) -> None:
    for seed in SEEDS:
        reproduction = await played(emulator, scenario, walked(scenario, seed))
        assert reproduction.fallen == frozenset()


def test_the_walks_meet_every_kind_of_trouble_task_and_request() -> None:
    events = [event for scenario in SCENARIOS for seed in SEEDS for event in walked(scenario, seed)]
    assert {event.fault for event in events} == {None, "crashes", "unknown", "repeated", "stale", "poisoned"}
    assert {event.task for event in events} == {None, "attempt", "mark", "sweep", "settle", "clean", "forget"}
    assert {type(event.effect).__name__ for event in events if event.effect is not None} == {
        "LoadEntity", "SaveEntity", "FindProcessed", "WriteProcessed", "Stage", "LoadStaged", "DeleteStaged",
        "DeleteProcessed", "Park", "Publish",
    }  # fmt: skip
    late = {type(event.effect).__name__ for event in events if event.delayed}
    assert {"SaveEntity", "WriteProcessed", "Stage"} <= late
    assert any(event.reply is BEHIND and getattr(event.effect, "token", None) for event in events)


async def test_an_endless_stream_cannot_be_played(emulator: RunningEmulator) -> None:
    with pytest.raises(ValueError, match="no trace with lasting names"):
        await played(emulator, replace(SMALL[0], endless=True), ())


def test_a_story_is_kept_and_found_again(tmp_path: Path) -> None:
    twin = named("staged deleted on unknown outcome")
    report = explore(twin.scenario_with_twin())
    Story(twin.name, report.violation, report.story).write(tmp_path / "story.json")
    found = retraced(Explorer(twin.scenario_with_twin()), Story.read(tmp_path / "story.json"))
    assert tuple(map(str, found)) == report.story
    with pytest.raises(LookupError):
        retraced(Explorer(twin.scenario), Story.read(tmp_path / "story.json"))


@pytest.mark.parametrize("arguments", [["--twin", "hits not published"], ["--walk", "stale reads", "--seed", "1"]])
def test_the_command_tells_what_reality_did(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    story = str(tmp_path / "story.json")
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments, "--save", story])
    assert command.main() == 0
    first = capsys.readouterr().out
    assert "fell in reality: " + ("nothing_lost" if "--twin" in arguments else "nothing") in first
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments, "--story", story])
    assert command.main() == 0
    assert capsys.readouterr().out == first
