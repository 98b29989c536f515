"""Deadlines of deliveries: none waits longer, and none ends an attempt that others wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from exactlyonce import TryAgainLater
from exactlyonce.attempt import Again, Finished, Memory, Work
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes, Processed
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
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


async def test_deadlines_are_kept_again_after_a_time_without_deliveries(lane: Lane) -> None:
    (early,) = await lane.deliver("m-1")
    await lane.store.let_through()
    assert early.exception() is None
    await lane.after(60)
    (late,) = await lane.deliver("m-2")
    await lane.after(10)
    assert "attempt 1 was under way" in error_of(late)


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


async def test_a_lane_whose_messages_were_all_given_back_ends_and_the_next_one_serves_copies(lane: Lane) -> None:
    await lane.deliver("m-1", "m-2")
    await lane.deliver("m-3")
    await lane.after(10)
    await lane.store.let_through()
    assert lane.strategy.groups == [["m-1", "m-2"]]
    (copy,) = await lane.deliver("m-3")
    await lane.store.let_through()
    assert copy.exception() is None


async def test_a_delivery_cancelled_before_its_turn_is_not_processed(lane: Lane) -> None:
    await lane.deliver("m-1", "m-2")
    (cancelled, kept) = await lane.deliver("m-3", "m-4")
    cancelled.cancel()
    await lane.store.let_through()
    await lane.store.let_through()
    assert kept.exception() is None
    assert lane.strategy.groups == [["m-1", "m-2"], ["m-4"]]


async def test_a_delivery_done_in_time_never_fails_later(lane: Lane) -> None:
    (delivery,) = await lane.deliver("m-1")
    await lane.store.let_through()
    await lane.after(9)
    (following,) = await lane.deliver("m-2")
    await lane.after(9)
    assert delivery.exception() is None
    assert not following.done()
    await lane.after(1)
    assert error_of(following)


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
