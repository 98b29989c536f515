"""Both drivers give the same result: the same generator makes the same requests in the same order."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from functools import partial
from random import Random
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox
from exactlyonce.drivers.driver import AsyncDriver, Backoff, BlockingDriver, Retrying
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Again, Finished, Memory, Settled, Work
from exactlyonce.effects.effect import Awaited, Begin, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, LoadEntity, Publish
from exactlyonce.effects.library import KEPT, DeleteBlobs, HasPages, WriteOnce
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.blobs import Blob
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.world import InstantClock, SeededTrouble
from exactlyonce.transports.port import MemoryTransport, SendReply
from exactlyonce.values.envelope import Envelope
from tests.asking import settle
from tests.samples import accounts, deposit
from tests.unit.drivers.waiting import ENTITY

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
_NOTHING = Memory()
RUNNER = Runner(accounts(), ENTITY, Routes({"receipts": 1024 * 1024}))


class Setting:
    """Store, queue, clock and chance by seed; what was asked for."""

    def __init__(self, seed: int = 0) -> None:
        random = Random(seed)
        self.clock = InstantClock(AT)
        self.runtime = Runtime(self.clock, random, lambda: f"{random.getrandbits(64):x}")
        self.store = MemoryStore(
            self.clock.now, SeededTrouble(Random(seed), {Fate.LOST_AFTER: 0.1, Fate.BUSY: 0.2}, stale=0.2, lag=2)
        )
        self.transport = MemoryTransport()
        self.publisher = Publisher({"receipts": Address(self.transport, "receipts")})
        self.retrying = Retrying(Backoff(), random)
        self.asked: list[Effect[Any]] = []

    def steps(self) -> Step[list[Finished]]:
        """Ten messages, one after the other, some of them twice."""
        results: list[Finished] = []
        for number in (1, 2, 3, 2, 4, 1, 5, 6, 6, 7):
            memory = results[-1].memory if results else Memory()
            attempts = partial(attempt, deposit(f"m-{number}", padding="x" * (number % 3) * 200))
            finished = yield from watched(self.retrying.process(ENTITY, attempts, memory), self.asked)
            results.append(finished)
        return results

    def publish(self, effect: Publish) -> SendReply:
        self.transport.queues["receipts"].extend(effect.outputs)
        return PUBLISHED


def attempt(message: Envelope, memory: Memory = _NOTHING) -> Step[Finished | Again]:
    return Outbox().attempt(Work(ENTITY, (message,), RUNNER, RUNNER.absent), memory)


def watched(step: Step[Any], asked: list[Effect[Any]]) -> Step[Any]:
    reply = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            return finished.value
        asked.append(effect)
        reply = yield effect


@pytest.mark.parametrize("seed", range(8))
async def test_both_drivers_give_the_same_result_and_leave_the_same_world(seed: int) -> None:
    one, other = Setting(seed), Setting(seed)
    awaited = await AsyncDriver(Awaited(one.store), one.publisher, one.runtime).run(one.steps())
    blocked = BlockingDriver(other.store, other.publish, other.runtime).run(other.steps())
    assert awaited == blocked
    assert one.asked == other.asked
    assert one.store.entities == other.store.entities
    assert one.store.library == other.store.library
    assert one.transport.queues == other.transport.queues
    assert one.clock.now() == other.clock.now() > AT


async def test_settling_a_message_does_not_pay_what_another_one_owes() -> None:
    """An outbox that is told in part would close the numbers of the rest."""
    setting, refuses = Setting(), True
    transport = MemoryTransport(outcome=lambda _: (not refuses, not refuses))
    driver = AsyncDriver(
        Awaited(MemoryStore(setting.clock.now)),
        Publisher({"receipts": Address(transport, "receipts")}),
        setting.runtime,
    )
    for id in ("m-1", "m-2"):
        assert isinstance(await driver.run(attempt(deposit(id))), Again)
    refuses = False
    settled = await driver.run(settle(ENTITY, deposit("m-2"), "given up", RUNNER.absent, Memory()))
    assert isinstance(settled, Settled)
    assert len(transport.queues["receipts"]) == 1
    assert isinstance(await driver.run(attempt(deposit("m-1"))), Finished)
    assert len({output.id for output in transport.queues["receipts"]}) == 2


def test_the_blocking_driver_makes_concurrent_requests_one_after_the_other() -> None:
    def both() -> Step[tuple[Any, Any]]:
        replies = yield from Together(Begin(more=1), LoadEntity(ENTITY))
        return replies

    setting = Setting(3)
    begun, loaded = BlockingDriver(setting.store, setting.publish, setting.runtime).run(both())
    assert (begun.at, loaded.document) == (AT, None)


class Gates:
    """A store whose two requests wait until a test says how they end."""

    def __init__(self) -> None:
        self.loading: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.finding: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def perform(self, effect: Effect[Any]) -> Any:
        return await {LoadEntity: self.loading, HasPages: self.finding}[type(effect)]


def looking() -> Step[tuple[Any, Any]]:
    replies = yield from Together(LoadEntity(ENTITY), HasPages(ENTITY))
    return replies


@pytest.fixture
async def gates() -> Gates:
    return Gates()


def look(gates: Gates) -> asyncio.Task[tuple[Any, Any]]:
    driver = AsyncDriver(gates, Publisher({}), Runtime())
    return asyncio.create_task(driver.run(looking()))


async def test_two_concurrent_requests_may_be_answered_in_either_order(gates: Gates) -> None:
    both = look(gates)
    gates.finding.set_result("found")
    await asyncio.sleep(0)
    gates.loading.set_result("loaded")
    assert await both == ("loaded", "found")


@pytest.mark.parametrize("failing", ["loading", "finding"])
async def test_an_error_of_one_of_two_concurrent_requests_cancels_the_other(gates: Gates, failing: str) -> None:
    both = look(gates)
    await asyncio.sleep(0)
    getattr(gates, failing).set_exception(KeyError(failing))
    if failing == "finding":  # A caller that waits for both hears of the second after the first.
        gates.loading.set_result("loaded")
    with pytest.raises(KeyError, match=failing):
        await both
    assert gates.loading.done()
    assert gates.finding.done()


async def test_cancelling_ends_both_of_two_concurrent_requests(gates: Gates) -> None:
    both = look(gates)
    await asyncio.sleep(0)
    both.cancel()
    with pytest.raises(asyncio.CancelledError):
        await both
    assert gates.loading.cancelled()
    assert gates.finding.cancelled()


WRITING = WriteOnce((Blob("a/b", b"x", "t/x"),))


async def test_both_drivers_write_blobs_and_delete_them() -> None:
    def writing() -> Step[Any]:
        kept = yield from WRITING
        yield from DeleteBlobs(("other",))
        return kept

    one, other = MemoryBlobs(), MemoryBlobs()
    setting = Setting()
    driver = AsyncDriver(Awaited(setting.store), setting.publisher, setting.runtime, AwaitedBlobs(one))
    assert await driver.run(writing()) is KEPT
    assert BlockingDriver(setting.store, setting.publish, setting.runtime, other).run(writing()) is KEPT
    assert list(one.written) == list(other.written) == ["a/b"]


@pytest.mark.parametrize("effect", [WRITING, DeleteBlobs(("a",))], ids=lambda effect: type(effect).__name__)
async def test_without_a_container_an_effect_on_blobs_raises_with_advice(effect: Effect[Any]) -> None:
    setting = Setting()
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__blobContainer"):
        await AsyncDriver(Awaited(setting.store), setting.publisher, setting.runtime).run(iter(effect))
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__blobContainer"):
        BlockingDriver(setting.store, setting.publish, setting.runtime).run(iter(effect))
