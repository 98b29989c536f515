"""The endless stream does what a world does that forgets nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import permutations
from random import Random
from typing import Any

import pytest
from verification.scenarios.numbers import LARGE

from exactlyonce import Outbox
from exactlyonce.effects.library import FoundStaged
from tests.model import broken_numbers
from tests.model.broken_strategies import TWINS
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.endless import names as naming
from verification.endless.explorer import FREE, EndlessExplorer
from verification.endless.scopes import found_at_once
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.scenarios.outbox import EVERYTHING
from verification.world.answers import STALE
from verification.world.outbox_handler import key_of_number
from verification.world.scenario import UNLIMITED, Budget, Scenario
from verification.world.writes import Answer

MESSAGES, PLACES, GONE = 3, 2, -2
FAULTS = Budget(crashes=UNLIMITED, unknown=UNLIMITED, repeated=UNLIMITED)
SCENARIOS = (
    Scenario("inline", (1, 1), Outbox(window=1), budget=FAULTS, delayed=1, endless=True),
    Scenario("copies", (2, 2), Outbox(window=1), budget=Budget(crashes=UNLIMITED), endless=True),
    Scenario("staged", (1, 1), Outbox.transaction_id(), budget=FAULTS, delayed=0, endless=True),
    Scenario("a window of two", (1, 1), Outbox(window=2), budget=FAULTS, delayed=0, endless=True),
)
LIMIT = 1_500
WALKS, CALM = 12, 0.8


class Remembering(EndlessExplorer):
    """A stream of so many messages that forgets nothing: each has a place of its own, and every name is for good."""

    def __init__(self, scenario: Scenario, messages: int = MESSAGES) -> None:
        super().__init__(replace(scenario, copies=(scenario.copies[0],) * messages))

    def moves(self, state: State) -> Iterator[Move]:
        for move in Explorer.moves(self, state):
            store, queue, workers, delayed, left = move.state
            owing = store.entities[0].ledger.owing
            remembering = tuple(self.naming.without_past(worker, owing) for worker in workers)
            yield move._replace(state=(store, queue, remembering, delayed, left))

    def _happenings(self, state: State) -> Iterator[Move]:
        before = state[1]
        for move in super()._happenings(state):
            queue = move.state[1]
            arrived = next(number for number, copies in enumerate(queue) if copies != before[number])
            if queue[arrived] == FREE:
                queue = tuple(GONE if number == arrived else copies for number, copies in enumerate(queue))
                store, _, workers, delayed, left = move.state
                yield move._replace(state=(store, queue, workers, delayed, left))
            elif sum(copies >= 0 for copies in queue) <= PLACES:
                yield move


def canonical(stream: EndlessExplorer, state: State) -> State:
    """What the stream calls a state of the remembering world."""
    store, queue, workers, delayed, left = state
    live = tuple(number for number, copies in enumerate(queue) if copies >= 0)
    free = tuple(range(-1, len(live) - PLACES - 1, -1))
    named = []
    for order in permutations((*live, *free)):
        one = stream.naming.named(store, live, workers, delayed, order)
        placed = tuple(queue[number] if number >= 0 else FREE for number in order)
        named.append((placed, one.rank, one))
    placed, _, one = min(named, key=lambda found: found[:2])
    return one.store, placed, one.workers, one.delayed, left


def naming_of(stream: EndlessExplorer) -> Callable[[State], State]:
    """`canonical`, which most states are asked for several times: by each step that leads there."""
    return cache(partial(canonical, stream))


def comes_new(move: Move) -> bool:
    return isinstance(move.what, str) and move.what.endswith("arrives") and not move.what.startswith("A copy")


def explored(world: EndlessExplorer, limit: int) -> Iterator[State]:
    """States of a world, breadth first."""
    waiting = [world.start()]
    seen = set(waiting)
    while waiting and len(seen) < limit:
        state = waiting.pop(0)
        yield state
        for move in world.moves(state):
            if move.state not in seen:
                seen.add(move.state)
                waiting.append(move.state)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_step_of_a_remembering_world_is_a_step_of_the_stream_and_no_other(scenario: Scenario) -> None:
    stream, world = EndlessExplorer(scenario), Remembering(scenario)
    name = naming_of(stream)
    for state in explored(world, LIMIT):
        exhausted = FREE not in state[1]
        steps = {name(move.state) for move in world.moves(state)}
        named = name(state)
        streamed = {move.state for move in stream.moves(named) if not (exhausted and comes_new(move))}
        assert steps - {named} == streamed - {named}  # Forgetting what nothing can come of changes nothing.


def walked(world: Remembering, seed: int, length: int) -> Iterator[State]:
    """States along a random way; steps without a fault are likelier, so that messages come to their end."""
    random = Random(seed)
    state = world.start()
    for _ in range(length):
        yield state
        moves = list(world.moves(state))
        calm = [move for move in moves if not move.fault]
        state = random.choice(calm if calm and random.random() < CALM else moves).state


def finds_old_outputs(move: Move) -> bool:
    return (
        isinstance(move.what, Answer) and isinstance(move.what.reply, FoundStaged) and bool(move.what.reply.documents)
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_along_the_way_of_many_messages_the_stream_misses_no_step(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    collapsed: list[Any] = []

    def counted(*given: Any) -> Any:
        collapsed.append(given)
        return found_at_once(*given)

    monkeypatch.setattr(naming, "found_at_once", counted)
    stream, world = EndlessExplorer(scenario), Remembering(scenario, messages=8)
    name = naming_of(stream)
    forgotten = compared = 0
    for seed in range(WALKS):
        for state in walked(world, seed, length=150):
            named = name(state)
            streamed = {move.state for move in stream.moves(named)}
            missed = [
                move
                for move in world.moves(state)
                if not finds_old_outputs(move) and name(move.state) not in streamed | {named}
            ]
            assert missed == []
            compared += 1
            gone = {key_of_number(number) for number, copies in enumerate(state[1]) if copies == GONE}
            forgotten += any(id.removeprefix("processed:") in gone for id, _ in state[0].libraries[0].writes)
    assert compared == 150 * WALKS
    assert forgotten > compared / 20
    assert collapsed or scenario.name != "inline"


STALE_READS = Scenario("stale", (1, 1), Outbox(window=1), budget=Budget(crashes=2, stale=UNLIMITED), endless=True)


def test_older_versions_differ_in_what_is_loaded_only() -> None:
    stream, world = EndlessExplorer(STALE_READS), Remembering(STALE_READS)
    name = naming_of(stream)
    for state in explored(world, LIMIT):
        exhausted = FREE not in state[1]
        named = name(state)
        moves = {name(move.state): move for move in world.moves(state)}
        streamed = {move.state: move for move in stream.moves(named) if not (exhausted and comes_new(move))}
        for odd in (moves.keys() ^ streamed.keys()) - {named}:
            move = moves[odd] if odd in moves else streamed[odd]
            assert isinstance(move.what, Answer)
            assert move.what.cost == STALE


def test_whatever_older_versions_lead_to_the_stream_reaches() -> None:
    stream, world = EndlessExplorer(STALE_READS), Remembering(STALE_READS)
    reached = {observed(state) for state in explored(stream, 100_000)}
    remembered = {observed(canonical(stream, state)) for state in explored(world, 6 * LIMIT)}
    assert remembered <= reached


def observed(state: State) -> tuple[Any, ...]:
    """What the world holds, the past apart."""
    store, queue, _, delayed, _ = state
    return (store.entities[0].truth, store.libraries, store.committed, store.published, queue, delayed)


def test_a_canonical_name_is_its_own() -> None:
    stream = EndlessExplorer(SCENARIOS[0])
    waiting = [stream.start()]
    for _ in range(500):
        state = waiting.pop(0)
        assert stream.naming.canonical(state) == state
        waiting += [move.state for move in stream.moves(state)]


STREAMING = [twin for twin in TWINS if twin.scenario.group == 1 and twin.scenario.strategy.window is not None]


@pytest.mark.parametrize("twin", STREAMING, ids=lambda twin: twin.name)
def test_a_twin_that_falls_in_a_bounded_world_falls_in_the_stream_by_the_same_property(twin: Broken[Scenario]) -> None:
    scenario = replace(twin.scenario_with_twin(), copies=(2, 1), budget=EVERYTHING, delayed=1, endless=True)
    report = explore(scenario, limit=60_000)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls)


CHANNELS = next(scenario for scenario in LARGE if scenario.endless)
FALLING = (
    "saved without",
    "only the highest",
    "not looked for",
    "in any view",
    "without a document",
    "after the commit",
)
NUMBERED = [twin for twin in broken_numbers.TWINS if any(part in twin.name for part in FALLING)]
"""Of each kind of mistake one. What a document is named after cannot show: here it is named by what it says."""


@pytest.mark.parametrize("twin", NUMBERED, ids=lambda twin: twin.name)
def test_a_twin_of_numbers_falls_in_the_stream_with_channels_by_the_same_property(twin: Broken[Scenario]) -> None:
    stream = replace(CHANNELS, copies=(2,) * 4, workers=1, budget=EVERYTHING)
    report = explore(replace(twin.scenario_with_twin(), **shape_of(stream)), limit=60_000)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls)


def shape_of(stream: Scenario) -> dict[str, Any]:
    """What makes a scenario a stream like this one."""
    names = ("copies", "places", "flight", "workers", "budget", "delayed", "endless")
    return {name: getattr(stream, name) for name in names}


def test_a_canonical_name_with_channels_is_its_own() -> None:
    stream = EndlessExplorer(CHANNELS)
    for state in explored(stream, 1_000):
        assert stream.naming.canonical(state) == state


def test_a_message_with_a_number_takes_the_last_place_of_its_channel_and_channels_are_alike() -> None:
    stream = EndlessExplorer(CHANNELS)
    arrived = {move.state[1] for move in stream.moves(stream.start())}
    assert arrived == {(FREE, FREE, FREE, 1)}


@pytest.mark.parametrize("wrong", [{"delayed": 1}, {"places": (("a", 1), None, ("b", 3), None)}])
def test_what_a_stream_with_channels_cannot_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a stream with channels has no foreign messages"):
        EndlessExplorer(replace(CHANNELS, **wrong))


@pytest.mark.parametrize(
    "wrong", [{"group": 2}, {"marking": True}, {"strategy": Outbox.embedded()}, {"budget": Budget(poisoned=1)}]
)
def test_what_a_stream_cannot_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'inline': a stream has one message a commit"):
        EndlessExplorer(replace(SCENARIOS[0], **wrong))
