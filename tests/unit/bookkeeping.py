"""The book of a process in tests that drive protocols by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from exactlyonce.effects.effect import Opened
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import number_of, transaction

BOOK = "0123456789abcdef0123"


def tx(number: int, book: str = BOOK) -> str:
    """The id of the n-th transaction that a process numbers."""
    return transaction(book, number)


class Bookkeeper:
    """Numbers the transactions of a process, and knows which are open.

    Args:
        id: of its book.

    Attributes:
        used: the last number that was given out.
        open: entity and version for which each open number was given out.
        others: transactions of other books that this process knows to be paid.
    """

    def __init__(self, id: str = BOOK) -> None:
        self.id = id
        self.used = 0
        self.open: dict[int, tuple[str, int]] = {}
        self.others: set[str] = set()

    @property
    def document(self) -> Book:
        """The book as it is written now."""
        return Book(self.id, self.used, tuple(self.open))

    def give(self, effect: OpenNumbers, at: datetime) -> Opened:
        """What `OpenNumbers` is answered."""
        numbers = range(self.used + 1, self.used + effect.count + 1)
        self.used += effect.count
        self.open |= dict.fromkeys(numbers, (effect.entity.key, effect.version))
        return Opened(at, tuple(transaction(self.id, number) for number in numbers), "secret")

    def paid(self, effect: FindPaid, books: Iterable[Book] = ()) -> frozenset[str]:
        """What `FindPaid` is answered, by what the books of others say."""
        said = {book.id: book for book in books}
        for number, (entity, base) in list(self.open.items()):
            left = transaction(self.id, number) not in effect.transactions
            if entity == effect.entity.key and base < effect.version and left:
                del self.open[number]
        return frozenset(item for item in effect.transactions if self._pays(item, said))

    def close(self, effect: CloseNumbers) -> None:
        """What `CloseNumbers` leads to."""
        for item in effect.transactions:
            book, number = number_of(item)
            if book == self.id:
                self.open.pop(number, None)
            else:
                self.others.add(item)

    def pays(self, transaction: str) -> bool:
        """Whether this process knows that the outputs of a transaction were sent."""
        return self._pays(transaction, {})

    def _pays(self, transaction: str, said: dict[str, Book]) -> bool:
        book, number = number_of(transaction)
        if book == self.id:
            return self.document.pays(number)
        return transaction in self.others or (book in said and said[book].pays(number))
