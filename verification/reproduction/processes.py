"""Processes that wait for their turn: production drivers whose every request stops at a gate until the conductor opens it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

from exactlyonce.drivers.book import Books, Shelf
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Clock, Runtime, SystemClock
from exactlyonce.effects.attempt import Finished, Memory, Settled
from exactlyonce.effects.effect import UNKNOWN, Effect, Opened, Unknown
from exactlyonce.effects.entity import Loaded, Publish
from exactlyonce.effects.library import FindPaid, OpenNumbers, WriteBook, Written
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.port import SendReply
from exactlyonce.values.lifetimes import Lifetimes
from verification.reproduction.families import Family
from verification.reproduction.reality import (
    BOARD,
    ENTITIES,
    OUTSIDE,
    SOURCES,
    Deeds,
    Perform,
    Reality,
    forget_sessions,
    placing,
)
from verification.world.scenario import ANSWER, AT, STUMBLE, Start
from verification.world.store import ledger_of
from verification.world.workers import COMES_BACK

# The books of a process as they ship, but for what the model leaves out: time, and what was read that nobody asked for.


_LATER: Final = AT + timedelta(days=10)
"""So late that transactions are old, and not so late that their books are gone. Books are written as traces say."""


class _Late(SystemClock):
    """A clock that stands still."""

    def now(self) -> datetime:
        return _LATER


class PlayedBooks(Books):
    """The books of one process.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        shelf: `Shelf`, or a broken twin of it.

    Attributes:
        given: the transactions that were given out since the last step, in their order.
        paid: the reply to the last `FindPaid`.
    """

    def __init__(
        self, perform: Callable[[Any], Awaitable[Any]], new: Callable[[], str], clock: Clock, shelf: type[Shelf]
    ) -> None:
        runtime = Runtime(_Late(), Random(0), new)
        super().__init__(perform, runtime)
        self._shelf = shelf(new, self.within)
        self._clock = clock
        self.given: list[str] = []
        self.paid: frozenset[str] = frozenset()

    @property
    def open_now(self) -> frozenset[str]:
        return frozenset(transaction(book.id, number) for book in self._shelf.mine for number in book._open)  # noqa: SLF001

    async def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`, at the present of the process."""
        opened = await super().open(effect)
        if not isinstance(opened, Opened):
            return opened
        self.given += opened.given
        return replace(opened, at=self._clock.now())

    async def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`. Of what was read of other books nothing is kept but what is asked about, as in the model."""
        self.paid = await super().find_paid(effect)
        self._shelf._others.clear()  # noqa: SLF001
        mine = {book.id for book in self._shelf.mine}
        self._shelf._paid.update(dict.fromkeys(sorted(tx for tx in self.paid if number_of(tx)[0] not in mine)))  # noqa: SLF001
        return self.paid

    def known(self, transactions: tuple[str, ...]) -> frozenset[str]:
        """Those of the transactions that the process knows to be paid."""
        return frozenset(filter(self._shelf.pays, transactions))

    async def write_down(self, perform: Callable[[WriteBook], Awaitable[Written | Unknown]]) -> Written | Unknown:
        book, now = self._shelf.current(), self._runtime.now()
        closed, effect = book.closed, self._shelf.writing(book, now)
        reply = await perform(effect)
        if reply is not UNKNOWN:
            self._shelf.noted(book, effect.book, closed, now)
        return reply

    def is_there(self) -> None:
        """The store has the book, though that was not answered. The model spares a second writing, which says the same."""
        book, now = self._shelf.current(), self._runtime.now()
        self._shelf.noted(book, self._shelf.writing(book, now).book, book.closed, now)


MakeStore = Callable[..., CosmosStore]
ATTEMPTS: Final = ("attempt", STUMBLE)
"""Tasks that begin with what their process remembers."""
IMPATIENT = Retrying(Backoff(tries=1), Random(0))
"""In the model a strategy hears of every refusal: its retries are used up."""


class ModelClock(SystemClock):
    """The present as the model has it."""

    def __init__(self) -> None:
        self.time = AT

    def now(self) -> datetime:
        return self.time


class Turn:
    """One request at the gate."""

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
        self._heard.set_result(None)


class _GatedDriver(AsyncDriver):
    """The driver, which sends behind the gate: what is too old to be sent is parked instead, as a part of that.

    Args:
        aged: whether messages have an age. Otherwise the model's outputs carry no time to tell it by.
    """

    def __init__(self, gate: Callable[..., Awaitable[Any]], *driver: Any, aged: bool, **more: Any) -> None:
        super().__init__(*driver, **more)
        self._gate = gate
        self._aged = aged

    async def _publish(self, effect: Publish) -> SendReply:
        send = super()._publish if self._aged else self._publisher.publish
        reply: SendReply = await self._gate(send, effect)
        return reply


class Process:
    """One process of a trace.

    Args:
        make_store: makes the adapter; a broken twin may need a broken one.

    Attributes:
        start: how it began what it does, or has done last.
        books: its books; others after a crash.
    """

    def __init__(self, family: Family, reality: Reality, make_store: MakeStore) -> None:
        self._family = family
        self._reality = reality
        self._make_store = make_store
        self._connection = reality.connection()
        self._memories: dict[int, Memory] = {}
        self._turns: deque[Turn] = deque()
        self._changed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._paused: asyncio.Future[None] | None = None
        self._done: list[tuple[int, int]] = []
        self._version = 0
        self.start: Start | None = None
        self.deeds = Deeds()
        self.clock = ModelClock()
        self.books = self._new_books()

    @property
    def busy(self) -> bool:
        return self._running is not None

    async def begin(self, start: Start) -> None:
        """Begin a task, as far as its first request."""
        for container in self._reality.documents:
            await self._connection.container(container)  # The trouble of a step is not for what opens them.
        self.start = start
        self.deeds.begun.append(start.task)
        self._running = asyncio.create_task(self._run(start))
        self._running.add_done_callback(lambda _: self._changed.set())
        await self.settled()

    async def settled(self) -> None:
        """Wait until it stands at the gate, or is done."""
        while self._running is not None and not (self._turns or self._paused) and not self._running.done():
            self._changed.clear()
            await self._changed.wait()
        if self._running is not None and self._running.done():
            running, self._running = self._running, None
            try:
                await running
            except Exception as error:  # It is the attempt's outcome, as in the model.
                self.deeds.raised.append(error)

    async def go_on(self) -> None:
        """Begin another run, as far as its first request, if it has come to the end of one and has to try again."""
        if self._paused is not None:
            self._paused.set_result(None)
            self._paused = None
            await self.settled()

    async def write_down(self) -> Any:
        await self._connection.container(LIBRARY_CONTAINER)
        return await self.books.write_down(self._forgetting(self._store().perform))

    @property
    def turn(self) -> Turn | None:
        """The request at the gate; the first one, of two side by side."""
        return self._turns[0] if self._turns else None

    async def perform(self, effect: Effect[Any]) -> Any:
        assert self._running is not None  # noqa: S101
        return await self._turns[0].performed(effect, self._running)

    async def hear(self) -> None:
        """Let it hear the reply, and go on as far as its next request."""
        self._turns.popleft().hear()
        await self.settled()

    def acknowledge(self) -> None:
        self.deeds.acknowledged += self._done
        self._done.clear()

    async def give_back(self) -> None:
        """It has tried often enough, and keeps what it remembers."""
        running, self._running = self._running, None
        self._paused = None
        self._turns.clear()
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def crash(self) -> None:
        await self.give_back()
        self.books.abandon()
        self.books = self._new_books()
        self._memories.clear()
        self._done.clear()
        await self._connection.close()  # It is opened again on its next use.

    async def _run(self, start: Start) -> None:
        remembered = self._memories.pop(start.entity, Memory())
        # Chores belong to processes of their own, which remember nothing of it.
        memory = remembered if start.task in ATTEMPTS else Memory()
        following: Start | None = start
        while following is not None:
            start = following
            self._memories[start.entity] = memory
            result = await self._run_once(replace(start, memory=memory))
            memory = self._memories[start.entity] = self._kept(getattr(result, "memory", Memory()))
            following = self._family.following(start, result)
            self._note(start, result, following)
            if following is not None:
                self._paused = asyncio.get_running_loop().create_future()
                self._changed.set()
                await self._paused

    def _note(self, start: Start, result: Any, following: Start | None) -> None:
        if isinstance(result, Finished | Settled):
            again = () if following is None else following.messages
            self._done += ((start.entity, number) for number in start.messages if number not in again)
        if isinstance(result, Finished):
            self.deeds.failed += (item for item in result.failed if not isinstance(item[1], COMES_BACK))
        if following is None and start.task in ("replay", ANSWER):
            self.deeds.sent_again.append(self._version)

    async def _run_once(self, start: Start) -> Any:
        ages, transport = self._family.scenario.ages, self._reality.transport
        driver = _GatedDriver(
            self._at_gate,
            self._gated(self._store()),
            Publisher({name: Address(transport, name) for name in (OUTSIDE, SOURCES, BOARD)}),
            Runtime(self.clock, Random(0), self._new_transaction),
            lifetimes=lambda: Lifetimes() if ages is None else ages.lifetimes,
            books=self.books,
            aged=ages is not None and ages.limits,
        )
        return await driver.run(IMPATIENT.insist(self._family.step(start)))

    def _new_transaction(self) -> str:
        """An id that nobody else has."""
        fresh = self._reality.new_transaction()
        self._family.names.given(fresh)
        return fresh

    def _new_books(self) -> PlayedBooks:
        chores = self._family.scenario.chores
        return PlayedBooks(self._of_books, self._reality.new_transaction, self.clock, chores.shelf)

    async def _of_books(self, effect: Any) -> Any:
        if not self._family.scenario.books:
            return Written("0:-1#0") if isinstance(effect, WriteBook) else UNKNOWN
        return await self._at_gate(self._forgetting(self._store().perform), effect)

    def _store(self) -> CosmosStore:
        return self._make_store(self._connection, [ENTITIES])

    def _gated(self, store: CosmosStore) -> AsyncStore:
        perform = self._forgetting(placing(store.perform))

        async def performed(effect: Effect[Any]) -> Any:
            is_sending = self.turn is not None and isinstance(self.turn.effect, Publish)
            return await (perform(effect) if is_sending else self._at_gate(perform, effect))

        return cast("AsyncStore", SimpleNamespace(perform=performed))

    def _forgetting(self, perform: Perform) -> Perform:
        """A request by a client that remembers no session.

        The SDK adds tokens of its own to reads that carry none. The model leaves them out, so that it covers a process that has
        just been started, one that has several clients, and reads side by side, which are sent before either is answered.
        """

        async def performed(effect: Any) -> Any:
            await forget_sessions(self._connection)
            return await perform(effect)

        return performed

    async def _at_gate(self, perform: Callable[[Any], Awaitable[Any]], effect: Effect[Any]) -> Any:
        turn = Turn(effect)
        self._turns.append(turn)
        self._changed.set()
        reply = await turn.taken(perform)
        if isinstance(reply, Loaded):
            self._version = ledger_of(reply.document).version
        return reply

    def _kept(self, memory: Memory) -> Memory:
        scenario = self._family.scenario
        trusts = scenario.remembering
        memory = replace(memory, saved=memory.saved and replace(memory.saved, right=TRUSTED) if trusts else None)
        if not scenario.tokens:
            memory = replace(memory, entity_token=None, library_token=None)
        return memory
