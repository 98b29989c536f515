"""Attempts and jobs of several instances at the same time, interleaved effect by effect over one store in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from random import Random
from typing import Any

from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundBooks, OpenNumbers, ReadBooks, WriteBook, Written
from exactlyonce.records.library import BOOK_DIGITS
from exactlyonce.records.outbox import books_of
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.world import SeededTrouble
from tests.unit.bookkeeping import Bookkeeper

PROCESSES = 2
FATES = {Fate.LOST_BEFORE: 0.05, Fate.LOST_AFTER: 0.05, Fate.REPEATED: 0.05, Fate.DELAYED: 0.1}
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
CRASHES = 0.03
"""Share of effects at which a job is cancelled. One in four of these ends its whole process."""
PEACE = SeededTrouble(Random(0), {})


@dataclass(eq=False)
class Job:
    """A generator under way, and what happens when it ends: with its result, or with None if it was cancelled, or its process
    crashed."""

    step: Step[Any]
    ended: Callable[[Any], None]
    book: Bookkeeper
    reply: Any = None


class Interleaving:
    """Several jobs of a few processes at once, each of which may get ahead or crash at any effect.

    Attributes:
        performed: types of the effects that any job asked for.
        books: of the processes that live. The store has some version of each, or none yet.

    Args:
        random: the source of chance.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = NOW
        self.store = MemoryStore(lambda: self.now, SeededTrouble(random, FATES, stale=0.3, lag=3))
        self.jobs: list[Job] = []
        self.performed: set[type[Effect[Any]]] = set()
        self.books = [self._begun_book() for _ in range(PROCESSES)]
        self._stored: set[str] = set()

    def begin(self, step: Step[Any], ended: Callable[[Any], None] = lambda _: None) -> None:
        self.jobs.append(Job(step, ended, self.random.choice(self.books)))

    def advance(self) -> None:
        """One effect of one of the jobs, or its crash; and perhaps a delayed write takes effect, or a book is written."""
        if self.jobs:
            job = self.random.choice(self.jobs)
            if self.random.random() >= CRASHES:
                self.go(job)
            elif self.random.random() < 0.25:
                self.crash(job.book)
            else:
                self.end(job, None)
        if self.random.random() < 0.05:
            self.store.land_delayed()
        if self.random.random() < 0.1:
            self._write(self.random.choice(self.books))

    def crash(self, book: Bookkeeper) -> None:
        """End a process with all its jobs. What its book proves is what the store has of it."""
        self.books[self.books.index(book)] = self._begun_book()
        for job in [item for item in self.jobs if item.book is book]:
            self.end(job, None)

    def _begun_book(self) -> Bookkeeper:
        return Bookkeeper(f"{self.random.getrandbits(80):0{BOOK_DIGITS}x}")

    def _write(self, book: Bookkeeper) -> bool:
        """Write a book; whether that was answered."""
        written = isinstance(self.store.perform(WriteBook(book.document, 60)), Written)
        if written:
            self._stored.add(book.id)
        return written

    def calm(self) -> None:
        """From now on nothing bad happens; what is under way comes to its end."""
        self.store._trouble = PEACE
        self.store.land_delayed()
        self.run_out()

    def run_out(self) -> None:
        while self.jobs:
            self.go(self.jobs[0])

    def go(self, job: Job) -> None:
        try:
            effect = job.step.send(job.reply)
        except StopIteration as finished:
            self.end(job, finished.value)
            return
        parts = (effect.first, effect.second) if isinstance(effect, Together) else (effect,)
        self.performed.update(map(type, parts))
        job.reply = self.perform(effect, job.book)

    def end(self, job: Job, result: Any) -> None:
        self.jobs.remove(job)
        job.ended(result)

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        match effect:
            case Together():
                return self.perform(effect.first, book), self.perform(effect.second, book)
            case OpenNumbers():
                stored = book.id in self._stored or self._write(book)
                return book.give(effect, self.now) if stored else UNKNOWN
            case FindPaid(transactions=transactions):
                found = self.store.perform(ReadBooks(books_of(transactions)))
                return book.paid(effect, found.books if isinstance(found, FoundBooks) else ())
            case CloseNumbers():
                return book.close(effect)
            case Begin(messages=messages, more=more):
                return Begun(
                    self.now, tuple(f"{self.random.getrandbits(64):016x}" for _ in range(len(messages) + more))
                )
            case _:
                return self.store.perform(effect)


def unfenced(_entity: Any, view: Any, _absent: Any) -> Step[Memory | Again]:
    """In place of a fence: it proves nothing."""
    yield from Begin()
    memory: Memory = view.memory
    return memory
