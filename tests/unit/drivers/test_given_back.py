"""A lane does not commit a message whose delivery was given back, since it may have been settled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import Colocated, Envelope, TryAgainLater, VersionStream
from exactlyonce.attempt import Memory, Settled, Strategy, Work
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes, Processed
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Awaited, Effect
from exactlyonce.effects.library import CloseNumbers, OpenNumbers
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock, StoreHistory
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import message_hash
from tests.asking import settle, settle_by
from tests.samples import accounts, deposit, ledger_queue
from tests.unit.drivers.waiting import ENTITY, WaitingLoads, turn

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
        self.strategy, self.work = strategy, Work(ENTITY, (), self.runner, self.runner.absent)

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
