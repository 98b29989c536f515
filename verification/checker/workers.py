"""Workers: processes that take deliveries or do chores, and run the production strategies. Interned: compare by identity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any

from exactlyonce.attempt import Again, Finished, Memory, Settled, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Loaded
from exactlyonce.protocols.outbox.clean import Cleaned
from exactlyonce.protocols.steps.park import Requeued
from exactlyonce.values.frozen_json import Json
from verification.checker.handler import aged, envelope_of, handle, key_of_number
from verification.checker.mentions import Write, transactions_in
from verification.checker.scenarios import AT, TICK, Scenario
from verification.checker.store import entity_ref, ledger_of
from yieldcheck.situations import Situation, Situations

NOTHING = Memory()


@dataclass(frozen=True, slots=True)
class Start:
    """How a run starts.

    Attributes:
        task: "attempt", "mark", "sweep", "settle", "requeue", "clean" or "forget".
        entity: number of the entity.
        messages: numbers of the messages it is about.
        memory: what its process remembers of the entity.
        candidates: transactions whose staged outputs are to be cleaned up.
        behind: how many ticks its process's present is behind the store's.
        heard: whether its process has heard of the last change of the retention.
        tick: at which it begins, where its process trims ledgers by a retention that changes.
    """

    task: str
    entity: int
    messages: tuple[int, ...] = ()
    memory: Memory = NOTHING
    candidates: tuple[str, ...] = ()
    behind: int = 0
    heard: bool = True
    tick: int = 0


class Worker:
    """One process. Compare with `is`.

    Attributes:
        situation: of its run; None if idle.
        first: reply to the first of two requests side by side; None if not asked yet.
        memories: what it remembers of each entity; as at the start of the run while it is at work.
        held: places in the queues from which it has taken a copy that it has not acknowledged, one for each copy.
        asks: what it waits for; None if idle.
        begins: whether it asks for transaction ids.
        transactions: ids that it may still use.
        order: place in the canonical order.
    """

    __slots__ = ("asks", "begins", "first", "held", "memories", "order", "situation", "transactions")

    def __init__(
        self,
        situation: Situation[Start] | None,
        first: Any,
        memories: tuple[Memory, ...],
        held: tuple[int, ...],
        order: int,
    ) -> None:
        self.situation = situation
        self.first = first
        self.memories = memories
        self.held = held
        self.order = order
        effect: Effect[Any] | None = situation.request if situation is not None else None
        self.begins = isinstance(effect, Begin)
        self.asks = (effect.first if first is None else effect.second) if isinstance(effect, Together) else effect
        replies = () if situation is None else (*situation.replies, first)
        asked = transactions_in(self.asks) if isinstance(self.asks, Write) else frozenset()
        self.transactions = frozenset(
            tx for memory in memories for tx in memory.published
        ).union(_mentioned(replies), asked)  # fmt: skip

    @property
    def remembers(self) -> bool:
        """Whether a crash would make it forget something that matters."""
        return any(memory != NOTHING for memory in self.memories)

    @property
    def starts_over(self) -> bool:
        """Whether it is about to try again, and may give up instead."""
        return self.situation is not None and not self.situation.replies and self.first is None


def _mentioned(replies: tuple[Any, ...]) -> Iterator[str]:
    """Transaction ids that replies brought."""
    for reply in replies:
        if isinstance(reply, tuple):
            yield from _mentioned(reply)
        elif isinstance(reply, Begun):
            yield from reply.given
        elif isinstance(reply, Loaded):
            yield from (entry.tx for entry in ledger_of(reply.document).entries)


class Workers:
    """Makes workers and moves them on."""

    def __init__(self, scenario: Scenario, *, merge: bool = True) -> None:
        self._scenario = scenario
        self._nothing = (NOTHING,) * scenario.entities
        self._situations: Situations[Start] = Situations(self._run, merge=merge)
        self._workers: dict[tuple[Any, ...], Worker] = {}
        self._followed: dict[Worker, Worker] = {}
        self.messages = len(scenario.copies)

    @property
    def runs(self) -> int:
        """How often production code ran."""
        return self._situations.runs

    def idle(self, memories: tuple[Memory, ...] | None = None) -> Worker:
        """A worker with nothing to do."""
        return self._worker(None, None, memories or self._nothing, ())

    def groups(self, queue: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Every group of deliveries for one entity that one attempt may take."""
        waiting = [number for number in range(self.messages) for _ in range(queue[number])]
        for size in range(1, min(self._scenario.group, len(waiting)) + 1):
            for group in dict.fromkeys(permutations(waiting, size)):
                if len({self._scenario.target(number) for number in group}) == 1:
                    yield group

    def attempt(
        self, worker: Worker, held: tuple[int, ...], behind: int = 0, *, heard: bool = True, tick: int = 0
    ) -> Worker:
        """An idle worker takes deliveries."""
        entity = self._scenario.target(held[0])
        start = Start("attempt", entity, held, worker.memories[entity], behind=behind, heard=heard, tick=tick)
        return self._begun(start, worker.memories, held)

    def settle(self, worker: Worker, place: int) -> Worker:
        """An idle worker takes a delivery that the host gave up on."""
        number = place - self.messages
        entity = self._scenario.target(number)
        return self._begun(Start("settle", entity, (number,)), worker.memories, (place,))

    def chore(self, worker: Worker, start: Start) -> Worker:
        """An idle worker does a chore."""
        return self._begun(start, worker.memories, ())

    def told(self, worker: Worker, reply: Any) -> Worker:
        """The worker after a reply to what it asks."""
        situation = worker.situation
        assert situation is not None  # noqa: S101
        if isinstance(situation.request, Together):
            if worker.first is None:
                return self._worker(situation, reply, worker.memories, worker.held)
            reply = (worker.first, reply)
        return self._worker(self._situations.after(situation, reply), None, worker.memories, worker.held)

    def following(self, worker: Worker) -> Worker:
        """What a worker does after the end of its run: nothing, or the same again."""
        found = self._followed.get(worker)
        if found is None:
            found = self._followed[worker] = self._after_run(worker)
        return found

    def _after_run(self, worker: Worker) -> Worker:
        assert worker.situation is not None  # noqa: S101
        start, result = worker.situation.start, worker.situation.result
        if not isinstance(result, Finished | Again | Settled | Requeued | Cleaned | None):
            raise TypeError(f"A run came to {result!r}, which is no result.")
        memory = NOTHING if result is None else self._kept(result.memory)
        entity = start.entity
        memories = (*worker.memories[:entity], memory, *worker.memories[entity + 1 :])
        if isinstance(result, Again):
            return self._begun(self._started_again(worker, start, memory), memories, worker.held)
        return self.idle(memories)

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
        return self._worker(worker.situation, worker.first, worker.memories, held)

    def giving_up(self, worker: Worker) -> Worker:
        """The worker, idle, with what it remembers from the attempts it made."""
        assert worker.situation is not None  # noqa: S101
        start = worker.situation.start
        return self.idle((*worker.memories[: start.entity], start.memory, *worker.memories[start.entity + 1 :]))

    def named(self, worker: Worker, used: frozenset[str], now: int = 0) -> Worker:
        """The worker with the lowest transaction ids that are free; none for messages whose deliveries were given back."""
        asked = worker.asks
        assert isinstance(asked, Begin)  # noqa: S101
        free: list[str] = []
        number = 0
        while len(free) < asked.count:
            if f"t{number}" not in used:
                free.append(f"t{number}")
            number += 1
        assert worker.situation is not None  # noqa: S101
        present = AT + max(now - worker.situation.start.behind, 0) * TICK
        return self.told(worker, Begun(present, self.given(worker, asked, tuple(free))))

    def given(self, worker: Worker, asked: Begin, free: tuple[str, ...]) -> tuple[str | None, ...]:
        """The transaction ids that a worker is given: None in the place of a message of which it holds no delivery."""
        situation = worker.situation
        if situation is None or situation.start.task != "attempt" or self._scenario.oblivious:
            return free
        held = {self._key(place) for place in worker.held}
        named = [tx if message in held else None for message, tx in zip(asked.messages, free, strict=False)]
        return (*named, *free[len(named) :])

    def _key(self, number: int) -> str:
        """The key of a message."""
        return key_of_number(number)

    def standing(
        self, start: Start, replies: tuple[Any, ...], first: Any, memories: tuple[Memory, ...], held: tuple[int, ...]
    ) -> Worker:
        """A worker that has come so far in its run."""
        situation = self._situations.first(start)
        for reply in replies:
            situation = self._situations.after(situation, reply)
        return self._worker(situation, first, memories, held)

    def remembering(self, worker: Worker, memories: tuple[Memory, ...]) -> Worker:
        """The worker with other memories."""
        if memories == worker.memories:
            return worker
        return self._worker(worker.situation, worker.first, memories, worker.held)

    def _kept(self, memory: Memory) -> Memory:
        """What of a memory this scenario looks at; only marking reads the saved document."""
        if not self._scenario.marking:
            memory = replace(memory, saved=None)
        if not self._scenario.tokens:
            memory = replace(memory, entity_token=None, library_token=None)
        return memory

    def _begun(self, start: Start, memories: tuple[Memory, ...], held: tuple[int, ...]) -> Worker:
        return self._worker(self._situations.first(start), None, memories, held)

    def _worker(
        self, situation: Situation[Start] | None, first: Any, memories: tuple[Memory, ...], held: tuple[int, ...]
    ) -> Worker:
        key = (situation, first, memories, held)
        found = self._workers.get(key)
        if found is None:
            found = self._workers[key] = Worker(situation, first, memories, held, len(self._workers))
        return found

    def _run(self, start: Start) -> Step[Any]:  # noqa: PLR0911
        entity = entity_ref(start.entity)
        absent = Json.of({"id": entity.id})
        strategy = self._scenario.strategy
        match start.task:
            case "attempt":
                return strategy.attempt(self._work(start), start.memory)
            case "mark":
                return strategy.mark(entity, start.memory)
            case "sweep":
                return strategy.sweep(self._work(start), start.memory)
            case "settle":
                return strategy.settle(self._work(start), envelope_of(start.messages[0]), "given up", start.memory)
            case "requeue":
                return self._scenario.chores.requeue(entity, key_of_number(start.messages[0]), "in", None, start.memory)
            case "clean":
                return self._scenario.chores.clean_staged(entity, start.candidates, absent, start.memory)
            case _:
                records = tuple((key_of_number(number), "any") for number in start.messages)
                return strategy.clean(entity, records, start.memory)

    def _work(self, start: Start) -> Work:
        """The messages that a run is about, with the handler of the model."""
        deletes = key_of_number(self.messages - 1) if self._scenario.deletes else None
        entity, ages = entity_ref(start.entity), self._scenario.ages
        handler = partial(handle, deletes=deletes, entity=entity.id, dates=ages is not None)
        work = Work(
            entity, tuple(envelope_of(number) for number in start.messages), handler, Json.of({"id": entity.id})
        )
        return work if ages is None else aged(work, start.messages, ages, heard=start.heard, tick=start.tick)
