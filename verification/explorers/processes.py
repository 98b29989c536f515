"""What processes do with their books: by themselves, and with reads and writes of books."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from exactlyonce.effects.effect import UNKNOWN, Opened
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.records.outbox import number_of
from verification.world.answers import LOST, STALE, World
from verification.world.books import BookState, BookWritten, book_in, with_book
from verification.world.mentions import WriteDown, described
from verification.world.scenario import Scenario
from verification.world.store import Store
from verification.world.workers import OfBooks, Worker, Workers
from verification.world.writes import Answer

FROM_MEMORY: Final = "starts from what it knows"
PROVED: Final = "a book proved what another process had sent"


class Processes:
    """Answers what processes ask of their books.

    Args:
        scenario: that is explored.
        world, workers: of the scenario.
    """

    def __init__(self, scenario: Scenario, world: World, workers: Workers) -> None:
        self._books = scenario.books
        self._world = world
        self._workers = workers
        self._chores = scenario.chores
        self._numbers: dict[Hashable, int] | None = None
        if scenario.companions and not scenario.apart and not scenario.books:
            self._numbers = {}
        self._clerk = scenario.chores.clerk(scenario.chores.shelf, scenario.chores.process_book, scenario.chores.book)

    def by_itself(self, worker: Worker, store: Store) -> tuple[Worker, Store]:
        """Worker and store after all that it asks of its own book, for which nobody else is needed."""
        while isinstance(worker.asks, OfBooks) and not self._needs_store(worker, store):
            book, reply = self._reply(worker, store)
            worker, store = self._with(worker, book, store, reply)
        return worker, store

    def answers(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        """Every answer to a worker that asks its book, with the worker afterwards."""
        if not self._needs_store(worker, store):
            moved, after = self.by_itself(worker, store)
            yield Answer(None, after, said=FROM_MEMORY, witnessed=FROM_MEMORY), moved
        elif isinstance(worker.asks, OpenNumbers):
            yield from self._first_writing(worker, store)
        else:
            yield from self._reading(worker, store)

    def writes(self, store: Store) -> Iterator[WriteDown]:
        """The writings of books of living processes that would say something new."""
        for book in store.books:
            if (
                book.lives
                and (book.written or not self._chores.books_first)
                and book.now != (book.written or (BookWritten(),))[-1]
            ):
                yield WriteDown(book.id, book.now)

    def finds(self, store: Store, entity: int) -> bool:
        """Whether the sweeper finds an entity: by a book in the store that does not prove an entry of its outbox to be paid.

        A book that is gone, or was never there, leads to no entity. Kept messages do.
        """
        ledger = store.entities[entity].ledger
        written = {book.id: book.written[-1] for book in store.books if book.written}
        numbers = (number_of(entry.tx) for entry in ledger.outbox)
        return bool(ledger.kept) or any(
            book in written and number not in written[book].paid for book, number in numbers
        )

    def _needs_store(self, worker: Worker, store: Store) -> bool:
        if not self._books:
            return False
        book = book_in(store.books, worker.book or "")
        if isinstance(worker.asks, OpenNumbers):
            return self._chores.books_first and not book.written
        return isinstance(worker.asks, FindPaid) and bool(self._clerk.compared(book, worker.asks)[1])

    def _reply(self, worker: Worker, store: Store) -> tuple[BookState, Any]:
        """The book, and the reply, where no other book is read."""
        asked, book = worker.asks, book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        match asked:
            case OpenNumbers():
                book, numbers = book.opened(asked, self._alike(worker, asked))
                given = self._workers.given(worker, asked, numbers)
                return book, Opened(self._workers.present(worker, store.now), given)
            case CloseNumbers():
                return self._clerk.closed(book, asked), None
            case FindPaid():
                book, _ = self._clerk.compared(book, asked)
                return book, self._clerk.paid(book, asked.transactions)
        raise TypeError(asked)

    def _alike(self, worker: Worker, asked: OpenNumbers) -> tuple[int, ...] | None:
        """The numbers that a process gives to all its attempts that are alike: at most one of them is ever committed."""
        if self._numbers is None:
            return None
        stage = self._workers.stage(worker)
        return tuple(self._numbers.setdefault((stage, number), len(self._numbers) + 1) for number in range(asked.count))

    def _with(self, worker: Worker, book: BookState, store: Store, reply: Any) -> tuple[Worker, Store]:
        """Worker and store once its book is this, and it has got a reply."""
        if book != book_in(store.books, book.id):
            store = self._world.stores.changed(store, books=with_book(store.books, book))
            worker = self._workers.with_book(worker, book.id)
        return self._workers.answered(worker, reply), store

    def _first_writing(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        """The store gets the book before its first number is used."""
        book = book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        write = WriteDown(book.id, book.now)
        there = self._world.land(write, store).store
        owner = self._workers.with_book(worker, book.id)
        moved, after = self.by_itself(owner, there)
        yield Answer(None, after, said=described(write)), moved
        lost = f"{described(write)}; the reply is lost"
        yield Answer(UNKNOWN, there, LOST, said=lost), self._workers.answered(owner, UNKNOWN)
        yield (
            Answer(UNKNOWN, store, LOST, said=f"{described(write)}, which is lost"),
            self._workers.answered(worker, UNKNOWN),
        )

    def _reading(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        """Books of others are read."""
        asked = worker.asks
        assert isinstance(asked, FindPaid)  # noqa: S101
        own = book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        book, ids = self._clerk.compared(own, asked)
        paid = self._clerk.paid(book, asked.transactions)
        found: dict[frozenset[str], bool] = {}
        for proved, aged in self._clerk.looks(store.books, ids, asked.transactions):
            found.setdefault(paid | proved, aged)
        found.setdefault(paid, True)
        for reply, aged in found.items():
            learnt = BookState(book.id, book.open, book.closed, book.known | (reply - paid), book.written)
            moved, after = self._with(worker, learnt, store, reply)
            moved, after = self.by_itself(moved, after)
            said = f"reads the books {', '.join(ids)}{', in an older view' if aged else ''}: {len(reply)} are paid"
            yield (
                Answer(reply, after, STALE if aged else None, said=said, witnessed=PROVED if reply - paid else None),
                moved,
            )
