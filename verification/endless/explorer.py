"""The endless stream: messages keep coming, faults never run out, and yet the states are finitely many.

A finished message that will not come back is retired, and a new one takes its place. What distinguishes retired messages only
is forgotten, and the rest gets canonical names (`names`). Why no behaviour is lost by that is argued in
docs/model-checking.md, and tested by comparing with bounded runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from exactlyonce.drivers.book import Shelf
from exactlyonce.effects.effect import BEHIND, Begun
from exactlyonce.effects.entity import Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import FindPaid
from exactlyonce.values.envelope import message_hash
from verification.endless.names import NOW, OLDEST, Naming
from verification.endless.renaming import names_of
from verification.explorers.ages import AgedExplorer
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.world.answers import STALE, World
from verification.world.judge import Commit
from verification.world.outbox_handler import key_of_number
from verification.world.scenario import AT, PLACES, TICK, Scenario
from verification.world.store import NOW as WRITTEN
from verification.world.store import Entity, Store, Version
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer, Writes

FREE: Final = -1
"""What the queues say of a place in the stream where no message is."""


class Curious(Shelf):
    """One that reads the books of all that owe. What ships does so only where three owe, retired messages included."""

    def compare(self, effect: FindPaid, now: datetime) -> tuple[str, ...]:
        return super().compare(replace(effect, needed=effect.transactions), now)


class EndlessExplorer(Explorer):
    """Explores a stream: `copies` of the scenario says how many copies of each message there may be at a time."""

    shelf: type[Shelf] = Curious

    def __init__(self, scenario: Scenario) -> None:
        _require_possible(scenario)
        scenario = replace(scenario, chores=replace(scenario.chores, shelf=self.shelf))
        # A worker's name is made of its replies, so situations that differ by them stay apart.
        super().__init__(scenario, world=EndlessWorld(scenario), workers=Workers(scenario, merge=False))
        self.naming = self._naming()

    def _naming(self) -> Naming:
        return Naming(self.scenario, self.world.stores, self.workers, OLDEST + 1 if self.scenario.ages else 1)

    def start(self) -> State:
        """No message has come."""
        store, queue, *rest = super().start()
        store = self.world.stores.changed(store, now=NOW if self.scenario.ages else 0)
        return (store, (FREE,) * len(queue), *rest)  # type: ignore[return-value]

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state, each state by its canonical name."""
        for move in super().moves(state):
            yield move._replace(state=self.naming.canonical(move.state))

    def is_good_end(self, state: State) -> bool:
        """Every message that came is acknowledged, and nobody is at work."""
        _, queue, workers, _, _ = state
        return max(queue) <= 0 and all(worker.situation is None for worker in workers)

    def _happenings(self, state: State) -> Iterator[Move]:
        """A message comes, comes again, or will not come again."""
        yield from super()._happenings(state)
        store, queue, workers, delayed, left = state
        for number in self._free(queue, store.now):
            yield _happening(state, number, 1, f"{key_of_number(number)} arrives")
        for number, copies in enumerate(queue):
            if copies < 0:
                continue
            key = key_of_number(number)
            held = sum(worker.held.count(number) for worker in workers)
            if copies + held < self.scenario.copies[number]:
                yield _happening(state, number, copies + 1, f"A copy of {key} arrives")
            hash = ("hash", message_hash(key))
            saves = (write for write in delayed if isinstance(write, SaveEntity))
            if not copies and not held and not any(hash in names_of(write) for write in saves):
                retired = (store, (*queue[:number], FREE, *queue[number + 1 :]), workers, delayed, left)
                yield Move(retired, False, None, -1, None, f"No copy of {key} will arrive any more")

    def _free(self, queue: tuple[int, ...], _now: int) -> Iterator[int]:
        """The first free place for a new message of each sort of which there is not one for each place."""
        sorts = self.naming.sorts
        for sort in dict.fromkeys(sorts):
            places = self.naming.places_of((sort, 0))
            live = sum(copies != FREE and sorts[number] == sort for number, copies in enumerate(queue))
            if live < len(places):
                yield next(place for place in places if queue[place] == FREE)


