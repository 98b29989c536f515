"""Whether the books in the store prove what the model's prove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exactlyonce.records.library import BOOKS, Book, read_book
from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, book_id, from_library
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.reality import Documents, Place, partition_text
from verification.world.store import Store


def books_in(documents: Mapping[Place, dict[str, Any]], ids: tuple[str, ...]) -> dict[str, Book]:
    """Those of the books that are among the documents of the library, by their ids."""
    places = {id: (partition_text(BOOKS), book_id(id)) for id in ids}
    return {id: read_book(from_library(documents[place])) for id, place in places.items() if place in documents}


def pays(books: Mapping[str, Book], tx: str) -> bool:
    """Whether books prove that the outputs of a transaction were sent."""
    book, number = number_of(tx)
    return book in books and books[book].pays(number)


def memory_differences(open: frozenset[str], store: Store, names: Correspondence) -> Iterator[str]:
    """Where processes hold other numbers open, or closed, than the model's.

    Args:
        open: the transactions that processes hold open.
        store: what the model holds.
        names: what stands for what.
    """
    for book in store.books:
        for number in book.now.open | book.now.paid:
            tx = transaction(book.id, number)
            if (names.transaction(tx) in open) is not (number in book.now.open):
                yield f"{tx}: its process holds it {'closed' if number in book.now.open else 'open'}"


def book_differences(documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where the books of reality prove another thing than the model's, of the transactions that something refers to.

    Args:
        documents: what is stored.
        store: what the model holds.
        names: what stands for what.
    """
    for book in store.books:
        for number in book.numbers:
            tx = transaction(book.id, number)
            real = names.transaction(tx)
            there = books_in(documents[LIBRARY_CONTAINER], (number_of(real)[0],))
            if bool(there) is not bool(book.written):
                yield f"{tx}: its book is {'there' if there else 'not there'}"
            elif book.written and pays(there, real) is not (number in book.written[-1].paid):
                yield f"{tx}: the books say{' not' if number in book.written[-1].paid else ''} that it is paid"
