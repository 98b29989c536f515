"""Requests to the book of this process, and for the books of all.

What the book of this process is asked, and told, costs no request of the store: the process knows it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from exactlyonce.effects.effect import Effect, NoAnswer, Unknown
from exactlyonce.effects.library import Written
from exactlyonce.records.books import Book
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Opened:
    """The present, and numbers that were never given out before.

    Attributes:
        at: the present, by the store's time.
        transactions: one for each message, in their order, and then as many more as were asked for. None for a message whose
            delivery was given back meanwhile, as in `Begun`.
        secret: of the book. Nobody else can tell what derives from it.
    """

    at: datetime
    transactions: tuple[str | None, ...]
    secret: str = ""

    @property
    def given(self) -> tuple[str, ...]:
        """The transactions that there are."""
        return tuple(tx for tx in self.transactions if tx is not None)

    def name_of(self, tx: str) -> str:
        """A name for what a transaction writes before its commit: as hard to guess as the secret."""
        return hashlib.sha256(f"{self.secret}{tx}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class OpenNumbers(Effect[Opened | Unknown]):
    """Open numbers in the book of this process, and ask for the time. `UNKNOWN` if the store may not have the book.

    As `Begin`, it comes after everything that an attempt reads.

    Attributes:
        entity: that the transactions are on.
        version: of its ledger, as the attempt starts from it.
        messages: keys of the messages that are about to be handled, as they were delivered.
        more: how many numbers are wanted besides: for messages that the store holds, whose deliveries are over.
    """

    entity: EntityRef
    version: int
    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many numbers are asked for."""
        return len(self.messages) + self.more


@dataclass(frozen=True, slots=True)
class FindPaid(Effect[frozenset[str]]):
    """Those of the transactions whose outputs are known to be sent. It is told what the entity's outbox holds.

    A number of this process that was opened for a lower version of the entity, and that the outbox does not hold, is closed: a
    commit on that version came first, so this one never comes; or it came, and somebody sent its outputs and dropped its entry.

    Books of other processes are read, and remembered, if one of `needed` is not known to be paid, or three or more that are
    older than a minute. What cannot be read pays nothing, which costs copies at most. One that is not there pays an attempt
    that is older than the store keeps books: the sweeper searched for its entry long ago.

    Attributes:
        entity: whose outbox it is.
        version: of its ledger, in the view that shows this.
        transactions: all that the outbox holds and that are not paid.
        attempts: when their attempts were made, in the same order.
        needed: those of them that a copy is about to be acknowledged for.
    """

    entity: EntityRef
    version: int
    transactions: tuple[str, ...]
    attempts: tuple[datetime, ...]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloseNumbers(Effect[None]):
    """Tell the book of this process that the outputs of transactions were sent, or that they have none."""

    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundBooks:
    """The books that exist, in whatever view answers."""

    books: tuple[Book, ...]


@dataclass(frozen=True, slots=True)
class WriteBook(Effect[Written | Unknown]):
    """Write a book over what there is of it. One that lands late says less than is true, which costs copies at most.

    Attributes:
        book: what to write.
        seconds: for which the store is to keep it.
    """

    book: Book
    seconds: int


@dataclass(frozen=True, slots=True)
class ReadBooks(Effect[FoundBooks | NoAnswer]):
    """Read books, in whatever view answers. Absent ones are left out. One request."""

    books: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteSearch(Effect[None]):
    """Write into a book that it was searched, if it still has this ETag, best effort. Otherwise it is searched once more.

    Attributes:
        book: what to write.
        etag: of the book that was searched.
        seconds: for which the store is to keep it.
    """

    book: Book
    etag: str
    seconds: int