class AgedStream(EndlessExplorer, AgedExplorer):
    """Explores a stream with a clock, which never stops. Each place becomes one for every age."""

    def __init__(self, scenario: Scenario) -> None:
        assert scenario.ages is not None  # noqa: S101
        copies = scenario.copies * (OLDEST + 1)
        slots = len(scenario.copies)
        times = tuple(NOW - number // slots for number in range(len(copies)))
        untimed = frozenset(number for number in range(len(copies)) if number % slots in scenario.ages.untimed)
        ages = replace(scenario.ages, times=times, last=NOW + 1, untimed=untimed)
        super().__init__(replace(scenario, copies=copies, ages=ages))

    def _waits_for_ends(self, state: State) -> bool:
        """Whether somebody is at work whose present is behind by a tick, or would be unless attempts may be late."""
        late = AT + (state[0].now - (not self._ages.prompt)) * TICK
        return any(_begun_at(worker) <= late for worker in state[2])


def _begun_at(worker: Worker) -> datetime:
    """The present of an attempt; long after all if there is none."""
    replies = () if worker.situation is None else worker.situation.replies
    return next((reply.at for reply in replies if isinstance(reply, Begun)), AT + 1_000 * TICK)


class EndlessWorld(World):
    """A world in which only the newest version of the entity has an ETag of its own."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.writes = EndlessWrites(self.stores, scenario, self.judge)

    def _load(self, _effect: LoadEntity, store: Store) -> Iterator[Answer]:
        entity = store.entities[0]
        for version in reversed(entity.versions):
            loaded = Loaded(version.document, version.etag, WRITTEN if version.document else 0, None)
            if version is entity.truth:
                yield Answer(loaded, store, said="loads the newest version")
            else:
                yield Answer(loaded, store, STALE, said="loads an older version", witnessed="stale load")
        if self._stale:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind", witnessed="a replica was behind")
        yield self._unread(store)


class EndlessWrites(Writes):
    """Writes of a stream. The arguments are those of `Writes`."""

    def entity_token(self, _entity: Entity) -> str | None:
        """None: processes of a stream remember no tokens, so every view is allowed to each of them."""
        return None

    def entity_after(self, entity: Entity, write: Commit, _tick: int, *, keeps: bool) -> Entity:
        """The entity with one more version, whose ETag differs from those before until it gets its canonical name."""
        version = Version(write.document, f"{entity.truth.etag}+")
        return self._stores.entity(0, (*(entity.versions if keeps else ()), version))


def stream_of(scenario: Scenario) -> EndlessExplorer:
    """The explorer of an endless scenario."""
    return EndlessExplorer(scenario) if scenario.ages is None else AgedStream(scenario)


def _happening(state: State, number: int, copies: int, said: str) -> Move:
    store, queue, workers, delayed, left = state
    after = (store, (*queue[:number], copies, *queue[number + 1 :]), workers, delayed, left)
    return Move(after, True, None, -1, None, said)


def _require_possible(scenario: Scenario) -> None:
    """Raise `ValueError` for a scenario whose states have no canonical names."""
    possible = {"crashes", "unknown", "repeated", "stale"}
    chores = any(amount for amount, name in zip(scenario.budget.amounts, PLACES, strict=True) if name not in possible)
    more = scenario.tokens or scenario.deletes or scenario.targets or scenario.remembering
    kinds = scenario.requests or scenario.replies or scenario.keeps or scenario.numbers or any(scenario.since)
    changes = scenario.ages and (scenario.ages.before or scenario.ages.behind or scenario.ages.arriving)
    if scenario.group > 1 or scenario.room > 1 or chores or more or kinds or changes:
        raise ValueError(
            f"Scenario {scenario.name!r}: a stream has one message a commit, room for one mark, one entity, and one retention; "
            "no tokens, memories, deletion, requests, calls, kept messages, numbers, times or chores."
        )
