"""Worlds in which operators send a parked message that is too old as a new one.

The new identity is a message of its own, and its id and its time derive from the same tick. In broken worlds they need not: so
the world has one number for each pair of ticks, and a key for each identity. A new message may be sent until it is a tick old.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from exactlyonce.effects.attempt import Again, Finished, Memory, Work
from exactlyonce.effects.effect import UNKNOWN, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked
from exactlyonce.records.library import ParkedMessage
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, renewed_id
from exactlyonce.values.lifetimes import CLOCK_TOLERANCE, Lifetimes, Retention
from verification.explorers.ages import AgedExplorer
from verification.explorers.choice import explorer_of
from verification.explorers.moves import Move, State
from verification.world.answers import LOST, World
from verification.world.outbox import dated, key_of_number
from verification.world.scenario import AT, PLACES, TICK, Ages, Chores, Scenario, Start, spent
from verification.world.store import Store, entity_ref
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer

RENEWED: Final = "a parked message was sent as a new one"
ONCE_MORE: Final = "a message that was renewed was too old again"
BEFORE: Final = -4
"""Tick of the parked message's time: two days before the clock begins."""
ENTITY: Final = entity_ref(0)
MESSAGE: Final = key_of_number(0)
Identity = tuple[int, int]
"""Ticks that the id and the time of a new message derive from."""
TICK_TO_SEND: Final = Lifetimes(Retention(timedelta(days=2)), timedelta(hours=6) - CLOCK_TOLERANCE / 2)
"""By which a message is sent up to an age of one tick: a day is kept, less what two queues may take."""


@dataclass(frozen=True, slots=True)
class RenewingScenario(Scenario):
    """One world in which a message is parked, and too old for its receiver. Make one with `renewing_of`."""


def renewing_of(name: str, last: int, *seen: str, **more: Any) -> RenewingScenario:
    """A scenario whose clock stops at the tick `last`."""
    times = (BEFORE, *(time for _, time in identities(last)))
    ages = Ages(last, times, TICK_TO_SEND, prompt=True)
    return RenewingScenario(name, (0,) * len(times), ages=ages, witnesses=frozenset((RENEWED, *seen)), **more)


@cache
def identities(last: int) -> tuple[Identity, ...]:
    return (*((0, tick) for tick in range(last + 1)), *((tick, tick) for tick in range(1, last + 1)))


@cache
def renewed(identity: Identity | None) -> Envelope:
    """The message under an identity; as it was parked for None."""
    if identity is None:
        return dated(0, AT + BEFORE * TICK)
    known, tick = identity
    id = renewed_id(ENTITY.key, MESSAGE, AT + known * TICK)
    return replace(dated(0, AT + tick * TICK), id=id)


def sent_as_new(chores: Chores, entity: EntityRef, limit: Any, memory: Memory) -> Step[Any]:
    """What an operator asks for: that the parked message becomes a new one, and that it is sent."""
    made = yield from chores.renew(entity, MESSAGE, limit, memory)
    if isinstance(made, Again) or made.outcome == "not parked":
        return made if isinstance(made, Again) else Finished(memory)
    result = yield from chores.requeue(entity, MESSAGE, "in", limit, made.memory)
    return result


class RenewingWorld(World):
    """Answers effects for one scenario."""

    def __init__(self, scenario: RenewingScenario) -> None:
        super().__init__(scenario)
        assert scenario.ages is not None  # noqa: S101
        self._clock = scenario.ages
        self._envelopes = tuple(renewed(identity) for identity in (None, *identities(scenario.ages.last)))

    def _load_parked(self, effect: LoadParked, store: Store) -> Iterator[Answer]:
        for answer in super()._load_parked(effect, store):
            found = isinstance(answer.reply, FoundParked) and answer.reply.message is not None
            yield replace(answer, reply=replace(answer.reply, now=AT + store.now * TICK)) if found else answer

    def _publish(self, effect: Publish, store: Store) -> Iterator[Answer]:
        envelope = Envelope.read(effect.outputs[0].envelope.text) if effect.outputs[0].destination == "in" else None
        if envelope is None:
            yield from super()._publish(effect, store)
            return
        number = self._number(envelope)
        dated = f"{key_of(envelope)} of tick {self._clock.times[number]}"
        violation = self._otherwise_dated(envelope, number, store) or self._too_soon(envelope, store)
        after = self.stores.changed(store, requeued=store.requeued | {str(number)})
        again = (str(number),)
        seen = ONCE_MORE if self._others(envelope, store) else RENEWED
        said = f"sends {dated}"
        yield Answer(PUBLISHED, after, violation=violation, said=said, witnessed=seen, again=again)
        yield Answer(UNKNOWN, after, LOST, None, violation, f"{said}; the reply is lost", again=again)
        yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")

    def _number(self, envelope: Envelope) -> int:
        same = (item.id == envelope.id and item.time == envelope.time for item in self._envelopes)
        return next(number for number, item in enumerate(same) if item)

    def _others(self, envelope: Envelope, store: Store) -> tuple[int, ...]:
        sent = map(int, store.requeued)
        return tuple(number for number in sent if self._envelopes[number].id != envelope.id)

    def _otherwise_dated(self, envelope: Envelope, number: int, store: Store) -> str | None:
        """What is wrong with its time: all copies under one identity need the same, or they are judged differently."""
        for other in map(int, store.requeued - {str(number)}):
            if self._envelopes[other].id == envelope.id:
                return f"one_time: {key_of(envelope)} is sent with another time than before"
        return None

    def _too_soon(self, envelope: Envelope, store: Store) -> str | None:
        """What is wrong with sending it under one more identity: under the others it has to be too old to be sent."""
        now = AT + store.now * TICK
        limit = self._clock.lifetimes.send_limit(now)
        for number in self._others(envelope, store):
            if (store.now - self._clock.times[number]) * TICK <= limit:
                return f"at_most_one_identity: {MESSAGE} is sent as {envelope.id}, and was sent as another just before"
        return None


