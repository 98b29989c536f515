"""Metrics count what happened, and no more, under all faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

import pytest

from exactlyonce import Colocated, Envelope, Outbox, Resequencer, TryAgainLater, VersionStream
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.attempt import Strategy, Work
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, Effect, Reply
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import WriteBook, Written
from exactlyonce.handling.runner import Runner
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import Place
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.telemetry import metrics as names
from exactlyonce.testing.world import InstantClock, ManualClock, Process, SeededTrouble, World
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards, leader_board
from tests.asking import sweep
from tests.samples import SENT, accounts, deposit, ledger_queue
from tests.unit.telemetry.observed import Observed

STRATEGIES: dict[str, Strategy] = {
    "outbox": Outbox(),
    "co-located": Colocated(),
    "stream": VersionStream(snapshot_every=3),
}
FATES = {Fate.LOST_BEFORE: 0.08, Fate.LOST_AFTER: 0.08, Fate.REPEATED: 0.1, Fate.DELAYED: 0.08, Fate.BUSY: 0.08}
WITHOUT_REPLY = ("delete_staged", "delete_pages", "replace_companions")
"""Best effort: nobody learns what became of them."""


class Noted(SeededTrouble):
    """Trouble that remembers what it did."""

    def __init__(self, seed: int) -> None:
        super().__init__(Random(seed), FATES, stale=0.2, lag=3)
        self.fates: Counter[tuple[str, Fate]] = Counter()

    def fate(self, operation: str) -> Fate:
        drawn = super().fate(operation)
        self.fates[operation, drawn] += 1
        return drawn

    def count(self, *fates: Fate) -> int:
        """How often these befell a write that is answered."""
        return sum(number for (name, fate), number in self.fates.items() if fate in fates and name not in WITHOUT_REPLY)


class Answering(MemoryStore):
    """A store that remembers what it answered, by itself."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.answers: Counter[str] = Counter()

    def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        reply = super().perform(effect)
        kind = reply.value if reply in (UNKNOWN, BEHIND) else type(reply).__name__ if _says(reply) else None
        if kind is not None:
            self.answers[kind] += 1
        return reply


def _says(reply: Any) -> bool:
    return isinstance(reply, Conflict | Busy)


class Setting:
    """Accounts in a world, and one process or several that are observed."""

    def __init__(self, strategy: Strategy, trouble: Any = None, clock: ManualClock | None = None, **more: Any) -> None:
        clock = clock or InstantClock()
        self.store = Answering(clock.now, trouble) if trouble else Answering(clock.now)
        self.world = World([ledger_queue], clock=clock, store=self.store, **more)
        self.observed = Observed(clock)
        self.entity = accounts(strategy)
        self.process = self.started()

    def started(self, backoff: Backoff | None = None) -> Process:
        return self.world.process(observer=self.observed.telemetry, backoff=backoff)

    async def insist(self, process: Process, message: Envelope) -> int:
        """Deliver a message until it is acknowledged; return how often that took."""
        for deliveries in count(1):
            with suppress(TryAgainLater):
                await process.deliver(self.entity, message)
                return deliveries
        raise AssertionError


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
async def test_the_numbers_of_a_faulty_run_are_those_of_its_faults(name: str, seed: int) -> None:
    trouble = Noted(seed)
    setting = Setting(STRATEGIES[name], trouble)
    processes = [setting.process, setting.started()]
    random, deliveries = Random(seed), 0
    order = [*range(40), *(random.randrange(40) for _ in range(40))]
    for number in order:
        deliveries += await setting.insist(random.choice(processes), deposit(f"m-{number}"))
    for process in processes:
        await process.close()
    observed = setting.observed
    assert trouble.count(*FATES) >= 10
    assert observed.total(names.PROCESSED) == 40
    assert observed.total(names.COMMIT) == 40
    counts = [observed.total(item) for item in (names.DUPLICATES, names.FAILED)]
    assert deliveries == 40 + sum(counts)
    assert observed.total(names.REFUSED, exactlyonce_reply="busy") == trouble.count(Fate.BUSY)
    assert observed.total(names.UNKNOWN_OUTCOMES) == trouble.count(Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.DELAYED)
    assert observed.total(names.REFUSED, exactlyonce_reply="behind") == setting.store.answers["behind"]
    assert observed.total(names.CONFLICTS) == setting.store.answers["Conflict"] > 0


