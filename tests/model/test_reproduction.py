"""The model and the real stack do the same: counterexamples fall in reality too, and what ships walks there as here.

One process of a trace is one production driver with the shipped adapter, the real SDK and a client of its own; the local
Cosmos DB makes the trouble of the trace, and nothing happens but in its order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

import pytest

from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import BEHIND, Begin
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import FindPaid, OpenNumbers
from local_cosmos.inprocess import RunningEmulator
from tests.model.broken_memory import BROKEN_BOOKS, BROKEN_CHORES, BROKEN_MEMORY, OVERWRITES
from tests.model.broken_read_models import ZOO
from tests.model.searches import assert_falls, name_of
from tests.model.walking import OUTBOX_WALKS, played, walked
from tests.model.walking_companions import WALKS
from tests.model.zoo import Broken
from verification.explorers.choice import explorer_of
from verification.explorers.trace import NOBODY, Event, replayed
from verification.reproduction import __main__ as command
from verification.reproduction.careless import CarelessStore, OverwritingStore
from verification.reproduction.reality import emulator_of_the_model
from verification.reproduction.walks import LONGEST
from verification.scenarios import endless
from verification.scenarios.companions import SMALL as SMALL_OF_COMPANIONS
from verification.world.scenario import Scenario

NOT_OF_PROTOCOLS = {
    "what has no book is taken for sent",
    "numbers of others are taken for sent",
    "a book says only how far",
    "a process that begins anew takes the same book",
    "one page, written over",
    "pages are named by their own version",
    "what is too old is published all the same",
}
"""Twins of what the model has in place of drivers, adapters and transports: reality has these as they ship."""
TWINS = [twin for twin in (*BROKEN_MEMORY, *BROKEN_BOOKS, *BROKEN_CHORES) if twin.name not in NOT_OF_PROTOCOLS]


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    """A local Cosmos for traces of the model."""
    with emulator_of_the_model() as running:
        yield running


@pytest.mark.parametrize("twin", [*TWINS, *ZOO], ids=lambda twin: f"{twin.scenario.protocol}, {twin.name}")
async def test_what_falls_in_the_model_falls_in_reality(emulator: RunningEmulator, twin: Broken[Scenario]) -> None:
    report = assert_falls(twin)
    overwrites = twin.chores == OVERWRITES
    store = OverwritingStore if overwrites else CarelessStore
    reproduction = await played(emulator, twin.scenario_with_twin(), report.trace, store)
    assert report.violation is not None
    assert report.violation.partition(":")[0] in reproduction.fallen
    assert [step.said for step in reproduction.steps] == list(report.story)


@pytest.mark.parametrize(("scenario", "seed"), [*OUTBOX_WALKS, *WALKS], ids=name_of)
async def test_what_the_shipped_strategy_does_in_the_model_it_does_in_reality(
    emulator: RunningEmulator, scenario: Scenario, seed: int
) -> None:
    reproduction = await played(emulator, scenario, walked(scenario, seed))
    assert reproduction.fallen == frozenset()


OF_PROCESSES = (Begin, OpenNumbers, FindPaid)
"""What a process is asked for itself, unless it has to ask the store for books."""


def names_of_effects(events: list[Event]) -> set[str]:
    """Names of what stores and transports were asked for."""
    return {
        type(event.effect).__name__
        for event in events
        if event.effect is not None and not isinstance(event.effect, OF_PROCESSES)
    }


def test_the_walks_of_the_outbox_meet_every_kind_of_trouble_task_and_request() -> None:
    events = [event for scenario, seed in OUTBOX_WALKS for event in walked(scenario, seed)]
    assert {event.fault for event in events} == {None, "crashes", "unknown", "repeated", "stale", "poisoned"}
    assert {event.task for event in events} == {None, "attempt", "sweep", "settle", "clean", "clean pages"}
    assert names_of_effects(events) == {
        "LoadEntity", "SaveEntity", "HasPages", "FindPages", "FindPagesAbove", "WritePage", "DeletePages", "WriteDown",
        "Stage", "LoadStaged", "DeleteStaged", "Park", "Publish",
    }  # fmt: skip
    late = names_of_effects([event for event in events if event.delayed])
    landed = names_of_effects([event for event in events if event.process == NOBODY])
    assert {"SaveEntity", "WritePage", "WriteDown"} <= late & landed
    assert any(event.reply is BEHIND and getattr(event.effect, "token", None) for event in events)
    first = [item.reply for item in events if isinstance(item.effect, OpenNumbers) and not item.from_memory]
    read = [item.reply for item in events if isinstance(item.effect, FindPaid) and not item.from_memory]
    assert len(set(first)) > 1
    assert any(read)
    said = " ".join(event.said for event in events)
    for happening in ("Twelve hours pass", "The entity is put back", "The pages are lost", "since it is too old"):
        assert happening in said


def test_the_walks_with_companions_meet_every_kind_of_trouble_task_and_request() -> None:
    events = [event for scenario, seed in WALKS for event in walked(scenario, seed)]
    assert {event.fault for event in events} == {None, "crashes", "unknown", "repeated", "stale", "poisoned"}
    assert {event.task for event in events} == {
        None, "attempt", "stumble", "sweep", "settle", "nudge", "replay", "answer", "clean",
    }  # fmt: skip
    assert names_of_effects(events) == {
        "LoadEntity", "LoadCompanions", "FindEntries", "FindNumbered", "FindOwing", "HasCompanions",
        "SaveBatch", "SaveEntity", "ReplaceCompanions", "DeleteCompanions", "Park", "Publish",
    }  # fmt: skip
    late = names_of_effects([event for event in events if event.delayed])
    landed = names_of_effects([event for event in events if event.process == NOBODY])
    assert {"SaveBatch", "ReplaceCompanions", "DeleteCompanions"} <= late & landed
    behind = names_of_effects([event for event in events if event.reply is BEHIND])
    assert {"LoadEntity", "LoadCompanions", "FindEntries"} <= behind


async def test_an_endless_stream_cannot_be_played(emulator: RunningEmulator) -> None:
    with pytest.raises(ValueError, match="no trace with lasting names"):
        await played(emulator, endless.SMALL[0], ())


@pytest.mark.parametrize(
    ("arguments", "falls"),
    [
        (["--twin", "a conflict closes a number"], "nothing_lost"),
        (["--walk", "stale reads", "--seed", "1"], "nothing"),
        (["--twin", "stream, published before the batch"], "no_ghost_output"),
        (["--walk", "co-located: the sweeper", "--seed", "1"], "nothing"),
    ],
)
def test_the_command_prints_what_reality_did(
    arguments: list[str], falls: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments])
    assert command.main() == 0
    assert f"fell in reality: {falls}" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(4))
def test_a_process_keeps_its_letter_when_others_forget_what_they_drafted(seed: int) -> None:
    """The search forgets drafts that are saved in vain; a story must not mix up who has come how far by that."""
    scenario = next(companion for companion in SMALL_OF_COMPANIONS if companion.name == "stream: all faults")
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
