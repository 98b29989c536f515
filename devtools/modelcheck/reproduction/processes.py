"""Processes that wait for their turn: production drivers whose every request stops at a gate until the conductor opens it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from devtools.modelcheck.handler import envelope_of, handle, key_of_number
from devtools.modelcheck.reproduction.reality import ENTITIES, OUTSIDE, Reality, forget_sessions
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.store import entity_ref
from devtools.modelcheck.workers import AT
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.operations import store_operations
from exactlyonce.drivers.publishing import Address, Publisher
from exactlyonce.drivers.retrying import Backoff, Retrying
from exactlyonce.drivers.surroundings import Surroundings, SystemClock
from exactlyonce.effects import Effect, Publish, Step
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Again, Finished, Memory, Work
from exactlyonce.stores.cosmos import CosmosStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.strategies.settling import Settled
from exactlyonce.transports.port import SendReply

MakeStore = Callable[..., CosmosStore]
IMPATIENT = Retrying(Backoff(tries=1), Random(0))
"""In the model a strategy hears of every refusal: its retries are used up."""


class ModelClock(SystemClock):
    """The present of the model, which never moves."""

    def now(self) -> datetime:
        return AT


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do.

    Attributes:
        name: as in an event.
        entity: number of the entity.
        messages: numbers of the messages.
        candidates: transactions whose staged outputs are to be cleaned up.
        records: key and ETag of records to be forgotten.
    """

    name: str
    entity: int
    messages: tuple[int, ...] = ()
    candidates: tuple[str, ...] = ()
    records: tuple[tuple[str, str], ...] = ()

    def step(self, scenario: Scenario, memory: Memory) -> Step[Any]:
        """The production generator that does it."""
        entity = entity_ref(self.entity)
        absent = Json.of({"id": entity.id})
        match self.name:
            case "attempt":
                deletes = key_of_number(len(scenario.copies) - 1) if scenario.deletes else None
                handler = partial(handle, deletes=deletes, entity=entity.id)
                work = Work(entity, tuple(envelope_of(number) for number in self.messages), handler, absent)
                return scenario.strategy.attempt(work, memory)
            case "mark":
                return scenario.strategy.mark(entity, memory)
            case "sweep":
                return scenario.chores.sweep(entity, memory)
            case "settle":
                return scenario.chores.settle(entity, envelope_of(self.messages[0]), "given up", absent, memory)
            case "clean":
                return scenario.chores.clean_staged(entity, self.candidates, absent, memory)
            case "forget":
                return scenario.chores.clean_processed(entity, self.records)
            case _:
                raise ValueError(f"There is no task {self.name!r}.")


class Turn:
    """One request at the gate.

    Attributes:
        effect: what is asked for.
    """

    def __init__(self, effect: Effect[Any]) -> None:
        loop = asyncio.get_running_loop()
        self.effect = effect
        self._opened: asyncio.Future[Effect[Any]] = loop.create_future()
        self._answered: asyncio.Future[Any] = loop.create_future()
        self._heard: asyncio.Future[None] = loop.create_future()

    async def taken(self, perform: Callable[[Any], Awaitable[Any]]) -> Any:
        """Wait for the turn, perform the request, wait until the reply may be heard."""
        effect = await self._opened
        reply = await perform(effect)
        self._answered.set_result(reply)
        await self._heard
        return reply

    async def performed(self, effect: Effect[Any], failed: asyncio.Task[None]) -> Any:
        """Open the gate for this request and return the reply, which the process has yet to hear.

        Args:
            effect: what to perform: what was asked for, or what stands for it.
            failed: of the process; what it raises comes out here.
        """
        self._opened.set_result(effect)
        await asyncio.wait((self._answered, failed), return_when=asyncio.FIRST_COMPLETED)
        if not self._answered.done():
            await failed
        return self._answered.result()

    def hear(self) -> None:
        """Let the reply through."""
        self._heard.set_result(None)


class _GatedPublisher(Publisher):
    """The publisher, behind the gate."""

    def __init__(self, reality: Reality, gate: Callable[..., Awaitable[Any]]) -> None:
        super().__init__({OUTSIDE: Address(reality.transport, OUTSIDE)})
        self._gate = gate

    async def publish(self, effect: Publish) -> SendReply:
        reply: SendReply = await self._gate(super().publish, effect)
        return reply


