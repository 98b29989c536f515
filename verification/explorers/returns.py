"""Worlds in which messages that were given up go back to their queues: the settler decides, workers process what comes back.

A copy waits in its queue, or to be settled, for the first time or not; and it counts how often it was returned. A write that
parks a message lands at once or never: one that landed after its message was returned and processed would say what is not so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from types import SimpleNamespace, coroutine
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.drivers.driver import Backoff, Retrying
from exactlyonce.effects.attempt import Again, Finished, Work
from exactlyonce.effects.effect import UNKNOWN, Begun, Effect, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked, Park, Written
from exactlyonce.errors import MessageError, TryAgainLater
from exactlyonce.hosting.deliveries import settlement as deciding
from exactlyonce.hosting.deliveries import settlement as returning_host
from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS
from exactlyonce.hosting.deliveries.triggers import Cause
from exactlyonce.protocols.steps.park import Requeued, discard
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.lifetimes import Lifetimes
from verification.explorers.choice import explorer_of
from verification.explorers.explorer import PASSES, Explorer
from verification.explorers.moves import POISONED, Move, State, ever_parked, vanished
from verification.world.answers import LOST, World
from verification.world.outbox import dated
from verification.world.scenario import AT, NOTHING, PLACES, TICK, Scenario, Start, spent, with_copies, without_copies
from verification.world.store import Store, entity_ref, token_at
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer, Write

# A coroutine that awaits generators of effects is a generator of effects itself. So `Settler.decide` runs as it is; only what
# performs its effects is the model's, and whether there is time for another attempt is the world's to say.


KINDS: Final = returning_host.UNEXPLAINED_ROUNDS + 2
"""Kinds of copies: as it came, and as it was returned, with so many rounds of which nobody knew the cause."""
ARRIVED, FIRST, AGAIN = 0, 1, 2
"""Where a copy waits: in its queue, or to be settled, for the first time or not."""
STAGES: Final = 3


@dataclass(frozen=True, slots=True)
class Host:
    """What decides about messages that were given up; as it ships, or a broken twin of it.

    Attributes:
        returning: sends messages to their queues once more.
        takes_away: whether what is parked of a returned message is taken away when that is processed.
    """

    giving_up: Callable[..., Any] = deciding.Settler
    given_up: Callable[..., Any] = deciding.PoisonMessage
    returning: Callable[..., Any] = returning_host.Returner
    takes_away: bool = True


@dataclass(frozen=True, slots=True)
class ReturningScenario(Scenario):
    """One world in which messages go back to their queues.

    Attributes:
        causes: why a message failed last, as far as the process knows that settles it.
        rounds: how often each message was returned before, though nobody knew why it failed.
        counted: whether a delivery shows that it is settled for the first time: that of a dead letter does not.
        runs_out: whether what is to be settled is delivered a few times only, as by a poison queue.
    """

    causes: tuple[Cause, ...] = tuple(Cause)
    rounds: int = 0
    counted: bool = True
    runs_out: bool = False
    host: Host = field(default_factory=Host)

    @property
    def logs_parked(self) -> bool:
        """Whether anybody reads parked messages: who returns them does."""
        return True

    @property
    def strict(self) -> bool:
        """Whether no message may be both parked and processed, even for a time until a repair."""
        return not self.runs_out


@dataclass(frozen=True, slots=True)
class GoOn(Effect[bool]):
    """Ask whether there is time for another attempt."""

    why: str


@dataclass(frozen=True, slots=True)
class Ready(Effect[None]):
    """Wait until the store may be asked."""


class _Mending:
    """Runs attempts until one comes to something, as long as there is time."""

    def __init__(self, *, clock: bool) -> None:
        self.retrying = Retrying(Backoff(), Random(0))
        self.routes = SimpleNamespace(is_too_large=lambda *_: False)
        self.driver = self
        self._clock = clock

    async def run(self, ref: Any, attempt: Any = None, deadline: Any = None) -> Any:  # noqa: ARG002
        if attempt is None:  # A driver's: one generator, and nothing to try again.
            return await _asked(ref) if self._clock else Begun(AT, ())
        memory = NOTHING
        while True:
            result = await _asked(attempt(memory))
            if not isinstance(result, Again):
                return result
            memory = result.memory
            if not await _asked(iter(GoOn(result.reason))):
                raise TryAgainLater(result.reason)


class _Failures:
    """What a process knows of a message."""

    def __init__(self, known: Cause) -> None:
        self._known = known

    def cause(self, *_: str) -> Cause:
        return self._known


class _Even(Random):
    """Chance that is none."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002
        return b


@coroutine
def _asked(step: Step[Any]) -> Generator[Any, Any, Any]:
    result = yield from step
    return result


async def _ready() -> None:
    await _asked(iter(Ready()))