@pytest.mark.parametrize(("name", "found"), [("outbox", "ledger"), ("co-located", "record"), ("stream", "stream")])
async def test_a_duplicate_is_counted_by_where_it_was_found(name: str, found: str) -> None:
    setting = Setting(STRATEGIES[name])
    for _ in range(3):
        await setting.process.deliver(setting.entity, deposit("m-1"))
    assert setting.observed.total(names.PROCESSED, exactlyonce_entity_type="account") == 1
    assert setting.observed.by(names.DUPLICATES, "exactlyonce.found") == {found: 2}


@pytest.mark.parametrize("name", STRATEGIES)
async def test_a_duplicate_with_another_content_is_counted_apart(name: str) -> None:
    setting = Setting(STRATEGIES[name])
    for amount in (1, 1, 2):
        await setting.process.deliver(setting.entity, deposit("m-1", amount=amount))
    assert setting.observed.total(names.DUPLICATES) == 2
    assert setting.observed.total(names.DIFFERING, exactlyonce_entity_type="account") == 1


async def test_a_duplicate_whose_mark_left_the_ledger_is_found_in_a_page() -> None:
    setting = Setting(Outbox(), clock=(clock := InstantClock()))
    for number in (*range(40), 0):
        await setting.process.deliver(setting.entity, deposit(f"m-{number}"))
        clock.advance(1)
    assert setting.observed.by(names.DUPLICATES, "exactlyonce.found") == {"page": 1}


async def test_open_numbers_in_a_book_are_measured_when_the_book_is_written() -> None:
    observed = Observed(ManualClock())

    async def write(reply: Any, *open: int) -> None:
        async def perform(_: Any) -> Any:
            return reply

        await observed.telemetry.perform(WriteBook(Book("b-1", 9, open, open[:1]), 60), perform)

    await write(Written("0:0#1"), 3, 5)
    await write(UNKNOWN, 3, 5, 7)
    assert (observed.total(names.OPEN), observed.total(names.STUCK)) == (2, 1)
    await write(Written("0:0#2"))
    assert (observed.total(names.OPEN), observed.total(names.STUCK)) == (0, 0)


async def test_copies_in_one_group_are_one_message() -> None:
    setting = Setting(Outbox(), clock=ManualClock())
    copies = (setting.process.deliver(setting.entity, deposit(id)) for id in ("m-1", "m-2", "m-1", "m-1"))
    await asyncio.gather(*copies)
    assert setting.observed.total(names.PROCESSED) == setting.observed.total(names.COMMIT) == 2
    assert setting.observed.count(names.COMMIT) == 1
    assert setting.observed.by(names.DUPLICATES, "exactlyonce.found") == {"group": 2}


async def test_a_message_whose_outputs_could_not_be_published_is_counted_once() -> None:
    lost = iter([False] * 2)
    setting = Setting(Outbox(), outcome=lambda _: (next(lost, True), True))
    await setting.process.deliver(setting.entity, deposit("m-1"))
    observed = setting.observed
    assert (observed.total(names.PROCESSED), observed.total(names.DUPLICATES)) == (1, 0)
    assert observed.by(names.UNFINISHED, "exactlyonce.reason") == {
        "the outputs could not be published": 1,
        "owed outputs could not be published": 1,
    }
    assert observed.total(names.UNKNOWN_OUTCOMES, exactlyonce_operation="publish") == 2
    assert observed.by(names.PUBLISHED_OUTPUTS, "exactlyonce.occasion") == {"attempt": 1}


async def test_a_message_given_back_after_its_commit_counts_as_a_duplicate() -> None:
    lost = iter([False] * 2)
    setting = Setting(Outbox(), outcome=lambda _: (next(lost, True), True))
    hasty = setting.started(Backoff(tries=2))
    with pytest.raises(TryAgainLater):
        await hasty.deliver(setting.entity, deposit("m-1"))
    await setting.process.deliver(setting.entity, deposit("m-1"))
    observed = setting.observed
    assert observed.total(names.PROCESSED) == 1
    assert observed.by(names.FAILED, "error.type") == {"TryAgainLater": 1}
    assert observed.by(names.DUPLICATES, "exactlyonce.found") == {"ledger": 1}


async def test_the_lag_is_from_a_messages_time_to_its_commit() -> None:
    clock = ManualClock()
    setting = Setting(Outbox(), clock=clock)
    early = Envelope("web", "m-1", "account.deposit", Json.of({"account": "a"}), clock.now() - timedelta(seconds=90))
    ahead = Envelope("web", "m-2", "account.deposit", Json.of({"account": "a"}), clock.now() + timedelta(seconds=90))
    for message in (early, early, ahead, deposit("m-4")):
        await setting.process.deliver(setting.entity, message)
    assert setting.observed.total(names.LAG) == 90
    assert setting.observed.count(names.LAG) == 3


