"""Deadlines of deliveries: none waits longer, none ends an attempt that others wait for, and what was given back is not
committed: it may have been settled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import Colocated, Envelope, TryAgainLater, VersionStream
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes, Processed
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Again, Finished, Memory, Settled, Strategy, Work
from exactlyonce.effects.effect import Awaited, Effect, Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import CloseNumbers, OpenNumbers
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock, StoreHistory
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from tests.asking import settle, settle_by
from tests.samples import accounts, deposit, ledger_queue
from tests.unit.drivers.waiting import ENTITY, WaitingLoads, turn

LOAD = LoadEntity(ENTITY)
AGAIN = Again(Memory(), "of this")


class Requests:
    """A strategy each of whose attempts makes one request, which hangs until it is answered."""

    forgets = staticmethod(lambda envelope: True)
    group_limit = 2

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.answers: list[Finished | Again] = []

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        self.groups.append([envelope.id for envelope in work.messages])
        yield from LOAD
        return self.answers.pop(0) if self.answers else Finished(Memory())

    def mark(self, entity: Any, memory: Memory) -> Step[Finished | Again]:
        yield from ()
        return Finished(Memory())


class Lane:
    """One entity whose deliveries may take ten seconds."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.strategy = Requests()
        self.store = WaitingLoads(MemoryStore(self.clock.now))
        driver = AsyncDriver(self.store, Publisher({}), Runtime(self.clock))
        self.lanes = Lanes(driver, Retrying(Backoff(seconds=10), Random(1)), self.clock)

    async def deliver(self, *ids: str) -> list[asyncio.Task[Processed]]:
        work = Work(ENTITY, (), lambda *_: pytest.fail("the strategy handles"), Json("{}"))
        tasks = [asyncio.create_task(self.lanes.process(self.strategy, work, deposit(id))) for id in ids]
        await turn()
        return tasks

    async def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await turn()


@pytest.fixture
async def lane() -> AsyncIterator[Lane]:
    found = Lane()
    yield found
    found.lanes.abandon()
    await turn()


def error_of(delivery: asyncio.Task[Processed]) -> str:
    error = delivery.exception()
    assert isinstance(error, TryAgainLater)
    return str(error)


async def test_a_delivery_is_given_back_at_its_deadline_whatever_is_under_way(lane: Lane) -> None:
    (delivery,) = await lane.deliver("m-1")
    await lane.after(9.9)
    assert not delivery.done()
    await lane.after(0.1)
    assert error_of(delivery).startswith(
        "Message web/m-1: Entity account/a: the 10 s that a delivery may take were over, and attempt 1 was under way. "
        "Nothing is lost: give the message back to its queue."
    )


async def test_the_first_delivery_ends_alone_and_the_attempt_goes_on_for_the_others(lane: Lane) -> None:
    (hanging,) = await lane.deliver("m-0")
    (first,) = await lane.deliver("m-1")
    await lane.after(6)
    (second,) = await lane.deliver("m-2")
    lane.strategy.answers = [Finished(Memory()), AGAIN]
    await lane.store.let_through()
    assert hanging.exception() is None
    await lane.after(4)
    assert "attempt 1 was under way" in error_of(first)
    await lane.store.let_through()  # This attempt did not finish; the next one may still begin.
    await lane.after(2)
    await lane.store.let_through()
    assert second.exception() is None
    assert lane.strategy.groups == [["m-0"], ["m-1", "m-2"], ["m-2"]]


async def test_the_attempt_ends_at_the_latest_deadline(lane: Lane) -> None:
    both = await lane.deliver("m-1", "m-2")
    lane.strategy.answers = [AGAIN]
    await lane.after(10)
    await lane.store.let_through()
    assert all(error_of(item) for item in both)
    await lane.after(100)
    assert lane.strategy.groups == [["m-1", "m-2"]]


async def test_a_waiting_delivery_is_given_back_too_and_not_processed_later(lane: Lane) -> None:
    await lane.deliver("m-1", "m-2")
    (late,) = await lane.deliver("m-3")
    await lane.after(5)
    (other,) = await lane.deliver("m-4")
    await lane.after(5)
    assert "its turn had not come: attempt 1 for messages before it was under way" in error_of(late)
    await lane.store.let_through()
    await lane.store.let_through()
    assert other.exception() is None
    assert lane.strategy.groups == [["m-1", "m-2"], ["m-4"]]


async def test_a_delivery_cancelled_before_its_turn_is_not_processed(lane: Lane) -> None:
    await lane.deliver("m-1", "m-2")
    (cancelled, kept) = await lane.deliver("m-3", "m-4")
    cancelled.cancel()
    await lane.store.let_through()
    await lane.store.let_through()
    assert kept.exception() is None
    assert lane.strategy.groups == [["m-1", "m-2"], ["m-4"]]


async def test_no_timer_runs_without_deliveries(lane: Lane) -> None:
    before = asyncio.all_tasks()
    for id in ("m-1", "m-2"):  # The second time it begins anew.
        await lane.deliver(id)
        await lane.store.let_through()
        await lane.lanes.quiesce()
        await turn()
        assert asyncio.all_tasks() == before
    (late,) = await lane.deliver("m-3")
    await lane.after(10)
    assert error_of(late)


STRATEGIES: list[tuple[Strategy, str]] = [
    (Outbox(), "outbox"),
    (Colocated(), "colocated"),
    (VersionStream(), "stream"),
]