def decided(scenario: ReturningScenario, work: Work, stage: int, known: Cause) -> Step[Finished | Again]:
    """Decide about a message that was given up.

    Args:
        known: why the message failed, as far as this process knows.
    """
    running = _deciding(scenario, work, stage, known)
    reply: Any = None
    while True:
        try:
            with _unlogged():
                effect = running.send(reply)
        except StopIteration:
            return Finished(NOTHING)
        except TryAgainLater as error:
            return Again(NOTHING, f"the delivery comes again: {error}")
        reply = yield from effect


def _deciding(scenario: ReturningScenario, work: Work, stage: int, known: Cause) -> Any:
    mending = _Mending(clock=scenario.ages is not None)
    entity = SimpleNamespace(name=work.entity.type, strategy=Outbox())
    lifetimes = Lifetimes if scenario.ages is None else lambda: scenario.ages.lifetimes  # type: ignore[union-attr]
    returning = scenario.host.returning(mending, SimpleNamespace(blobs=None), _Even())
    given_up = scenario.host.giving_up(mending, _Failures(known), returning, lifetimes, _ready, lambda: AT)
    counted = "first" if stage == FIRST else "repeated"
    settlement = counted if scenario.counted else "unknown"
    given = scenario.host.given_up(
        entity, work.messages[0], work, "in", settlement, "given up", runs_out=scenario.runs_out
    )
    return given_up.decide(given)


def received(scenario: ReturningScenario, step: Step[Finished | Again], work: Work) -> Step[Finished | Again]:
    """Process a message; what is parked of it is taken away if it was returned, as the receiver does."""
    finished = yield from step
    (envelope,) = work.messages
    if isinstance(finished, Again) or finished.failed or not envelope.requeued or not scenario.host.takes_away:
        return finished
    gone: bool | Again = Again(NOTHING, "")
    while isinstance(gone, Again):
        gone = yield from discard(work.entity, f"{envelope.source}/{envelope.id}", NOTHING)
    return finished


@cache
def came(number: int, kind: int, rounds: int, tick: int | None) -> Envelope:
    """A copy as it comes.

    Args:
        tick: of its time; None for that at which the clock begins.
    """
    envelope = dated(number, AT + (tick or 0) * TICK)
    counted = rounds if kind == 0 else kind - 1
    times = range(rounds) if kind == 0 else range(1)
    for _ in times:
        envelope = envelope.once_more(counted)
    return envelope


def kind_of(envelope: Envelope) -> int:
    """The kind of a copy that is sent to its queue once more."""
    return 1 + envelope.unexplained


def is_nobodys(entity: EntityRef) -> bool:
    return entity.id == deciding.ASIDE


@contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing: a search decides about a message thousands of times."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


REQUEUES: Final = PLACES["requeues"]
RETURNED: Final = "a message was returned to its queue"
ASIDE: Final = "a message was put aside"
REQUEUED: Final = "a parked message was sent again"
TOO_OLD: Final = "a parked message was too old to be sent again"
STAYS: Final = "a message that was to be returned lay parked"
REFUSED: Final = "a copy was too old to be judged"