class RenewingWorkers(Workers):
    """Makes workers and moves them on."""

    def __init__(self, scenario: RenewingScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, merge=merge)
        assert scenario.ages is not None  # noqa: S101
        self._clock = scenario.ages
        self._envelopes = tuple(renewed(identity) for identity in (None, *identities(scenario.ages.last)))
        self._chores = scenario.chores

    def _key(self, number: int) -> str:
        return key_of(self._envelopes[number])

    def _run(self, start: Start) -> Step[Any]:
        if start.task != "requeue":
            return super()._run(start)
        limit = self._clock.lifetimes.send_limit
        return sent_as_new(self._chores, ENTITY, lambda _: limit, start.memory)

    def _work(self, start: Start) -> Work:
        work = super()._work(start)
        return replace(work, messages=tuple(self._envelopes[number] for number in start.messages))


class RenewingExplorer(AgedExplorer):
    """Explores a scenario in which a parked message is renewed."""

    def __init__(self, scenario: RenewingScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, world=RenewingWorld(scenario), workers=RenewingWorkers(scenario, merge=merge))
        self.keys = tuple(key_of(renewed(identity)) for identity in (None, *identities(self._ages.last)))

    def start(self) -> State:
        """The state in which the message is parked, and nothing else has happened."""
        store, *rest = super().start()
        parked = ParkedMessage(ENTITY.key, MESSAGE, "given up", AT, renewed(None).to_json())
        library = self.world.stores.library(((f"parked:{MESSAGE}", ("1", parked)),))
        store = self.world.stores.changed(store, libraries=(library,), parked=frozenset({MESSAGE}))
        return (store, *rest)  # type: ignore[return-value]

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state. The message must always be somewhere."""
        for move in super().moves(state):
            if move.violation is None and not self._is_somewhere(move.state):
                yield move._replace(
                    violation=f"nothing_lost: {MESSAGE} is neither committed nor parked, and no copy of it is left"
                )
            else:
                yield move

    def is_good_end(self, state: State) -> bool:
        """The message was committed and published, lies parked, or came too late; the sweeper publishes what is owed."""
        store, queue, workers, _, _ = state
        if any(queue) or any(worker.situation is not None for worker in workers):
            return False
        done = all(self.judge.lost(key, store) is None or self._is_left(key, store) for key, _ in store.committed)
        return done and self._is_somewhere(state)

    def _is_somewhere(self, state: State) -> bool:
        store, queue, workers, _, _ = state
        present = any(queue) or any(worker.held for worker in workers)
        refused = any(self._is_old(int(number), store.now) for number in store.requeued)
        return bool(present or store.parked or store.committed or refused)

    def _arrived(self, queue: tuple[int, ...], answer: Answer) -> tuple[int, ...]:
        counts = list(queue)
        for number in map(int, answer.again):
            counts[number] += 1
        return tuple(counts)

    def _happenings(self, state: State) -> Iterator[Move]:
        """As elsewhere; by the next tick all replicas have caught up."""
        for move in super()._happenings(state):
            store, *rest = move.state
            library = self.world.stores.library(_caught_up(store.libraries[0].writes))
            store = self.world.stores.with_library(store, 0, library)
            yield move._replace(state=(store, *rest))  # type: ignore[arg-type]

    def _put_back(self, state: State) -> Iterator[tuple[str, State]]:
        """As elsewhere, of the parked message: that it was made a new one, and sent, is not known any more."""
        store, queue, workers, delayed, left = state
        parked = f"parked:{MESSAGE}"
        writes = store.libraries[0].writes
        first = next(document for id, document in writes if id == parked)
        if dict(writes)[parked] == first:
            return
        library = self.world.stores.library((*writes, (parked, first)))
        after = self.world.stores.with_library(store, 0, library)
        after = self.world.stores.changed(after, parked=store.parked | {MESSAGE}, put_back=store.put_back + 1)
        yield "The parked message is put back", (after, queue, workers, delayed, spent(left, PLACES["put_back"]))

    def _waits_for_ends(self, state: State) -> bool:
        """Whether a request of an operator is under way, or a write, that will be over by the next tick."""
        _, _, workers, delayed, _ = state
        return self._ages.prompt and (bool(delayed) or any(map(_is_asked, workers)))

    def _wrong_refusal(self, worker: Worker, key: str, error: Exception, store: Store) -> str | None:
        """What is wrong with refusing a copy: it has to be too old."""
        number = worker.held[0]
        if self._is_old(number, store.now):
            return None
        return f"no_failure: {key} is refused, though it can be judged: {error}"


def _is_asked(worker: Worker) -> bool:
    return worker.situation is not None and worker.situation.start.task == "requeue"


def _caught_up(writes: tuple[Any, ...]) -> tuple[Any, ...]:
    parked = f"parked:{MESSAGE}"
    newest = dict(writes)[parked]
    first = next(place for place, (id, _) in enumerate(writes) if id == parked)
    return tuple(
        (parked, newest) if place == first else ("", None) if item[0] == parked else item
        for place, item in enumerate(writes)
    )


explorer_of.register(RenewingScenario, RenewingExplorer)