class Game:
    """One entity whose deliveries may take ten seconds, and a settler in another process."""

    def __init__(self, strategy: Strategy, protocol: str) -> None:
        self.protocol = protocol
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock.now)
        self.slow = WaitingLoads(self.store)
        publisher = Publisher({"receipts": Address(MemoryTransport(), "receipts")})
        runtime = Runtime(self.clock)
        self.settler = AsyncDriver(Awaited(self.store), publisher, runtime)
        self.retrying = Retrying(Backoff(base=0.0, cap=0.0, seconds=10), Random(1))
        driver = AsyncDriver(self.slow, publisher, runtime)
        self.lanes = Lanes(driver, self.retrying, self.clock)
        entity = accounts(strategy)
        self.runner = Runner(entity, ENTITY, Routes.to((ledger_queue,), publisher.limits))
        self.strategy = strategy
        self.work = Work(ENTITY, (), self.runner, self.runner.absent)

    async def deliver(self, envelope: Envelope) -> asyncio.Task[Processed]:
        task = asyncio.create_task(self.lanes.process(self.strategy, self.work, envelope))
        await turn()
        return task

    async def settle(self, envelope: Envelope) -> str:
        work = Work(ENTITY, (envelope,), self.runner, self.runner.absent)

        def settling(memory: Memory) -> Any:
            if self.protocol == "outbox":
                return settle(ENTITY, envelope, "given up", self.runner.absent, memory)
            return settle_by(self.protocol, work, "given up", memory)

        settled: Settled = await self.settler.process(self.retrying, ENTITY, settling, Memory())
        return settled.outcome

    def committed(self) -> set[str]:
        """Which of the messages were processed."""
        names = {message_hash(key): key for key in ("web/x", "web/m", "web/n", "web/other")}
        return {names[commit.message] for commit in StoreHistory(self.store).commits}


@pytest.fixture(params=STRATEGIES, ids=lambda item: item[1])
async def game(request: Any) -> AsyncIterator[Game]:
    found = Game(*request.param)
    yield found
    found.lanes.abandon()
    await turn()


async def two_in_one_group(game: Game) -> tuple[asyncio.Task[Processed], asyncio.Task[Processed]]:
    """m waits from the beginning, n since five seconds later; their common attempt has asked for the entity."""
    await game.deliver(deposit("x"))
    m = await game.deliver(deposit("m"))
    game.clock.advance(5)
    n = await game.deliver(deposit("n"))
    await game.slow.let_through()  # x is done, and the group of m and n begins.
    game.clock.advance(5)
    await turn()
    assert isinstance(m.exception(), TryAgainLater)
    return m, n


async def test_a_message_parked_meanwhile_is_not_committed_by_the_attempt_under_way(game: Game) -> None:
    _, n = await two_in_one_group(game)
    assert await game.settle(deposit("m")) == "parked"
    await (
        game.slow.let_through()
    )  # The reply is of after the fence, so no condition keeps this attempt from committing.
    assert n.exception() is None
    assert game.committed() == {"web/x", "web/n"}


async def test_a_message_parked_meanwhile_is_not_committed_by_the_attempt_after_a_conflict(game: Game) -> None:
    _, n = await two_in_one_group(game)
    work = Work(ENTITY, (deposit("other"),), game.runner, game.runner.absent)
    strategy = game.strategy
    await game.settler.process(game.retrying, ENTITY, lambda memory: strategy.attempt(work, memory), Memory())
    assert await game.settle(deposit("m")) == "parked"
    while game.slow.waiting:
        await game.slow.let_through()
    assert n.exception() is None
    assert game.committed() == {"web/x", "web/other", "web/n"}


async def test_a_copy_that_is_still_held_keeps_its_message_in_the_group(game: Game) -> None:
    await game.deliver(deposit("x"))
    await game.deliver(deposit("m"))
    game.clock.advance(5)
    copy = await game.deliver(deposit("m"))
    await game.slow.let_through()
    game.clock.advance(5)
    await turn()
    await game.slow.let_through()
    assert copy.exception() is None
    assert game.committed() == {"web/x", "web/m"}


async def test_an_attempt_without_waiting_deliveries_commits_nothing_and_closes_its_numbers() -> None:
    game = Game(*STRATEGIES[0])
    asked: list[Effect[Any]] = []
    perform = game.lanes._driver._performed

    def noted(effect: Effect[Any]) -> Any:
        asked.append(effect)
        return perform(effect)

    game.lanes._driver._performed = noted  # type: ignore[method-assign]
    delivery = await game.deliver(deposit("m"))
    delivery.cancel()
    await turn()
    await game.slow.let_through()
    (opened,) = (item for item in asked if isinstance(item, OpenNumbers))
    assert (opened.version, opened.messages) == (0, ("web/m",))
    assert [len(item.transactions) for item in asked if isinstance(item, CloseNumbers)] == [1, 0]
    assert game.committed() == set()
    game.lanes.abandon()


async def test_the_number_of_a_message_given_back_is_closed_though_others_are_committed() -> None:
    game = Game(*STRATEGIES[0])
    _, n = await two_in_one_group(game)
    await game.slow.let_through()
    assert n.exception() is None
    (book,) = game.lanes._driver.books._shelf.mine
    assert (book.document(game.clock.now(), timedelta(0)).open, book.closed) == ((), 3)
    game.lanes.abandon()
