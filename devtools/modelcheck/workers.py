"""Workers: processes that take deliveries and run the production strategy on them. Interned: they compare by identity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Any

from devtools.modelcheck.answers import ENTITY, Write
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.situations import Situation, Situations
from exactlyonce.effects import (
    Begin,
    Begun,
    DeleteStaged,
    Effect,
    SaveEntity,
    Stage,
    Step,
    Together,
    WriteProcessed,
)
from exactlyonce.envelope import Envelope
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Again, Finished, Handled, Memory, Work, key_of
from exactlyonce.records import Output, read_entity

_ORDER = attrgetter("order")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Start:
    """How an attempt starts: the messages it takes, none for marking; and what its process remembers."""

    messages: tuple[int, ...]
    memory: Memory


class Worker:
    """One process. Compare with `is`.

    Attributes:
        situation: of its attempt; None if idle.
        first: reply to the first of two requests side by side; None if not asked yet.
        memory: what it remembers; that of the start while it is at work.
        held: messages it has taken and not acknowledged, one for each copy.
        transactions: ids it may still use.
        begins: whether it asks for transaction ids.
        order: place in the canonical order.
    """

    __slots__ = ("begins", "first", "held", "memory", "name", "order", "situation", "transactions")

    def __init__(
        self, situation: Situation[Start] | None, first: Any, memory: Memory, held: tuple[int, ...], order: int
    ) -> None:
        self.situation = situation
        self.first = first
        self.memory = memory
        self.held = held
        self.order = order
        self.begins = situation is not None and isinstance(situation.effect, Begin)
        told = situation.replies if situation is not None else ()
        begun = (tx for reply in told if isinstance(reply, Begun) for tx in reply.transactions)
        self.transactions = memory.published | frozenset(begun)
        taken = ", ".join(f"m{number}" for number in held)
        self.name = f"The worker with {taken}" if held else "An idle worker"

    @property
    def asks(self) -> Effect[Any]:
        """What it waits for now."""
        assert self.situation is not None  # noqa: S101
        effect = self.situation.effect
        if isinstance(effect, Together):
            asked: Effect[Any] = effect.first if self.first is None else effect.second
            return asked
        assert effect is not None  # noqa: S101
        return effect


class Workers:
    """Makes workers and moves them on."""

    def __init__(self, scenario: Scenario, *, merge: bool = True) -> None:
        self._scenario = scenario
        self._envelopes = tuple(
            Envelope("web", f"m{number}", "test", Json("{}")) for number in range(len(scenario.copies))
        )
        self.keys = tuple(key_of(envelope) for envelope in self._envelopes)
        self._situations: Situations[Start] = Situations(self._run, merge=merge)
        self._workers: dict[tuple[Any, ...], Worker] = {}

    @property
    def runs(self) -> int:
        """How often production code ran."""
        return self._situations.runs

    def idle(self, memory: Memory | None = None) -> Worker:
        """A worker with nothing to do."""
        return self._worker(None, None, memory or Memory(), ())

    def groups(self, queue: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Every group of deliveries that one attempt may take."""
        waiting = [number for number, copies in enumerate(queue) for _ in range(copies)]
        for size in range(1, min(self._scenario.group, len(waiting)) + 1):
            yield from dict.fromkeys(combinations(waiting, size))

    def begin(self, memory: Memory, held: tuple[int, ...]) -> Worker:
        """A worker that takes deliveries."""
        return self._worker(self._situations.first(Start(held, memory)), None, memory, held)

    def mark(self, memory: Memory) -> Worker:
        """A worker that marks what it published."""
        return self._worker(self._situations.first(Start((), memory)), None, memory, ())

    def told(self, worker: Worker, reply: Any) -> Worker:
        """The worker after a reply to what it asks."""
        situation = worker.situation
        assert situation is not None  # noqa: S101
        if isinstance(situation.effect, Together):
            if worker.first is None:
                return self._worker(situation, reply, worker.memory, worker.held)
            reply = (worker.first, reply)
        return self._worker(self._situations.after(situation, reply), None, worker.memory, worker.held)

    def following(self, worker: Worker) -> Worker:
        """What a worker does after the end of its attempt: idle, or the same again."""
        assert worker.situation is not None  # noqa: S101
        result = worker.situation.result
        assert isinstance(result, Finished | Again)  # noqa: S101
        memory = self._kept(result.memory)
        if isinstance(result, Finished):
            return self.idle(memory)
        return self.begin(memory, worker.held) if worker.held else self.mark(memory)

    def _kept(self, memory: Memory) -> Memory:
        """What of a memory this scenario looks at; only marking reads the saved document."""
        if not self._scenario.marking:
            memory = replace(memory, saved=None)
        if not self._scenario.tokens:
            memory = replace(memory, entity_token=None, library_token=None)
        return memory

    def named(self, worker: Worker, used: frozenset[str]) -> Worker:
        """The worker with the lowest transaction ids that are free."""
        assert worker.situation is not None  # noqa: S101
        assert isinstance(worker.situation.effect, Begin)  # noqa: S101
        free: list[str] = []
        number = 0
        while len(free) < worker.situation.effect.count:
            if f"t{number}" not in used:
                free.append(f"t{number}")
            number += 1
        return self.told(worker, Begun(AT, tuple(free)))

    @staticmethod
    def sorted(workers: tuple[Worker, ...]) -> tuple[Worker, ...]:
        """In canonical order."""
        return tuple(sorted(workers, key=_ORDER))

    @staticmethod
    def transactions_in(write: Write) -> frozenset[str]:
        """Transaction ids that a write mentions."""
        match write:
            case SaveEntity():
                ledger = read_entity(ENTITY, write.document).ledger
                return frozenset(entry.tx for entry in ledger.entries) if ledger else frozenset()
            case WriteProcessed():
                return frozenset(record.tx for record in write.records)
            case Stage():
                return frozenset(document.tx for document in write.documents)
            case DeleteStaged():
                return frozenset(write.transactions)

    def _worker(self, situation: Situation[Start] | None, first: Any, memory: Memory, held: tuple[int, ...]) -> Worker:
        key = (situation, first, memory, held)
        found = self._workers.get(key)
        if found is None:
            found = self._workers[key] = Worker(situation, first, memory, held, len(self._workers))
        return found

    def _run(self, start: Start) -> Step[Finished | Again]:
        strategy = self._scenario.strategy
        if not start.messages:
            return strategy.mark(ENTITY, start.memory)
        handle = partial(_handle, deletes=self.keys[-1] if self._scenario.deletes else None)
        work = Work(ENTITY, tuple(self._envelopes[number] for number in start.messages), handle)
        return strategy.attempt(work, start.memory)


def _handle(body: Json | None, envelope: Envelope, at: datetime, *, deletes: str | None) -> Handled:
    """A handler whose output tells on which state it was made."""
    del at
    handled = body.value["handled"] if body is not None else 0
    key = key_of(envelope)
    output = Output(f"out:{key}", "out", Json.of({"message": key, "on": handled}))
    state = Json.of({"id": "a", "handled": handled + 1})
    return Handled(state, (output,), deleted=key == deletes)