async def test_outputs_that_a_sweep_publishes_are_counted() -> None:
    reaches = [False]
    setting = Setting(Outbox(), outcome=lambda _: (reaches[0], True))
    hasty = setting.started(Backoff(tries=1))
    with pytest.raises(TryAgainLater):
        await hasty.deliver(setting.entity, deposit("m-1", answers=3))
    reaches[0] = True
    ref = setting.entity.ref("a")
    await setting.process.run(ref, lambda memory: sweep(ref, memory))
    assert setting.observed.by(names.OWED, "exactlyonce.occasion") == {"sweep": 3}
    assert setting.observed.by(names.PUBLISHED_OUTPUTS, "exactlyonce.occasion") == {"sweep": 3}


class Board:
    """The leader board, fed by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = World([leader_board], clock=self.clock)
        self.observed = Observed(self.clock)
        self.process = self.world.process(observer=self.observed.telemetry)

    async def hit(self, *numbers: int) -> None:
        for number in numbers:
            data = Json.of({"id": f"o-{number}", "game_id": "g-1", "round": 0, "attempt": number})
            place = Place("fromrange", boards.ref("g-1").source, number)
            envelope = Envelope("range", f"o-{number}", "shooting-range.hit", data, SENT, extensions=place.extensions)
            await self.process.deliver(boards, envelope)

    async def tend(self) -> None:
        ref, strategy = boards.ref("g-1"), boards.strategy
        assert isinstance(strategy, Resequencer)
        runner = Runner(boards, ref, self.world.routes)
        work = Work(ref, (), runner, runner.absent)
        await self.process.run(ref, lambda memory: strategy.tend(work, memory))


async def test_messages_that_come_too_early_are_held_until_they_are_released() -> None:
    board = Board()
    await board.hit(2, 3, 2)
    held = [board.observed.total(item) for item in (names.HELD, names.PROCESSED, names.DUPLICATES)]
    assert held == [2, 0, 1]
    await board.hit(1, 2)
    assert board.observed.total(names.PROCESSED) == 3
    assert board.observed.total(names.COMMIT) == 3
    assert board.observed.by(names.DUPLICATES, "exactlyonce.found") == {"number": 2}


async def test_the_age_of_a_gap_is_measured_when_the_read_model_is_tended() -> None:
    board = Board()
    await board.hit(2)
    board.clock.advance(120)
    await board.tend()
    assert board.observed.total(names.GAP_AGE) == 120
    assert board.observed.count(names.GAP_AGE) == 1


async def test_a_message_that_is_parked_is_counted() -> None:
    setting, message = Setting(Outbox()), deposit("m-1")
    ref = setting.entity.ref("a")
    runner = Runner(setting.entity, ref, setting.world.routes)
    work = Work(ref, (message,), runner, runner.absent)
    await setting.process.run(ref, lambda memory: setting.entity.strategy.settle(work, message, "given up", memory))
    assert setting.observed.by(names.PARKED, "exactlyonce.entity.type") == {"account": 1}
    assert setting.observed.total(names.MAINTENANCE_FAILED) == 0


async def test_maintenance_that_fails_is_counted_by_its_error_and_a_delivery_is_not() -> None:
    setting = Setting(Outbox(), outcome=lambda _: (False, True))
    hasty = setting.started(Backoff(tries=1))
    with pytest.raises(TryAgainLater):
        await hasty.deliver(setting.entity, deposit("m-1", answers=1))
    assert setting.observed.total(names.MAINTENANCE_FAILED) == 0
    ref = setting.entity.ref("a")
    with pytest.raises(TryAgainLater):
        await hasty.run(ref, lambda memory: sweep(ref, memory))
    assert setting.observed.by(names.MAINTENANCE_FAILED, "error.type") == {"TryAgainLater": 1}


async def test_an_output_that_is_parked_since_it_is_too_old_is_counted() -> None:
    setting = Setting(Outbox(), clock=(clock := InstantClock()), outcome=lambda _: (False, True))
    hasty = setting.started(Backoff(tries=1))
    with pytest.raises(TryAgainLater):
        await hasty.deliver(setting.entity, deposit("m-1", answers=1))
    clock.advance(timedelta(days=40).total_seconds())
    ref = setting.entity.ref("a")
    await setting.process.run(ref, lambda memory: sweep(ref, memory))
    assert setting.observed.by(names.PARKED, "exactlyonce.entity.type") == {"exactlyonce.too-old": 1}
