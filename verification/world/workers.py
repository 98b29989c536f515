"""Workers: processes that take deliveries or do chores, and run the production strategies. Interned: compare by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import permutations
from typing import Any, Final

from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Settled, Work
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Conflict, Loaded
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.errors import ExactlyOnceError, HandlerFailed, TryAgainLater
from exactlyonce.protocols.outbox.clean import Cleaned
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.protocols.steps.park import Requeued
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from verification.world import companions, outbox
from verification.world.companions import ABSENT, ENTITY, HAS_WAITED, job, keys_of, missing_of
from verification.world.outbox import keys_in
from verification.world.scenario import ANSWER, AT, NOTHING, NUDGE, STUMBLE, TICK, Scenario, Start
from verification.world.store import entity_ref, position_of, transactions_of
from verification.world.writes import ANY, Write, transactions_in
from yieldcheck.situations import Situation, Situations

IN_VAIN: Final = SaveBatch(ENTITY, ABSENT, "outdated")
"""A save whose condition holds no longer, and never will again."""
OfBooks = OpenNumbers | FindPaid | CloseNumbers
"""What a process asks its own book."""
COMES_BACK = (TryAgainLater, HandlerFailed)
"""What a delivery may fail with without harm: it comes back."""


class Worker:
    """One process. Compare with `is`.

    Attributes:
        situation: of its run; None if idle.
        first: reply to the first of two requests side by side; None if not asked yet.
        memories: what it remembers of each entity; as at the start of the run while it is at work.
        held: places in the queues from which it has taken a copy that it has not acknowledged, one for each copy.
        asks: what it waits for; None if idle.
        book: id of its process's book; None if it has said nothing in it yet.
        saves: what it asks for, if that is a batch on a condition; None if not.
    """

    __slots__ = ("asks", "begins", "book", "first", "held", "memories", "order", "saves", "situation", "transactions")

    def __init__(  # noqa: PLR0917
        self,
        situation: Situation[Start] | None,
        first: Any,
        memories: tuple[Memory, ...],
        held: tuple[int, ...],
        book: str | None,
        order: int,
    ) -> None:
        self.situation = situation
        self.first = first
        self.memories = memories
        self.held = held
        self.book = book
        self.order = order
        effect: Effect[Any] | None = situation.request if situation is not None else None
        self.begins = isinstance(effect, Begin)
        asks = (effect.first if first is None else effect.second) if isinstance(effect, Together) else effect
        self.asks = asks
        self.saves = asks if isinstance(asks, SaveBatch) and asks is not IN_VAIN and asks.etag != ANY else None
        replies = () if situation is None else (*situation.replies, first)
        asked = transactions_in(self.asks) if isinstance(self.asks, Write) else frozenset()
        saved = (memory.saved for memory in memories)
        self.transactions = asked.union(
            _mentioned(replies), *(transactions_of(item.document) for item in saved if item is not None)
        )

    @property
    def remembers(self) -> bool:
        """Whether a crash would make it forget something that matters."""
        return any(memory != NOTHING for memory in self.memories)

    @property
    def starts_over(self) -> bool:
        """Whether it is about to try again, and may give up instead."""
        return self.situation is not None and not self.situation.replies and self.first is None


def _mentioned(replies: tuple[Any, ...]) -> Iterator[str]:
    for reply in replies:
        if isinstance(reply, tuple):
            yield from _mentioned(reply)
        elif isinstance(reply, Begun):
            yield from reply.given
        elif isinstance(reply, Loaded):
            yield from transactions_of(reply.document)


class Workers:
    """Makes workers and moves them on."""

    def __init__(self, scenario: Scenario, *, merge: bool = True) -> None:
        self._scenario = scenario
        self._nothing = (NOTHING,) * scenario.entities
        self._situations: Situations[Start] = Situations(self._run, merge=merge)
        self._workers: dict[tuple[Any, ...], Worker] = {}
        self._works: dict[Start, Work] = {}
        self._emptied: dict[Any, Situation[Start]] = {}
        self._drafted: dict[Situation[Start] | None, Situation[Start]] = {}
        self._keys = keys_of(scenario.messages) or keys_in(scenario)
        self.messages = len(scenario.copies)
        # What is asked for in one state is asked for in thousands.
        self.groups = cache(lambda queue: tuple(self._groups(queue)))
        self.attempt = cache(self._attempt)
        self.named = cache(self._named)
        self.following = cache(self._following)
        self.in_vain = cache(self._in_vain)

    @property
    def runs(self) -> int:
        """How often production code ran."""
        return self._situations.runs

    def idle(self, memories: tuple[Memory, ...] | None = None, book: str | None = None) -> Worker:
        return self._worker(None, None, memories or self._nothing, (), book)

    def with_book(self, worker: Worker, book: str | None) -> Worker:
        if book == worker.book:
            return worker
        return self._worker(worker.situation, worker.first, worker.memories, worker.held, book)

    def _groups(self, queue: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        waiting = [number for number in range(self.messages) for _ in range(queue[number])]
        for size in range(1, min(self._scenario.group, len(waiting)) + 1):
            for group in dict.fromkeys(permutations(waiting, size)):
                if len({self._scenario.target(number) for number in group}) == 1:
                    yield group

    def _attempt(
        self, worker: Worker, held: tuple[int, ...], behind: int = 0, *, heard: bool = True, tick: int = 0
    ) -> Worker:
        entity = self._scenario.target(held[0])
        start = Start("attempt", entity, held, worker.memories[entity], behind=behind, heard=heard, tick=tick)
        return self._begun(start, worker.memories, held, worker.book)

    def stumbling(self, worker: Worker, held: tuple[int, ...], raising: tuple[str, ...]) -> Worker:
        """An idle worker takes deliveries, and for as long as it has them the handlers of some raise."""
        return self._begun(Start(STUMBLE, 0, held, worker.memories[0], raising), worker.memories, held, worker.book)

    def settle(self, worker: Worker, place: int) -> Worker:
        """An idle worker takes a delivery that the host gave up on."""
        number = place - self.messages
        entity = self._scenario.target(number)
        return self._begun(Start("settle", entity, (number,)), worker.memories, (place,), worker.book)

    def chore(self, worker: Worker, start: Start) -> Worker:
        return self._begun(start, worker.memories, (), worker.book)

    def answered(self, worker: Worker, reply: Any) -> Worker:
        situation = self._drafted[worker.situation] if worker.asks is IN_VAIN else worker.situation
        assert situation is not None  # noqa: S101
        if isinstance(situation.request, Together):
            if worker.first is None:
                return self._worker(situation, reply, worker.memories, worker.held, worker.book)
            reply = (worker.first, reply)
        return self._worker(self._situations.after(situation, reply), None, worker.memories, worker.held, worker.book)

    def _following(self, worker: Worker) -> Worker:
        """What a worker does after the end of its run: nothing, or the same again."""
        assert worker.situation is not None  # noqa: S101
        start, result = worker.situation.start, worker.situation.result
        if isinstance(result, Replayed):
            if result.following is None:
                return self.idle(worker.memories, worker.book)
            return self.chore(worker, replace(start, candidates=(str(result.following), start.candidates[-1])))
        if start.task == ANSWER and isinstance(result, tuple):
            return self.chore(worker, Start("replay", 0, candidates=tuple(map(str, result))))
        if not isinstance(result, Finished | Again | Settled | Requeued | Cleaned | None):
            raise TypeError(f"A run came to {result!r}, which is no result.")
        memory = NOTHING if result is None else self._kept(result.memory)
        entity = start.entity
        memories = (*worker.memories[:entity], memory, *worker.memories[entity + 1 :])
        if isinstance(result, Again):
            return self._begun(self._started_again(worker, start, memory), memories, worker.held, worker.book)
        again = self.failed(worker, COMES_BACK)
        held = tuple(place for place in worker.held if self._key(place) in again)
        if held:  # What failed comes back at once, unless it was given back while it was tried.
            return self._begun(Start("attempt", entity, held, memory), memories, held, worker.book)
        return self.idle(memories, worker.book)

    def failed(self, worker: Worker, kinds: tuple[type[ExactlyOnceError], ...]) -> tuple[str, ...]:
        """Keys of the messages that failed with errors of these kinds in a run that is over."""
        assert worker.situation is not None  # noqa: S101
        result = worker.situation.result
        failed = result.failed if isinstance(result, Finished) else ()
        return tuple(key for key, error in failed if isinstance(error, kinds))

    def _in_vain(self, worker: Worker) -> Worker:
        """A worker whose save has to fail, without what it drafted: all that do the same afterwards are one."""
        situation = worker.situation
        assert situation is not None  # noqa: S101
        ends = [self._situations.after(situation, reply).result for reply in (Conflict(None), UNKNOWN)]
        if not all(isinstance(end, Again) for end in ends):
            return worker  # A broken twin, which does something else than to start over.
        afterwards = tuple(self._kept(end.memory) for end in ends)
        key = (situation.start, afterwards)
        if key not in self._emptied:
            self._emptied[key] = Situation(situation.start, (Begun(AT, ()),), IN_VAIN, None)
            self._drafted[self._emptied[key]] = situation
        return self._worker(self._emptied[key], None, worker.memories, worker.held, worker.book)

    def _started_again(self, worker: Worker, start: Start, memory: Memory) -> Start:
        """How the next attempt starts: for the messages whose deliveries are still held, or, if none is, for the same."""
        messages = start.messages
        if start.task == "attempt" and worker.held and not self._scenario.oblivious:
            messages = worker.held
        return replace(start, messages=messages, memory=memory)

    def returning(self, worker: Worker, place: int) -> Worker:
        """The worker, still at work, when one of its deliveries has gone back to its queue."""
        number = worker.held.index(place)
        held = (*worker.held[:number], *worker.held[number + 1 :])
        return self._worker(worker.situation, worker.first, worker.memories, held, worker.book)

    def giving_up(self, worker: Worker) -> Worker:
        """The worker, idle, with what it remembers from the attempts it made."""
        assert worker.situation is not None  # noqa: S101
        start = worker.situation.start
        memories = (*worker.memories[: start.entity], start.memory, *worker.memories[start.entity + 1 :])
        return self.idle(memories, worker.book)

    def _named(self, worker: Worker, used: frozenset[str], now: int = 0) -> Worker:
        """The worker with fresh transaction ids, none for messages whose deliveries were given back, and with the present.

        Where records are companions, the present depends on the version on which the attempt goes on. So a message that is
        handled again is given another time, and attempts that differ by nothing else are one.
        """
        asked, situation = worker.asks, worker.situation
        assert isinstance(asked, Begin)  # noqa: S101
        assert situation is not None  # noqa: S101
        at = self.present(worker, now)
        if self._scenario.companions and not self._scenario.apart:
            position = _loaded_at(situation.replies)
            messages = "+".join(map(str, situation.start.messages))
            fresh = tuple(f"t{position}:{messages}.{item}" for item in range(asked.count))
        else:
            free = (f"t{number}" for number in range(len(used) + asked.count) if f"t{number}" not in used)
            fresh = tuple(next(free) for _ in range(asked.count))
        named = self.answered(worker, Begun(at, self.given(worker, asked, fresh)))
        return self.named(named, used, now) if named.begins else named

    def stage(self, worker: Worker) -> tuple[int, tuple[int, ...]]:
        """The position at which a run has loaded the entity last, and its messages: drafts that have both are alike."""
        assert worker.situation is not None  # noqa: S101
        return _loaded_at(worker.situation.replies), worker.situation.start.messages

    def present(self, worker: Worker, now: int) -> datetime:
        """The present that a worker is given at a tick."""
        situation = worker.situation
        assert situation is not None  # noqa: S101
        position = _loaded_at(situation.replies) if self._scenario.companions else 0
        waited = self._scenario.ordered and situation.start.task == NUDGE
        ticks = max(now - situation.start.behind, 0)
        return (HAS_WAITED if waited else AT) + timedelta(seconds=position) + ticks * TICK

    def given(self, worker: Worker, asked: Begin | OpenNumbers, free: tuple[str, ...]) -> tuple[str | None, ...]:
        """The transaction ids that a worker is given: None in the place of a message of which it holds no delivery."""
        situation = worker.situation
        if situation is None or situation.start.task != "attempt" or self._scenario.oblivious:
            return free
        held = {self._key(place) for place in worker.held}
        named = [tx if message in held else None for message, tx in zip(asked.messages, free, strict=False)]
        return (*named, *free[len(named) :])

    def _key(self, number: int) -> str:
        return self._keys[number % self.messages]

    def standing(
        self, worker: Worker, start: Start, replies: tuple[Any, ...], held: tuple[int, ...], book: str | None
    ) -> Worker:
        """The worker in a run that has come as far by other names."""
        situation = self._situations.first(start)
        for reply in replies:
            situation = self._situations.after(situation, reply)
        return self._worker(situation, worker.first, worker.memories, held, book)

    def _kept(self, memory: Memory) -> Memory:
        """What of a memory this scenario looks at: only attempts that start from it read the saved document."""
        trusts = self._scenario.remembering
        memory = replace(memory, saved=memory.saved and replace(memory.saved, right=TRUSTED) if trusts else None)
        if not self._scenario.tokens:
            memory = replace(memory, entity_token=None, library_token=None)
        return memory

    def _begun(self, start: Start, memories: tuple[Memory, ...], held: tuple[int, ...], book: str | None) -> Worker:
        return self._worker(self._situations.first(start), None, memories, held, book)

    def _worker(
        self,
        situation: Situation[Start] | None,
        first: Any,
        memories: tuple[Memory, ...],
        held: tuple[int, ...],
        book: str | None,
    ) -> Worker:
        key = (situation, first, memories, held, book)
        found = self._workers.get(key)
        if found is None:
            found = self._workers[key] = Worker(situation, first, memories, held, book, len(self._workers))
        return found

    def step(self, start: Start) -> Step[Any]:
        return self._run(start)

    def _run(self, start: Start) -> Step[Any]:  # One case for each task.
        entity, memory = entity_ref(start.entity), start.memory
        strategy, chores = self._scenario.strategy, self._scenario.chores
        step: Step[Any]
        match start.task:
            case "sweep":
                step = strategy.sweep(self._work(start), memory)
            case "settle":
                step = strategy.settle(self._work(start), self._envelope(start.messages[0]), "given up", memory)
            case "clean" if self._scenario.companions:
                step = job(self._scenario, start.candidates, memory)
            case "clean":
                step = chores.clean_staged(entity, start.candidates, Json.of({"id": entity.id}), memory)
            case "clean pages":
                candidates = zip(start.candidates[::2], start.candidates[1::2], strict=True)
                step = strategy.clean(entity, tuple(candidates), memory)
            case "requeue":
                step = chores.requeue(entity, self._key(start.messages[0]), "in", lambda _: None, memory)
            case "nudge":
                step = strategy.tend(self._work(start), memory)
            case "replay":
                first, last = map(int, start.candidates)
                step = chores.replay(self._work(start), (first, last), memory, missing_of(self._scenario))
            case "answer":
                step = chores.versions_of(entity, missing_of(self._scenario), memory)
            case _:
                step = strategy.attempt(self._work(start), memory)
        return step

    def _envelope(self, number: int) -> Envelope:
        messages = self._scenario.messages
        if not messages:
            return outbox.envelope_in(self._scenario, number)
        request = self._scenario.request(number)
        asked = None if request is None else request.body
        return replace(companions.envelope_of(number, messages[number]), asked=asked)

    def _work(self, start: Start) -> Work:
        """The messages that a run is about, with the handler of the model; the same object for the same start.

        Programs keep it in a variable, and a handler is compared by identity: with one of its own, each run would stand apart.
        """
        found = self._works.get(start)
        if found is None:
            found = self._works[start] = self._made(start)
        return found

    def _made(self, start: Start) -> Work:
        entity, ages = entity_ref(start.entity), self._scenario.ages
        envelopes = tuple(self._envelope(number) for number in start.messages)
        evolve = companions.evolve if self._scenario.sourced else None
        absent = Json.of({"id": entity.id})
        release = partial(outbox.release, absent=absent)
        work = Work(entity, envelopes, self._handler(start), absent, evolve, release=release)
        return work if ages is None else outbox.aged(work, start.messages, ages, heard=start.heard, tick=start.tick)

    def _handler(self, start: Start) -> Callable[[Before, Envelope], Handled]:
        scenario, dates = self._scenario, self._scenario.ages is not None
        if scenario.companions:
            raising, messages = frozenset(start.candidates), scenario.messages
            return partial(companions.handle, messages=messages, raising=raising, sourced=scenario.sourced, dates=dates)
        deletes = self._keys[-1] if scenario.deletes else None
        id, sends = entity_ref(start.entity).id, outbox.sends(scenario)
        return partial(outbox.handle, deletes=deletes, entity=id, dates=dates, numbers=scenario.numbers, **sends)


def _loaded_at(replies: tuple[Any, ...]) -> int:
    looks = (reply[0] if isinstance(reply, tuple) else reply for reply in reversed(replies))
    return next((position_of(loaded.token) for loaded in looks if isinstance(loaded, Loaded)), 0)
