"""Whatever happens in whatever order: no book pays what was not sent, and in the end a book proves all that was."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from exactlyonce.drivers import book as shelves
from exactlyonce.drivers.book import ProcessBook, Shelf
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundBooks, OpenNumbers
from exactlyonce.records.library import Book
from tests.unit.drivers.waiting import ENTITY

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
WITHIN = timedelta(minutes=10)
some = st.integers(0, 1_000)


class Version(NamedTuple):
    """A version of the entity: how many messages were committed, and the transactions in its outbox."""

    version: int
    outbox: frozenset[str]


class Attempt(NamedTuple):
    """An attempt that has opened a number: who makes it, what it starts from, and what it knows to be sent."""

    process: Shelf
    tx: str
    base: int
    paid: frozenset[str]


class Writing(NamedTuple):
    """A book on its way to the store."""

    process: Shelf
    own: ProcessBook
    book: Book
    closed: int


class Processes(RuleBasedStateMachine):
    """Processes that commit on one entity, publish, crash and write books; stale views, late saves and late books."""

    @initialize()
    def start(self) -> None:
        self.ids = count()
        self.now = START
        self.history = [Version(0, frozenset())]
        self.books: dict[str, list[Book]] = {}
        self.sent: set[str] = set()
        self.processes = [self.fresh(), self.fresh()]
        self.attempts: list[Attempt] = []
        self.late: list[Attempt] = []
        self.sending: list[Attempt] = []
        self.writing: list[Writing] = []

    def fresh(self) -> Shelf:
        return Shelf(lambda: f"{next(self.ids):020x}", WITHIN)

    def position(self, view: int) -> int:
        """Where in the history a view is: mostly at its end."""
        return (view if view % 4 == 0 else -1) % len(self.history)

    def look(self, process: Shelf, view: Version) -> frozenset[str]:
        """Find out what is paid, in a view that may be stale."""
        process.compare(FindPaid(ENTITY, view.version, tuple(view.outbox), (START,) * len(view.outbox)), self.now)
        return frozenset(filter(process.pays, view.outbox))

    @rule(who=some, view=some)
    def begin(self, who: int, view: int) -> None:
        process, base = self.processes[who % 2], self.position(view)
        paid = self.look(process, self.history[base])
        own = process.current()
        if not process.is_stored(own, self.now):
            self.answer(Writing(process, own, process.writing(own, self.now).book, own.closed))
        opened = own.open(OpenNumbers(ENTITY, self.history[base].version, more=1), self.now)
        self.attempts.append(Attempt(process, opened.given[0], base, paid))

    def save(self, attempt: Attempt) -> bool:
        """Save on the condition that nobody has saved since."""
        before = self.history[-1]
        if attempt.base != len(self.history) - 1:
            return False
        assert before.outbox & attempt.paid <= self.sent
        self.history.append(Version(before.version + 1, before.outbox - attempt.paid | {attempt.tx}))
        return True

    @rule(which=some, ends=st.sampled_from(["answered", "unanswered", "late", "lost"]))
    @precondition(lambda self: self.attempts)
    def commit(self, which: int, ends: str) -> None:
        attempt = self.attempts.pop(which % len(self.attempts))
        if ends == "late":
            self.late.append(attempt)
        elif ends != "lost" and self.save(attempt) and ends == "answered":
            self.sending.append(attempt)
            return
        self.unanswered(attempt)

    def unanswered(self, attempt: Attempt) -> None:
        """The process does not know what became of its save, or hears of a conflict. That proves nothing."""

    @rule(which=some)
    @precondition(lambda self: self.late)
    def land(self, which: int) -> None:
        self.save(self.late.pop(which % len(self.late)))

    @rule(which=some, answered=st.booleans())
    @precondition(lambda self: self.sending)
    def publish(self, which: int, answered: bool) -> None:
        attempt = self.sending.pop(which % len(self.sending))
        self.sent.add(attempt.tx)
        if answered:
            attempt.process.close(CloseNumbers((attempt.tx,)), self.now)

    @rule(who=some, view=some)
    def finish(self, who: int, view: int) -> None:
        """A copy comes, or the sweeper: what is not paid is sent."""
        process, found = self.processes[who % 2], self.history[self.position(view)]
        owed = found.outbox - self.look(process, found)
        self.sent |= owed
        process.close(CloseNumbers(tuple(owed)), self.now)

    @rule(who=some)
    def sweep(self, who: int) -> None:
        """All is sent, and dropped by a save that counts no message."""
        before = self.history[-1]
        self.finish(who, 1)
        self.history.append(Version(before.version, frozenset()))

    @rule(who=some, which=some)
    @precondition(lambda self: all(item.mine for item in self.processes))
    def write(self, who: int, which: int) -> None:
        process = self.processes[who % 2]
        own = process.mine[which % len(process.mine)]
        self.writing.append(Writing(process, own, process.writing(own, self.now).book, own.closed))

    def answer(self, writing: Writing) -> None:
        self.books.setdefault(writing.book.id, []).append(writing.book)
        writing.process.noted(writing.own, writing.book, writing.closed, self.now)

    @rule(which=some, answered=st.booleans())
    @precondition(lambda self: self.writing)
    def written(self, which: int, answered: bool) -> None:
        """A book reaches the store, maybe long after others; its process hears of it, or does not."""
        writing = self.writing.pop(which % len(self.writing))
        if answered:
            self.answer(writing)
        else:
            self.books.setdefault(writing.book.id, []).append(writing.book)

    @rule(who=some, which=some, version=some)
    @precondition(lambda self: self.books)
    def read(self, who: int, which: int, version: int) -> None:
        book = [*self.books.values()][which % len(self.books)]
        self.processes[who % 2].learn(FoundBooks((book[version % len(book)],)), self.now)

    @rule(who=some, ends=st.booleans())
    def stop(self, who: int, ends: bool) -> None:
        """A process crashes, or gives out no more numbers of its book."""
        if ends:
            self.processes[who % 2].retire()
            return
        gone, self.processes[who % 2] = self.processes[who % 2], self.fresh()
        self.attempts = [attempt for attempt in self.attempts if attempt.process is not gone]
        self.sending = [item for item in self.sending if item.process is not gone]

    @rule(minutes=st.sampled_from([1, 3, 15, 1_500]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @invariant()
    def nobody_pays_what_was_not_sent(self) -> None:
        committed = {tx for version in self.history for tx in version.outbox}
        for process in self.processes:
            assert frozenset(filter(process.pays, committed)) <= self.sent
        for book in (book for versions in self.books.values() for book in versions):
            for tx in committed:
                assert tx in self.sent or not (tx.startswith(book.id) and book.pays(int(tx[-7:])))

    @invariant()
    def a_book_that_has_ended_was_right_and_an_open_number_can_be_found(self) -> None:
        """Of what is in an outbox and was not sent, every version of its book says so; and no book has ended over it."""
        under_way = {attempt.tx for attempt in (*self.attempts, *self.late, *self.sending)}
        owed = {tx for tx in self.history[-1].outbox if tx not in self.sent} | under_way
        for versions in self.books.values():
            for tx in owed:
                number = int(tx[-7:])
                if tx.startswith(versions[-1].id):
                    last = versions[-1]
                    assert tx in self.sent or number > last.used or number in last.open or not self._may_land(tx)
                    assert not (last.ended and self._may_land(tx) and tx not in self.sent)

    def _may_land(self, tx: str) -> bool:
        newest = len(self.history) - 1
        pending = {attempt.tx for attempt in (*self.attempts, *self.late) if attempt.base == newest}
        return tx in self.history[-1].outbox or tx in pending

    def teardown(self) -> None:
        """Once all is answered, the books prove all, but for what died with its process."""
        if not hasattr(self, "processes"):
            return
        for writing in self.writing:
            self.answer(writing)
        for process in self.processes:
            for _ in range(2):
                for own in process.mine:
                    if own.is_behind:
                        self.answer(Writing(process, own, process.writing(own, self.now).book, own.closed))
            for own in process.mine:
                if own.written is not None:
                    used = range(1, own.document(self.now, WITHIN).used + 1)
                    stored = self.books[own.id][-1]
                    assert [number for number in used if own.pays(number) and not stored.pays(number)] == []


class ClosesTooSoon(Processes):
    """Takes an unknown outcome, or a conflict, for the proof that nothing was saved."""

    def unanswered(self, attempt: Attempt) -> None:
        attempt.process.close(CloseNumbers((attempt.tx,)), self.now)


def play(machine: type[Processes], times: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    chance = settings(
        max_examples=times,
        stateful_step_count=40,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(machine, settings=chance)


def falls(machine: type[Processes] = Processes) -> None:
    """The machine finds what is wrong, soon; nobody needs its shortest story."""
    with pytest.raises(AssertionError):
        play(machine, 1_000, (Phase.generate,))


@pytest.mark.parametrize("most", [2, 1_000])
def test_no_book_pays_what_was_not_sent(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "MOST_OPEN", most)
    play(Processes, 100)


def test_an_unknown_outcome_closes_no_number() -> None:
    falls(ClosesTooSoon)


def test_the_same_version_closes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = ProcessBook.compare
    monkeypatch.setattr(
        ProcessBook, "compare", lambda own, entity, version, here, now: compare(own, entity, version + 1, here, now)
    )
    falls()


def test_a_book_pays_no_open_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Book, "pays", lambda book, number: number <= book.used)
    falls()
