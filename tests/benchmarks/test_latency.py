"""How fast messages are processed if nothing but the latency of requests counts: on virtual time, so to the millisecond."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from statistics import median
from typing import Any

import pytest

from benchmarks.accounting import NO_REQUEST, RoundTrips
from benchmarks.contenders import Contender, contenders, reports
from benchmarks.subjects import RECENT, TIMED
from exactlyonce import Envelope
from exactlyonce.effects.effect import Effect
from exactlyonce.testing.loop import VirtualClock, VirtualLoop
from exactlyonce.testing.world import World
from handlers.leader_board import leader_board
from tests.benchmarks.in_memory import competing_operations

LONG = 1_000.0
"""Seconds that no history of these takes."""
BY_NAME = {contender.name: contender for contender in contenders()}


class Latency(RoundTrips):
    """Lets every request take so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def perform(self, effect: Effect[Any], perform: Callable[[Any], Awaitable[Any]]) -> Any:
        if not isinstance(effect, NO_REQUEST):
            await asyncio.sleep(self._seconds)
        return await super().perform(effect, perform)


def played(contender: Contender, messages: Sequence[Envelope], in_flight: int, latency: float) -> tuple[float, float]:
    """Seconds for all messages, and milliseconds for the median one; `latency` is in milliseconds."""
    loop = VirtualLoop(limit=1_000_000)  # type: ignore[abstract]  # It has no I/O.
    world = World([leader_board, reports], clock=VirtualClock(loop, start=RECENT + timedelta(days=2)))
    process = world.process(observer=Latency(latency / 1000))
    competing = competing_operations(world.store)

    async def perform(effect: Effect[Any]) -> Any:
        return competing[type(effect)](effect)

    process._driver._others = {**process._driver._others, **dict.fromkeys(competing, perform)}
    waiting = iter(messages)
    taken: list[float] = []

    async def work() -> None:
        for envelope in waiting:
            began = loop.time()
            await process.deliver(contender.entity, envelope)
            taken.append(loop.time() - began)

    async def play() -> None:
        await asyncio.gather(*(work() for _ in range(in_flight)))
        taken.append(loop.time())
        await process.crash()

    loop.create_task(play())
    loop.run_until_idle(deadline=LONG)
    assert len(taken) == len(messages) + 1
    return taken.pop(), median(taken) * 1000


def on_one_entity(contender: Contender) -> list[Envelope]:
    return [contender.message("hot", number) for number in range(1, 321)]


def on_many_entities(contender: Contender) -> list[Envelope]:
    return [contender.message(f"game-{game}", number) for number in range(1, 21) for game in range(20)]


@pytest.mark.parametrize(
    ("messages", "in_flight", "ours", "theirs", "times"),
    [
        # On one entity 5 commits of 64 messages, three of them after a load. The first asks for pages and waits for the book;
        # each of the others cuts a page. Against seven steps for each message.
        (on_one_entity, 64, 5 + 3 + 2 + 4, 320 * 7, 100),
        # On twenty at once 20 commits one after the other, three of them after a load; the first as above.
        (on_many_entities, 20, 20 + 3 + 2, 20 * 7, 5),
    ],
)
def test_the_outbox_is_as_many_times_as_fast_as_its_round_trips_are_fewer(
    messages: Callable[[Contender], list[Envelope]], in_flight: int, ours: int, theirs: int, times: float
) -> None:
    outbox, seven = BY_NAME[TIMED], BY_NAME["seven steps"]
    took = [played(item, messages(item), in_flight, 5)[0] for item in (outbox, seven)]
    assert took == pytest.approx([0.005 * ours, 0.005 * theirs])
    assert took[1] >= times * took[0]


def test_the_median_message_takes_half_as_long_as_without_any_guarantee() -> None:
    p50s = [
        played(contender, on_many_entities(contender), 4, 20)[1] for contender in (BY_NAME[TIMED], BY_NAME["naive"])
    ]
    assert p50s == pytest.approx([20, 40])


@pytest.mark.parametrize(
    ("messages", "in_flight", "expected"),
    [(on_many_entities, 4, [5, 10]), (on_one_entity, 64, [15, 640])],
    ids=["quiet", "busy"],
)
def test_the_median_answer_takes_no_longer_than_without_any_guarantee(
    messages: Callable[[Contender], list[Envelope]], in_flight: int, expected: list[float]
) -> None:
    """Both read and write, requests for one entity take turns, and sending takes no time; but naive ones share no commits."""
    p50s = []
    for contender in (BY_NAME[TIMED], BY_NAME["naive"]):
        requests = [replace(message, asked="fingerprint") for message in messages(contender)]
        p50s.append(played(contender, requests, in_flight, 5)[1])
    assert p50s == pytest.approx(expected)
