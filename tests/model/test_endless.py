"""The endless stream does what a world does that forgets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from exactlyonce.drivers.book import Shelf
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.records.ledger import by_hash
from exactlyonce.values.envelope import message_hash
from tests.model.broken_memory import BROKEN_BOOKS, BROKEN_MEMORY
from tests.model.searches import assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.endless.explorer import FREE, NOW, OLDEST, AgedStream, EndlessExplorer, Kind, Naming, stream_of
from verification.explorers.explorer import PASSES, Explorer
from verification.explorers.moves import Move, State
from verification.scenarios.endless import FAULTS, SMALL
from verification.scenarios.outbox import EVERYTHING
from verification.twins.alterations import replaced
from verification.twins.modules import around
from verification.twins.twin import Twin
from verification.world.outbox import key_of_number
from verification.world.scenario import UNLIMITED, Ages, Budget, Scenario

GONE = -2
STATES_OF_ONE = 26
"""Of a message at a time, without copies and faults."""
PLACES = 2
CALM = 0.8
CRASHES = Budget(crashes=UNLIMITED)


def stream(name: str, copies: int, budget: Budget = FAULTS, **more: Any) -> Scenario:
    return Scenario(name, (copies,) * PLACES, budget=budget, endless=True, **{"delayed": 0, "room": 0, **more})


SAME = (
    stream("two workers", 1),
    stream("copies", 2, CRASHES, workers=1),
    stream("room for one", 2, CRASHES, workers=1, room=1),
    stream("untimed", 1, workers=1, since=(None, None)),
    stream("a delayed write", 1, workers=1, delayed=1),
    stream("expiry", 2, Budget(unknown=UNLIMITED), workers=1, ages=Ages(0, ())),
)
"""Streams that have every step of a world that forgets nothing, and no other."""
STALE = replace(stream("stale reads", 2, replace(FAULTS, stale=UNLIMITED)), copies=(2,))
BOOKS = replace(stream("books", 2, EVERYTHING, workers=1, books=True), copies=(2,))


class Remembering(EndlessExplorer):
    """A stream of so many messages that forgets nothing: each has a place of its own, and every name is for good.

    Where a clock moves, two messages come about at each tick.
    """

    shelf = Shelf

    def __init__(self, scenario: Scenario, messages: int = 3) -> None:
        self._stream, self._places = stream_of(scenario), len(scenario.copies)
        self.times = tuple(NOW + number // PLACES for number in range(messages)) if scenario.ages else ()
        ages = scenario.ages and replace(scenario.ages, times=self.times, last=3 * NOW)
        since = scenario.since[:1] * messages
        EndlessExplorer.__init__(self, replace(scenario, copies=scenario.copies[:1] * messages, ages=ages, since=since))

    def moves(self, state: State) -> Iterator[Move]:
        return Explorer.moves(self, state)

    def _naming(self) -> Naming:
        return Translation(self, self._stream)

    def _happenings(self, state: State) -> Iterator[Move]:
        for move in super()._happenings(state):
            store, queue, *rest = move.state
            gone = tuple(GONE if before >= 0 > now else now for before, now in zip(state[1], queue, strict=True))
            yield move._replace(state=(store, gone, *rest))  # type: ignore[arg-type]

    def _free(self, queue: tuple[int, ...], now: int) -> Iterator[int]:
        if sum(copies >= 0 for copies in queue) < self._places:
            to_come = (number for number, copies in enumerate(queue) if copies == FREE)
            yield from [number for number in to_come if not self.times or self.times[number] == now][:1]


class RememberingAged(Remembering, AgedStream):
    """The same with a clock."""


class Translation(Naming):
    """What a stream calls the states of a remembering world."""

    def __init__(self, world: Remembering, stream: EndlessExplorer) -> None:
        super().__init__(stream.scenario, stream.world.stores, world.workers, OLDEST + 1 if world.times else 1)
        self._named_by = stream.workers
        self._stream, self._times = stream.naming, world.times
        self._ranks = stream.naming._ranks

    def kind_of(self, number: int, ticks: int = 0) -> Kind:
        age = ticks + NOW - self._times[number] if self._times else 0
        return self.sorts[0], min(age, OLDEST)

    def places_of(self, kind: Kind) -> list[int]:
        return self._stream.places_of(kind)


def both(scenario: Scenario, messages: int = 3) -> tuple[EndlessExplorer, Remembering]:
    """A stream, and a world that forgets nothing."""
    world = (RememberingAged if scenario.ages else Remembering)(scenario, messages)
    return world._stream, world


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


def steps(world: Remembering, stream: EndlessExplorer, state: State) -> tuple[set[State], set[State]]:
    """By their names, the states to which a world goes on, and those to which its stream does; but for the state itself.

    New messages do not count where the world has none to come.
    """
    moves = list(world.moves(state))
    named = world.naming.canonical(state)
    waits = not any(map(comes_new, moves))
    streamed = {move.state for move in stream.moves(named) if not (waits and comes_new(move))}
    return {world.naming.canonical(move.state) for move in moves} - {named}, streamed - {named}


@pytest.mark.parametrize("scenario", SAME, ids=name_of)
def test_every_step_of_a_remembering_world_is_a_step_of_the_stream_and_no_other(scenario: Scenario) -> None:
    stream, world = both(scenario)
    for state in explored(world, 600):
        remembered, streamed = steps(world, stream, state)
        assert remembered == streamed  # Forgetting what nothing can come of changes nothing.


def walked(world: Remembering, seed: int, length: int) -> Iterator[State]:
    """States along a random way; steps without a fault are likelier, so that messages come to their end."""
    random = Random(seed)
    state = world.start()
    for _ in range(length):
        yield state
        moves = list(world.moves(state))
        if not moves:
            return
        calm = [move for move in moves if not move.fault and move.what != PASSES]
        state = random.choice(calm if calm and random.random() < CALM else moves).state


@pytest.mark.parametrize("scenario", SAME, ids=name_of)
def test_along_the_way_of_many_messages_the_stream_misses_no_step(scenario: Scenario) -> None:
    stream, world = both(scenario, messages=8)
    forgotten = 0
    for seed in range(3):
        for state in walked(world, seed, length=150):
            remembered, streamed = steps(world, stream, state)
            assert remembered <= streamed
            forgotten += len(world.naming.canonical(state)[0].libraries[0].writes) < len(state[0].libraries[0].writes)
    assert forgotten  # Pages that know retired messages only.


@pytest.mark.parametrize("scenario", [STALE, BOOKS], ids=name_of)
def test_whatever_a_remembering_world_comes_to_the_stream_reaches(scenario: Scenario) -> None:
    stream, world = both(scenario)
    reached = {observed(state) for state in explored(stream, 10_000)}
    assert {observed(world.naming.canonical(state)) for state in explored(world, 1_500)} <= reached


def observed(state: State) -> tuple[Any, ...]:
    """What the world holds and knows of live messages, the past and processes apart."""
    store, queue, *_ = state
    ledger = store.entities[0].ledger
    live = {message_hash(key_of_number(number)) for number, copies in enumerate(queue) if copies >= 0}
    pages = (item.page.marks for item in store.libraries[0].now.values())
    known = frozenset(marks for marks in pages if not live.isdisjoint(by_hash(marks)))
    return (ledger.marks, ledger.complete, ledger.outbox, known, store.committed, store.published, queue)


@pytest.mark.parametrize("scenario", [*SAME, STALE, BOOKS], ids=name_of)
def test_a_canonical_name_is_its_own(scenario: Scenario) -> None:
    stream = stream_of(scenario)
    for state in explored(stream, 400):
        assert stream.naming.canonical(state) == state


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_an_endless_stream_has_finitely_many_states_and_no_property_falls(scenario: Scenario) -> None:
    assert_holds(scenario)


def test_a_ledger_that_forgets_nothing_has_no_end_of_states() -> None:
    nothing_leaves = Twin(patches=[around(drafting.leaving, replaced(lambda *_: None))])
    scenario = replace(SAME[1], copies=(1,), budget=Budget())
    assert explore(scenario, STATES_OF_ONE + 1).complete
    assert not explore(nothing_leaves.within(scenario), 10 * STATES_OF_ONE).complete


FALLING = (
    "complete is not raised",
    "nobody looks for pages",
    "only strictly older messages are looked for",
    "pages are looked for without the token",
    "the token of a page is not carried",
    "the page is not written",
    "the page is written after the commit",
    "an unknown page is taken for written",
    "an unknown save is taken for done",
    "a conflict is taken for a copy",
    "nobody judges",
    "marks are forgotten before the retention",
    "a number is closed before it is sent",
    "a conflict closes a number",
    "an unknown save closes a number",
    "what has no book is taken for sent",
    "numbers of others are taken for sent",
    "entries of others are dropped",
    "what copies owe is not sent",
)
TWINS = [twin for twin in (*BROKEN_MEMORY, *BROKEN_BOOKS) if twin.name in FALLING]


@pytest.mark.parametrize("twin", TWINS, ids=name_of)
def test_a_twin_that_falls_in_a_bounded_world_falls_in_the_stream_by_the_same_property(twin: Broken[Scenario]) -> None:
    small = replace(twin.scenario, room=min(twin.scenario.room, 1), strategy=None)
    broken = replace(twin, scenario=small).scenario_with_twin()
    budget = Budget() if broken.ages else EVERYTHING
    report = explore(replace(broken, copies=(2, 1), since=(), budget=budget, delayed=0, endless=True), 40_000)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls)


@pytest.mark.parametrize("wrong", [{"group": 2}, {"room": 2}, {"tokens": True}, {"budget": Budget(returned=1)}])
def test_what_a_stream_cannot_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'copies': a stream has one message a commit"):
        stream_of(replace(SAME[1], **wrong))
