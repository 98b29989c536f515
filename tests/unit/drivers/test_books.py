"""Books of a process: when they are written, what they say, and that what closes meanwhile is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from itertools import count, pairwise
from random import Random
from typing import Any, TypeVar

import pytest

from exactlyonce.drivers import book as shelves
from exactlyonce.drivers.book import PROVED_EVERY, BlockingBooks, Books
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import UNKNOWN, Busy, Opened
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundBooks, OpenNumbers, ReadBooks, WriteBook
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.library import KEPT_FOR, Book
from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.loop import START, VirtualClock, VirtualLoop
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.envelope import EntityRef
from tests.unit.drivers.waiting import ENTITY

Result = TypeVar("Result")
OTHER = EntityRef("account", ("b",), "b")
WITHIN = timedelta(minutes=10)


class Process:
    """A process on virtual time, and what was asked of the store."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.loop = VirtualLoop(100_000)  # type: ignore[abstract]  # It has no I/O.
        self.clock = VirtualClock(self.loop)
        self.store = store or MemoryStore(self.clock.now)
        self.asked: list[Any] = []
        self.answers: Callable[[Any], object] = self.store.perform
        self.delay = 0.0
        ids = (f"{number:020x}{0:012x}" for number in count(1 if store is None else 1_000))
        self.books = Books(self.perform, Runtime(self.clock, Random(0), lambda: next(ids)), WITHIN)

    async def perform(self, effect: Any) -> Any:
        self.asked.append(effect)
        reply = self.answers(effect)
        if self.delay:
            await asyncio.sleep(self.delay)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def run(self, job: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run(job)

    def after(self, **time: float) -> Process:
        """Let time pass."""
        self.loop.run_for(timedelta(**time).total_seconds())
        return self

    def open(self, version: int = 0, *, entity: EntityRef = ENTITY, more: int = 1) -> tuple[str, ...]:
        opened = self.run(self.books.open(OpenNumbers(entity, version, more=more)))
        assert isinstance(opened, Opened)
        return opened.given

    def close(self, *transactions: str) -> None:
        self.run(self.books.close(CloseNumbers(transactions)))

    def paid(
        self,
        version: int,
        *here: str,
        needed: tuple[str, ...] = (),
        entity: EntityRef = ENTITY,
        made: datetime | None = None,
    ) -> frozenset[str]:
        return self.run(
            self.books.find_paid(
                FindPaid(entity, version, here, (made or START - timedelta(hours=1),) * len(here), needed)
            )
        )

    @property
    def written(self) -> list[Book]:
        return [effect.book for effect in self.asked if isinstance(effect, WriteBook)]

    def stored(self, tx: str) -> Book:
        found = self.store.perform(ReadBooks((number_of(tx)[0],)))
        assert isinstance(found, FoundBooks)
        return found.books[0]


@pytest.fixture
def process() -> Process:
    return Process()


def test_the_store_has_the_book_before_its_first_number_is_used(process: Process) -> None:
    process.answers = lambda _: UNKNOWN
    assert process.run(process.books.open(OpenNumbers(ENTITY, 0, more=1))) is UNKNOWN
    process.answers = lambda _: Busy()
    assert process.run(process.books.open(OpenNumbers(ENTITY, 0, more=1))) is UNKNOWN
    process.answers = process.store.perform
    tx = process.open()
    assert [book.used for book in process.written] == [0, 0, 0]
    assert tx == (transaction(process.written[0].id, 1),)


def test_a_book_that_was_begun_is_not_written_again_for_its_first_number(process: Process) -> None:
    process.delay = 1

    async def begin_and_open() -> Any:
        process.books.begin()
        process.books.begin()
        await asyncio.sleep(process.delay / 2)
        return process.written, await process.books.open(OpenNumbers(ENTITY, 0, more=1))

    begun, opened = process.run(begin_and_open())
    assert len(begun) == len(process.written) == 1
    assert opened.given == (transaction(begun[0].id, 1),)


def test_an_error_that_only_an_operator_can_mend_is_raised(process: Process) -> None:
    process.answers = lambda _: ConfigurationError("no container")
    with pytest.raises(ConfigurationError, match="no container"):
        process.run(process.books.open(OpenNumbers(ENTITY, 0, more=1)))


def test_attempts_that_begin_together_wait_for_one_request(process: Process) -> None:
    process.delay = 1

    async def together() -> Any:
        return await asyncio.gather(*(process.books.open(OpenNumbers(ENTITY, 0, more=2)) for _ in range(3)))

    opened = process.run(together())
    assert len(process.written) == 1
    assert len({tx for item in opened for tx in item.given}) == 6


def test_an_attempt_that_is_cancelled_takes_the_request_from_nobody(process: Process) -> None:
    process.delay = 1

    async def two() -> Any:
        one, other = (asyncio.ensure_future(process.books.open(OpenNumbers(ENTITY, 0, more=1))) for _ in range(2))
        await asyncio.sleep(process.delay / 2)
        one.cancel()
        return await other

    assert isinstance(process.run(two()), Opened)


def test_a_book_is_written_after_so_many_closed_numbers_and_not_before(process: Process) -> None:
    numbers = process.open(more=PROVED_EVERY + 1)
    process.close(*numbers[: PROVED_EVERY - 1])
    assert len(process.written) == 1
    process.close(numbers[PROVED_EVERY - 1])
    process.after(seconds=0)
    assert process.stored(numbers[0]).open == (PROVED_EVERY + 1,)


def test_a_book_is_written_in_time_and_a_book_that_proves_all_is_not(process: Process) -> None:
    process.close(*process.open())
    process.after(minutes=9.9)
    assert len(process.written) == 1
    process.after(minutes=0.2)
    assert [(book.used, book.open) for book in process.written] == [(0, ()), (1, ())]
    process.after(days=1)
    assert len(process.written) == 2


def test_a_book_that_is_used_now_and_then_is_never_silent_for_longer(process: Process) -> None:
    for _ in range(20):
        process.close(*process.open())
        process.after(minutes=4)
    times = [version.timestamp for version in process.store.library["books"].log]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 600


def test_a_number_that_stays_open_is_told_as_stuck_at_two_minutes_an_hour_and_every_day(process: Process) -> None:
    (tx,) = process.open()
    process.after(minutes=1.9)
    assert len(process.written) == 1
    process.after(minutes=0.2)
    assert process.stored(tx).stuck == (1,)
    assert len(process.written) == 2
    process.after(minutes=50)
    assert len(process.written) == 2
    process.after(minutes=10)
    assert [book.stuck for book in process.written] == [(), (1,), (1,)]
    process.after(days=3)
    assert [book.stuck for book in process.written] == [(), *[(1,)] * 5]


def test_a_stuck_number_is_not_told_again_by_every_book_that_is_written(process: Process) -> None:
    """Each would be searched."""
    process.open()
    process.after(minutes=10)
    process.close(*process.open(more=PROVED_EVERY, entity=OTHER))
    process.after(seconds=0)
    assert [book.stuck for book in process.written] == [(), (1,), ()]
    assert process.written[-1].open == (1,)


def test_a_write_that_is_not_answered_is_made_again_after_a_pause(process: Process) -> None:
    numbers = process.open(more=PROVED_EVERY)
    process.answers = lambda _: UNKNOWN
    process.close(*numbers)
    process.after(seconds=59)
    assert len(process.written) == 2
    process.answers = process.store.perform
    process.after(seconds=2)
    assert process.stored(numbers[0]).used == PROVED_EVERY


def test_a_book_is_written_again_before_it_is_used_after_a_long_silence(process: Process) -> None:
    process.close(*process.open())
    process.after(days=KEPT_FOR.days / 2 + 1)
    before = len(process.written)
    process.open()
    assert len(process.written) == before + 1


def test_a_book_with_many_open_numbers_is_followed_by_another_one_and_stays(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelves, "MOST_OPEN", 3)
    old = process.open(more=4)
    (new,) = process.open()
    assert len({number_of(tx)[0] for tx in (*old, new)}) == 2
    process.after(minutes=3)
    assert process.stored(old[0]).stuck == (1, 2, 3, 4)
    assert process.paid(0, *old, new) == frozenset()
    process.close(old[0], old[1])
    assert process.paid(0, *old, new) == {old[0], old[1]}
    process.close(old[2])
    assert process.paid(1, new) == frozenset()  # A later version without it.
    process.after(seconds=1)
    assert process.stored(old[0]).ended
    assert not process.stored(new).ended
    assert process.paid(1, *old) == {*old}


def test_a_book_ends_before_its_numbers_have_too_many_digits(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "MOST_NUMBERS", shelves._ROOM + 2)
    numbers = [process.open()[0] for _ in range(5)]
    assert [number_of(tx)[1] for tx in numbers] == [1, 2, 3, 1, 2]
    process.close(*numbers[:3])
    process.after(seconds=0)
    assert process.stored(numbers[0]).ended


def test_books_of_others_are_read_where_a_copy_needs_it_or_three_owe_for_a_minute(process: Process) -> None:
    another = Process(process.store)
    sent = another.open(more=4)
    another.close(*sent)
    another.run(another.books.write())
    assert process.paid(4, *sent[:2]) == frozenset()
    assert process.paid(4, *sent, made=process.clock.now() - timedelta(seconds=59)) == frozenset()
    assert process.asked == []
    assert process.paid(4, *sent[:2], needed=sent[:1]) == {*sent[:2]}
    assert process.paid(4, *sent) == {*sent}
    assert len(process.asked) == 1


def test_a_book_that_proves_nothing_is_not_read_by_every_attempt(process: Process) -> None:
    another = Process(process.store)
    sent = another.open(more=4)
    another.close(*sent)
    for _ in range(5):
        assert process.paid(4, *sent) == frozenset()
    assert len(process.asked) == 1
    another.run(another.books.write())
    process.after(minutes=2)
    assert process.paid(4, *sent) == {*sent}
    assert process.paid(4, *sent, needed=sent) == {*sent}
    assert len(process.asked) == 2


@pytest.mark.parametrize(
    ("age", "paid"), [(KEPT_FOR + timedelta(days=1), False), (KEPT_FOR + timedelta(days=1.1), True)]
)
def test_an_attempt_older_than_books_are_kept_is_paid_where_its_book_is_gone(
    process: Process, age: timedelta, paid: bool
) -> None:
    tx, made = transaction("f" * 20, 7), START - age
    assert process.paid(1, tx, made=made) == frozenset(), "nobody has looked for the book"
    assert process.paid(1, tx, needed=(tx,), made=made) == (frozenset({tx}) if paid else frozenset())
    assert process.paid(1, tx, made=made) == (frozenset({tx}) if paid else frozenset())


def test_a_book_that_could_not_be_read_is_not_gone(process: Process) -> None:
    tx = transaction("f" * 20, 7)
    process.answers = lambda _: UNKNOWN
    assert process.paid(1, tx, needed=(tx,), made=START - 2 * KEPT_FOR) == frozenset()


def test_a_book_that_is_there_pays_what_it_says_however_old_the_attempt_is(process: Process) -> None:
    tx, made = transaction("f" * 20, 7), START - 2 * KEPT_FOR
    process.store.perform(WriteBook(Book("f" * 20, 9, (7,)), 60))
    assert process.paid(1, tx, needed=(tx,), made=made) == frozenset()


def test_payments_for_others_are_remembered_up_to_a_bound(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "_MOST_PAID", 2)
    others = tuple(transaction("f" * 20, number) for number in (1, 2, 3))
    process.close(*others)
    assert process.paid(3, *others[:2]) == {others[1]}
    assert len(process.books._shelf._paid) == 2


@pytest.mark.parametrize("open", [False, True])
def test_a_process_that_ends_in_order_says_so_if_nothing_is_open(process: Process, open: bool) -> None:
    (tx,) = process.open()
    if not open:
        process.close(tx)
    process.run(process.books.end())
    assert process.stored(tx).ended is not open
    (later,) = process.open()
    assert number_of(later)[0] != number_of(tx)[0]
    assert process.paid(0, tx) == (frozenset() if open else {tx})


def test_a_process_that_opened_nothing_writes_nothing(process: Process) -> None:
    process.run(process.books.end())
    process.run(process.books.write())
    assert process.asked == []


def test_writing_waits_for_the_request_under_way_and_writes_the_rest(process: Process) -> None:
    numbers = process.open(more=PROVED_EVERY + 1)
    process.delay = 5
    process.close(*numbers[:PROVED_EVERY])
    process.close(numbers[-1])
    process.run(process.books.write())
    assert process.stored(numbers[0]).open == ()
    process.run(process.books.write())
    assert len(process.written) == 3


def test_a_crash_writes_nothing_whatever_is_due(process: Process) -> None:
    numbers = process.open(more=3)
    process.close(*numbers)
    process.books.abandon()
    process.close(*numbers)
    process.after(days=2)
    process.run(process.books.write())
    assert len(process.written) == 1
    assert process.run(process.books.open(OpenNumbers(ENTITY, 0, more=1))) is UNKNOWN
    assert process.loop.complaints == []


def test_a_shorter_time_is_promised_before_the_book_is_used_again(process: Process) -> None:
    process.close(*process.open())
    process.books.within = timedelta(minutes=2)
    (tx,) = process.open()
    assert process.stored(tx).within == 120
    process.close(tx)
    process.after(minutes=2.1)
    assert process.stored(tx).pays(2)


class Blocking:
    """A process without an event loop."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock.now)
        ids = (f"{number:020x}{0:012x}" for number in count())
        self.answers: Callable[[Any], Any] = self.store.perform
        runtime = Runtime(self.clock, Random(0), lambda: next(ids))
        self.books = BlockingBooks(self.perform, runtime, WITHIN)

    def perform(self, effect: Any) -> Any:
        return self.answers(effect)

    def open(self, more: int = 1) -> tuple[str, ...]:
        opened = self.books.open(OpenNumbers(ENTITY, 0, more=more))
        assert isinstance(opened, Opened)
        return opened.given

    def stored(self, tx: str) -> Book:
        found = self.store.perform(ReadBooks((number_of(tx)[0],)))
        assert isinstance(found, FoundBooks)
        return found.books[0]


def test_a_script_writes_its_book_at_the_start_now_and_then_and_at_the_end() -> None:
    script = Blocking()
    numbers = script.open(3)
    assert script.stored(numbers[0]).used == 0
    script.books.close(CloseNumbers(numbers[:1]))
    assert script.stored(numbers[0]).used == 0
    script.clock.advance(601)
    script.books.close(CloseNumbers(numbers[1:2]))
    assert script.stored(numbers[0]).open == (3,)
    assert script.books.find_paid(FindPaid(ENTITY, 0, numbers, (START,) * 3)) == {*numbers[:2]}
    script.books.close(CloseNumbers(numbers[2:]))
    script.books.end()
    assert script.stored(numbers[0]).ended


def test_a_script_uses_no_number_that_the_store_does_not_know_of() -> None:
    script = Blocking()
    script.answers = lambda _: UNKNOWN
    assert script.books.open(OpenNumbers(ENTITY, 0, more=1)) is UNKNOWN
    script.books.end()
    script.answers = script.store.perform
    (tx,) = script.open()
    other = transaction("f" * 20, 1)
    assert script.books.find_paid(FindPaid(ENTITY, 1, (tx, other), (START, START), (other,))) == frozenset()