class ReturningWorld(World):
    """Answers effects for one scenario."""

    def __init__(self, scenario: ReturningScenario) -> None:
        super().__init__(scenario)
        self._rules = scenario
        self._keys = tuple(key_of(came(number, 0, 0, None)) for number in range(len(scenario.copies)))

    def answers(self, effect: Effect[Any], store: Store) -> Iterator[Answer]:
        if isinstance(effect, Ready):
            yield Answer(None, store, said="is ready")
        elif isinstance(effect, GoOn):
            yield Answer(True, store, said="tries again")
            yield Answer(False, store, said="has no time to try again", aged=True)
        elif isinstance(effect, Publish) and "requeued" in effect.outputs[0].envelope.value:
            yield from self._return(effect, store)
        else:
            for answer in super().answers(effect, store):
                if not isinstance(answer.delayed, Park):
                    yield answer

    def land(self, write: Write, store: Store) -> Answer:
        """A write takes effect, if its condition holds."""
        if isinstance(write, Park) and is_nobodys(write.entity):
            key = write.message.message
            after = self.stores.changed(store, aside=store.aside | {key})
            return Answer(Written(token_at(0)), after, said=f"puts {key} aside", witnessed=ASIDE)
        return super().land(write, store)

    def _load_parked(self, effect: LoadParked, store: Store) -> Iterator[Answer]:
        for answer in super()._load_parked(effect, store):
            if answer.aged and effect.token is None and any(effect.message == key for key, _ in store.committed):
                continue  # A replica that lags far enough hides what is to be taken away: that is best effort.
            found = isinstance(answer.reply, FoundParked) and answer.reply.message is not None
            seen = STAYS if found and effect.token is not None else None
            if found and self.scenario.ages is not None:
                yield replace(answer, reply=replace(answer.reply, now=AT + store.now * TICK), witnessed=seen)
            else:
                yield replace(answer, witnessed=seen)

    def _return(self, effect: Publish, store: Store) -> Iterator[Answer]:
        (output,) = effect.outputs
        envelope = Envelope.read(output.envelope.text)
        key = key_of(envelope)
        number = self._keys.index(key)
        place = STAGES * kind_of(envelope) * len(self._keys) + number
        violation = self._too_often(envelope) or self._too_late(envelope, store)
        after = store
        by_hand = output.id == envelope.id
        if by_hand or not self._rules.strict:  # What is parked and was sent again waits for a repair.
            after = self.stores.changed(store, requeued=store.requeued | {key})
        if violation is not None:
            place = 0
        again, said = (str(place),), f"sends {key} again" if by_hand else f"returns {key} to its queue"
        yield Answer(PUBLISHED, after, None, None, violation, said, REQUEUED if by_hand else RETURNED, again=again)
        yield Answer(UNKNOWN, after, LOST, None, violation, f"{said}; the reply is lost", again=again)
        yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")

    @staticmethod
    def _too_often(envelope: Envelope) -> str | None:
        if envelope.unexplained <= UNEXPLAINED_ROUNDS:
            return None
        return f"termination: {key_of(envelope)} is returned once more, and nobody knows why it fails"

    def _too_late(self, envelope: Envelope, store: Store) -> str | None:
        ages = self.scenario.ages
        if ages is None or envelope.time is None:
            return None
        now = AT + store.now * TICK
        if now - envelope.time <= ages.lifetimes.oldest_judged(now) - 2 * ages.lifetimes.delivery_limit:
            return None
        return f"nothing_lost: {key_of(envelope)} is sent to its queue, and may be too old when it arrives"


class ReturningWorkers(Workers):
    """Makes workers and moves them on."""

    def __init__(self, scenario: ReturningScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, merge=merge)
        self._world = scenario

    def take(self, worker: Worker, place: int, *how: str) -> Worker:
        """An idle worker takes a delivery, to process it or to decide about it."""
        kind, stage, number = self.placed(place)
        task = "attempt" if stage == ARRIVED else "settle"
        start = Start(task, 0, (number,), worker.memories[0], (str(kind), str(stage), *how))
        return self._begun(start, worker.memories, (place,), worker.book)

    def placed(self, place: int) -> tuple[int, int, int]:
        """Kind, stage and message of a place in the queues."""
        slot, number = divmod(place, self.messages)
        return (*divmod(slot, STAGES), number)

    def _started_again(self, worker: Worker, start: Start, memory: Any) -> Start:  # noqa: ARG002
        """The same again; what is settled is no longer settled for the first time."""
        if start.task != "settle":
            return replace(start, memory=memory)
        kind, _, known = start.candidates
        return replace(start, memory=NOTHING, candidates=(kind, str(AGAIN), known))

    def _run(self, start: Start) -> Step[Any]:
        if start.task == "requeue":
            ages = self._world.ages
            limit = None if ages is None else ages.lifetimes.send_limit
            key = self._key(start.messages[0])
            return self._world.chores.requeue(entity_ref(0), key, "in", lambda _: limit, start.memory)
        if start.task not in {"attempt", "settle"}:
            return super()._run(start)
        kind, stage, *known = start.candidates
        ages = self._world.ages
        tick = None if ages is None else ages.times[start.messages[0]]
        copy = came(start.messages[0], int(kind), self._world.rounds, tick)
        work = replace(self._work(start), messages=(copy,))
        if start.task == "attempt":
            return received(self._world, self._world.strategy.attempt(work, start.memory), work)
        return decided(self._world, work, int(stage), Cause(known[0]))


