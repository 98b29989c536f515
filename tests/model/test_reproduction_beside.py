"""The model and the real stack do the same where records lie beside the entity: co-located, version stream, resequencer."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import BEHIND
from exactlyonce.effects.entity import LoadEntity
from local_cosmos.inprocess import RunningEmulator
from tests.model.broken_companions import BrokenCompanions
from tests.model.test_broken_companions import ZOO, told
from tests.model.walking import played, walked
from tests.model.walking_companions import WALKS
from verification.checker.search import explore, explorer_of
from verification.explorers.trace import NOBODY, replayed
from verification.reproduction import __main__ as command
from verification.reproduction.careless import CarelessStore
from verification.reproduction.walks import LONGEST
from verification.scenarios.companions import SMALL
from verification.world.scenario import Scenario


@pytest.mark.parametrize("twin", ZOO, ids=told)
async def test_what_falls_in_the_model_falls_in_reality(emulator: RunningEmulator, twin: BrokenCompanions) -> None:
    scenario = twin.scenario_with_twin()
    report = explore(scenario, limit=100_000)
    reproduction = await played(emulator, scenario, report.trace, CarelessStore)
    assert report.violation is not None
    assert report.violation.partition(":")[0] in reproduction.fallen
    assert [step.told for step in reproduction.steps] == list(report.story)


@pytest.mark.parametrize(("scenario", "seed"), WALKS, ids=lambda one: getattr(one, "name", str(one)))
async def test_what_the_shipped_strategy_does_in_the_model_it_does_in_reality(
    emulator: RunningEmulator, scenario: Scenario, seed: int
) -> None:
    reproduction = await played(emulator, scenario, walked(scenario, seed))
    assert reproduction.fallen == frozenset()


def test_the_walks_meet_every_kind_of_trouble_task_and_request() -> None:
    events = [event for scenario, seed in WALKS for event in walked(scenario, seed)]
    assert {event.fault for event in events} == {None, "crashes", "unknown", "repeated", "stale", "poisoned"}
    assert {event.task for event in events} == {
        None, "attempt", "stumble", "mark", "sweep", "settle", "nudge", "replay", "answer", "clean",
    }  # fmt: skip
    assert {type(event.effect).__name__ for event in events if event.effect is not None} == {
        "LoadEntity", "LoadCompanions", "FindEntries", "FindNumbered", "FindOwing", "HasCompanions",
        "SaveBatch", "SaveEntity", "ReplaceCompanions", "DeleteCompanions", "Park", "Publish",
    }  # fmt: skip
    late = {type(event.effect).__name__ for event in events if event.delayed}
    landed = {type(event.effect).__name__ for event in events if event.process == NOBODY}
    assert {"SaveBatch", "ReplaceCompanions", "DeleteCompanions"} <= late & landed
    behind = {type(event.effect).__name__ for event in events if event.reply is BEHIND}
    assert {"LoadEntity", "LoadCompanions", "FindEntries"} <= behind


@pytest.mark.parametrize(
    ("arguments", "falls"),
    [
        (["--twin", "stream, published before the batch"], "no_ghost_output"),
        (["--walk", "co-located: the sweeper", "--seed", "1"], "nothing"),
    ],
)
def test_the_command_tells_what_reality_did(
    arguments: list[str],
    falls: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    story = str(tmp_path / "story.json")
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments, "--save", story])
    assert command.main() == 0
    first = capsys.readouterr().out
    assert f"fell in reality: {falls}" in first
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments, "--story", story])
    assert command.main() == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("seed", range(4))
def test_a_process_keeps_its_letter_when_others_forget_what_they_drafted(seed: int) -> None:
    """The search forgets drafts that are saved in vain; a story must not mix up who has come how far by that."""
    scenario = next(one for one in SMALL if one.name == "stream: all faults")
    random, explorer = Random(seed), explorer_of(scenario)
    states = [explorer.start()]
    while len(states) <= LONGEST and not explorer.is_good_end(states[-1]):
        states.append(random.choice([move.state for move in explorer.moves(states[-1])]))
    loaded: set[int] = set()
    for event in replayed(explorer, states):
        if event.process in loaded and event.effect is not None:
            assert isinstance(event.effect, LoadCompanions), str(event)
        loaded.discard(event.process)
        if isinstance(event.effect, LoadEntity):
            loaded.add(event.process)
