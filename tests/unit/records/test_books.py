"""Books: what they prove, and when they are searched."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from exactlyonce.errors import DamagedDocument
from exactlyonce.records.library import Book, Search, library_document, read_book
from exactlyonce.records.outbox import books_of, number_of, transaction

ID = "0123456789abcdef0123"
WRITTEN = 1_795_662_000
BOOK = Book(ID, 12, (7, 9), within=600)


def at(seconds: float) -> datetime:
    """A time, in seconds after the book was written."""
    return datetime.fromtimestamp(WRITTEN + seconds, timezone.utc)


@pytest.mark.parametrize(("number", "pays"), [(0, False), (-1, False), (1, True), (7, False), (12, True), (13, False)])
def test_a_book_pays_what_it_numbered_and_does_not_have_open(number: int, pays: bool) -> None:
    assert BOOK.pays(number) is pays


def test_a_transaction_is_a_book_and_a_number_in_the_order_of_numbers() -> None:
    names = [transaction(ID, number) for number in (1, 2, 10, 9_999_999)]
    assert names == sorted(names)
    assert [number_of(name) for name in names] == [(ID, 1), (ID, 2), (ID, 10), (ID, 9_999_999)]
    assert number_of("5f") == ("5f", 0)
    assert books_of((*names, "5f")) == (ID, "5f")


def test_absent_parts_of_a_book_are_left_out_and_a_book_is_read_as_written() -> None:
    document = library_document(BOOK)
    assert not {"stuck", "ended", "searched", "written"} & document.keys()
    assert read_book(document) == BOOK
    noted = replace(BOOK, stuck=(7,), searched=(WRITTEN,), written=WRITTEN)
    assert read_book(library_document(noted)) == noted
    with pytest.raises(DamagedDocument):
        read_book({**document, "used": "many"})


def test_a_book_is_searched_a_minute_after_the_time_that_it_promises() -> None:
    assert BOOK.search(WRITTEN, at(659)) is None
    assert BOOK.search(WRITTEN, at(660)) == Search(ID, 12, (7, 9))
    assert replace(BOOK, within=120).search(WRITTEN, at(180)) == Search(ID, 12, (7, 9))
    assert replace(BOOK, open=(), ended=True).search(WRITTEN, at(10**6)) is None


def test_a_silent_book_is_searched_three_times() -> None:
    book, searched = BOOK, []
    for minute in range(3 * 1_440):
        if (search := book.search(WRITTEN, at(60 * minute))) is not None:
            searched.append(minute)
            book = book.after(search, WRITTEN, at(60 * minute))
    assert searched == [11, 71, 1_451]
    assert book == replace(BOOK, searched=tuple(WRITTEN + 60 * minute for minute in searched), written=WRITTEN)


def test_stuck_numbers_are_searched_at_once_and_do_not_count_as_a_search_of_the_book() -> None:
    stuck = replace(BOOK, stuck=(7,))
    search = stuck.search(WRITTEN, at(1))
    assert search == Search(ID, None, (7,))
    after = stuck.after(search, WRITTEN, at(1))
    assert (after.stuck, after.searched, after.open) == ((), (), (7, 9))
    assert after.search(WRITTEN, at(2)) is None
    assert after.search(WRITTEN, at(660)) == Search(ID, 12, (7, 9))


def test_a_search_asks_for_numbers_above_one_and_for_single_ones() -> None:
    search = Search(ID, 12, (7,))
    assert [number for number in range(15) if search.asks_for(transaction(ID, number))] == [7, 13, 14]
    assert not search.asks_for(transaction("f" * 20, 13))
    assert search.transactions == (transaction(ID, 7),)
    after, before = search.range or ("", "")
    assert after < transaction(ID, 13) < transaction(ID, 9_999_999) < before
    assert Search(ID, None, (7,)).range is None