class ReturningExplorer(Explorer):
    """Explores a scenario in which messages go back to their queues."""

    def __init__(self, scenario: ReturningScenario, *, merge: bool = True) -> None:
        self._workers = ReturningWorkers(scenario, merge=merge)
        super().__init__(scenario, world=ReturningWorld(scenario), workers=self._workers)
        self._rules = scenario

    def start(self) -> State:
        store, _, *rest = super().start()
        copies = self.scenario.copies
        return (store, (*copies, *(0,) * (len(copies) * (STAGES * KINDS - 1))), *rest)  # type: ignore[return-value]

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state. A message must always be somewhere."""
        for move in super().moves(state):
            store, queue, workers, *rest = move.state
            gone = move.violation or vanished(self.scenario, self.keys, store, queue, workers)
            copied = self._copied(queue, workers)
            if gone is move.violation and copied <= store.copied:
                yield move
                continue
            after = (self.world.stores.changed(store, copied=store.copied | copied), queue, workers, *rest)
            yield move._replace(state=after, violation=gone)  # type: ignore[arg-type]

    def _copied(self, queue: tuple[int, ...], workers: tuple[Worker, ...]) -> frozenset[str]:
        """Keys of messages of which there are several copies.

        One that was settled before is neither processed nor parked, where that is known. So it counts only with one that is
        settled for the first time: what that parks it may have looked for before.
        """
        places = [place for place, copies in enumerate(queue) for _ in range(copies)]
        places += (place for worker in workers for place in worker.held)
        present = Counter((place % len(self.keys), self._stage(place)) for place in places)
        copied = set()
        for number, key in enumerate(self.keys):
            arrived, first, again = (present[number, stage] for stage in (ARRIVED, FIRST, AGAIN))
            known = self._rules.counted and not first
            if arrived + first + (0 if known else again) > 1:
                copied.add(key)
        return frozenset(copied)

    def _stage(self, place: int) -> int:
        return self._workers.placed(place)[1]

    def is_good_end(self, state: State) -> bool:
        """Every message was committed and published, or lies parked or aside; and of one copy it is not both."""
        store, queue, workers, _, _ = state
        if any(queue) or any(worker.situation is not None for worker in workers):
            return False
        committed = {key for key, _ in store.committed}
        for key in self.keys:
            if key in committed & store.parked - store.copied:
                return False
            if key not in store.aside and self.judge.lost(key, store) is not None:
                return False
        return True

    def _tasks(
        self,
        worker: Worker,
        state: State,
        others: tuple[Worker, ...],  # noqa: ARG002
    ) -> Iterator[tuple[Worker, tuple[int, ...], tuple[int, ...]]]:
        store, queue, _, _, left = state
        if left[REQUEUES]:
            for number in ever_parked(self.keys, store.libraries[0]):
                yield self.workers.chore(worker, Start("requeue", 0, (number,))), queue, spent(left, REQUEUES)
        for place, copies in enumerate(queue):
            if not copies:
                continue
            rest = without_copies(queue, (place,))
            if self._stage(place) == ARRIVED:
                yield self._workers.take(worker, place), rest, left
                continue
            for known in self._rules.causes:
                yield self._workers.take(worker, place, known.value), rest, left

    def _happenings(self, state: State) -> Iterator[Move]:
        store, queue, workers, delayed, left = state
        for place, copies in enumerate(queue):
            _, stage, number = self._workers.placed(place)
            if copies and stage == ARRIVED and left[POISONED]:
                given_up = with_copies(without_copies(queue, (place,)), self._staged((place,), FIRST))
                after = (store, given_up, workers, delayed, spent(left, POISONED))
                yield Move(after, True, None, -1, None, f"The host gives up on {self.keys[number]}")
        ages = self.scenario.ages
        deciding = any(worker.situation is not None and worker.situation.start.task != "attempt" for worker in workers)
        if ages is not None and store.now < ages.last and not deciding:  # No decision takes half a day.
            later = self.world.stores.changed(store, now=store.now + 1)
            yield Move((later, queue, workers, delayed, left), False, None, -1, None, PASSES)

    def _coming_again(self, held: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place if self._stage(place) == ARRIVED else self._staged((place,), AGAIN)[0] for place in held)

    def _staged(self, held: tuple[int, ...], stage: int) -> tuple[int, ...]:
        found = []
        for place in held:
            kind, _, number = self._workers.placed(place)
            found.append((STAGES * kind + stage) * len(self.keys) + number)
        return tuple(found)

    def _arrived(self, queue: tuple[int, ...], answer: Answer) -> tuple[int, ...]:
        return with_copies(queue, tuple(map(int, answer.again))) if answer.again else queue

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """The worker, on its way to the next run if this one is over. What is decided has its own judge: `vanished`.

        What is refused is given up by the host.
        """
        situation = worker.situation
        if situation is None or situation.request is not None or isinstance(situation.result, Exception):
            return super()._settled(worker, store, violation)
        if isinstance(situation.result, Requeued) and situation.result.outcome == "too old":
            self.witnessed.add(TOO_OLD)
        if situation.start.task != "attempt":
            return self.workers.following(worker), violation, True
        if not isinstance(situation.result, Finished) or not situation.result.failed:
            return super()._settled(worker, store, violation)
        (_, error), *_ = situation.result.failed
        if not isinstance(error, MessageError):
            violation = violation or f"raised {type(error).__name__}: {error}"
        self.witnessed.add(REFUSED)
        (given_up,) = self._staged(worker.held, FIRST)
        return self._workers.take(self.workers.idle(), given_up, Cause.OWN.value), violation, True


explorer_of.register(ReturningScenario, ReturningExplorer)