class Process:
    """One process of a trace.

    Args:
        scenario: whose strategy it runs.
        reality: where.
        make_store: makes the adapter; a broken twin may need a broken one.

    Attributes:
        finished: what it acknowledged, as entity number and message number.
        raised: what its tasks raised.
    """

    def __init__(self, scenario: Scenario, reality: Reality, make_store: MakeStore) -> None:
        self._scenario = scenario
        self._reality = reality
        self._make_store = make_store
        self._connection = reality.connection()
        self._memories: dict[int, Memory] = {}
        self._turns: deque[Turn] = deque()
        self._changed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.finished: list[tuple[int, int]] = []
        self.raised: list[ExactlyOnceError] = []

    @property
    def busy(self) -> bool:
        """Whether it is at work."""
        return self._running is not None

    async def begin(self, task: Task) -> None:
        """Begin a task, as far as its first request."""
        self._running = asyncio.create_task(self._run(task))
        self._running.add_done_callback(lambda _: self._changed.set())
        await self.settled()

    async def settled(self) -> None:
        """Wait until it stands at the gate, or is done."""
        while self._running is not None and not self._turns and not self._running.done():
            self._changed.clear()
            await self._changed.wait()
        if self._running is not None and self._running.done():
            running, self._running = self._running, None
            try:
                await running
            except ExactlyOnceError as error:
                self.raised.append(error)

    @property
    def turn(self) -> Turn | None:
        """The request at the gate; the first one, of two side by side."""
        return self._turns[0] if self._turns else None

    async def perform(self, effect: Effect[Any]) -> Any:
        """Perform the request at the gate, or what stands for it."""
        assert self._running is not None  # noqa: S101
        return await self._turns[0].performed(effect, self._running)

    async def hear(self) -> None:
        """Let it hear the reply, and go on as far as its next request."""
        self._turns.popleft().hear()
        await self.settled()

    async def give_back(self) -> None:
        """It has tried often enough, and keeps what it remembers."""
        running, self._running = self._running, None
        self._turns.clear()
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def crash(self) -> None:
        """Nothing volatile survives."""
        await self.give_back()
        self._memories.clear()
        await self._connection.close()  # It is opened again on its next use.

    async def _run(self, task: Task) -> None:
        """Run a task again and again until it comes to an end."""
        remembered = self._memories.pop(task.entity, Memory())
        # Chores belong to processes of their own, which remember nothing of it.
        result: Any = Again(remembered if task.name in ("attempt", "mark") else Memory(), "")
        while isinstance(result, Again):
            self._memories[task.entity] = self._kept(result.memory)
            result = await self._run_once(task, self._kept(result.memory))
        self._memories[task.entity] = self._kept(getattr(result, "memory", Memory()))
        if isinstance(result, Finished | Settled):
            self.finished += ((task.entity, number) for number in task.messages)

    async def _run_once(self, task: Task, memory: Memory) -> Any:
        """One run, by a client that remembers no session.

        The SDK adds tokens of its own to reads that carry none. The model leaves them out, so that it covers a process that has
        just been started; and every run has to be as free.
        """
        await forget_sessions(self._connection)
        store = self._make_store(self._connection, [ENTITIES])
        surroundings = Surroundings(ModelClock(), Random(0), self._reality.new_transaction)
        driver = AsyncDriver(self._gated(store), _GatedPublisher(self._reality, self._at_gate), surroundings)
        return await driver.run(IMPATIENT.insist(task.step(self._scenario, memory)))

    def _gated(self, store: CosmosStore) -> AsyncStore:
        methods = (method.__name__ for method in store_operations(store).values())
        gated = {name: partial(self._at_gate, getattr(store, name)) for name in methods}
        return cast("AsyncStore", SimpleNamespace(**gated))

    async def _at_gate(self, perform: Callable[[Any], Awaitable[Any]], effect: Effect[Any]) -> Any:
        turn = Turn(effect)
        self._turns.append(turn)
        self._changed.set()
        return await turn.taken(perform)

    def _kept(self, memory: Memory) -> Memory:
        """What of a memory this scenario looks at, as in the model."""
        if not self._scenario.marking:
            memory = replace(memory, saved=None)
        if not self._scenario.tokens:
            memory = replace(memory, entity_token=None, library_token=None)
        return memory
