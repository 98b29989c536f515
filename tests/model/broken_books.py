"""The zoo of books: what could make outputs count as sent that were not, or leave them to nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.drivers.book import ProcessBook
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.records.library import Book
from tests.model.careless import COMMIT, OWED_NOT_PUBLISHED
from tests.model.zoo import Broken
from verification.scenarios.books import SMALL
from verification.scenarios.outbox import SMALL as WITHOUT
from verification.twins.alterations import asks, called, first, followed, replaced
from verification.twins.modules import Patch, around
from verification.world.books import BookWritten, Clerk
from verification.world.scenario import Budget, Scenario

WORLDS = {item.name.removeprefix("books: "): item for item in (*SMALL, *WITHOUT)}
ONE = WORLDS["one process, then another, every fault"]
TWO = WORLDS["two processes"]
SWEPT = WORLDS["two messages, and the sweeper"]
ASKED = WORLDS["clients leave"]
LOST = "nothing_lost"


class Trusting(Clerk):
    """One that takes what has no book for sent."""

    def proves(self, read: Mapping[str, BookWritten | None], tx: str) -> bool:
        return any(read[book] is None for book in read) or super().proves(read, tx)


class Sanguine(Clerk):
    """One that takes all numbers of others for sent."""

    def proves(self, read: Mapping[str, BookWritten | None], tx: str) -> bool:
        return True


def closed_on(*kinds: Any) -> Patch:
    """The numbers of an attempt are closed after a reply of these kinds to its commit."""

    def close(reply: Any, _save: Any, _self: Any, _work: Any, _view: Any, _draft: Any, opened: Any, *_: Any) -> Any:
        return CloseNumbers(opened.given) if isinstance(reply, kinds) else None

    return around(COMMIT, followed(SaveEntity, close))


def _all_paid(work: Any, view: Any, draft: Any, page: Any, _paid: Any) -> tuple[Any, ...]:
    return (work, view, draft, page, frozenset(entry.tx for entry in view.ledger.outbox))


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "a number is closed before it is sent",
        (around(outbox.pay, first(lambda _entity, _outputs, _entries, numbers, _memory: CloseNumbers(numbers))),),
        ONE,
        LOST,
    ),
    Broken(
        "any view closes a number",
        (around(ProcessBook.compare, called(lambda self, entity, version, *rest: (self, entity, version + 1, *rest))),),
        SWEPT,
        LOST,
    ),
    Broken("a conflict closes a number", (closed_on(Conflict),), ONE, LOST),
    Broken("an unknown save closes a number", (closed_on(NoAnswer),), ONE, LOST),
    Broken("what has no book is taken for sent", (), ONE, LOST, chores=(("clerk", Trusting),)),
    Broken("numbers of others are taken for sent", (), ONE, LOST, chores=(("clerk", Sanguine),)),
    Broken("a book says only how far", (around(Book.pays, replaced(lambda self, number: number <= self.used)),), TWO, LOST),
    Broken(
        "a process that begins anew takes the same book", (), replace(ONE, copies=(2, 1), budget=Budget(1, 1)), LOST,
        chores=(("fresh_id", lambda _: "b0"),),
    ),
    Broken("entries of others are dropped", (around(drafting.next_ledger, called(_all_paid)),), TWO, LOST),
    Broken("what copies owe is not sent", (OWED_NOT_PUBLISHED,), ONE, LOST),
    Broken(
        "a settler tells its book a part of the outbox",
        (around(Outbox._finished, asks(FindPaid, lambda find, *_: _of_what_is_needed(find))),),
        WORLDS["the settler during processing"],
        LOST,
    ),
)  # fmt: skip

LEFT_TO_NOBODY: tuple[Broken[Scenario], ...] = (
    Broken("numbers are used before the store has the book", (), ASKED, chores=(("books_first", False),)),
    Broken("nobody sweeps", (), replace(ASKED, budget=replace(ASKED.budget, sweeps=0))),
)
"""Nothing falls, but what a client left behind is never sent."""


def _of_what_is_needed(find: FindPaid) -> FindPaid:
    owing = [pair for pair in zip(find.transactions, find.attempts, strict=True) if pair[0] in find.needed]
    return replace(find, transactions=tuple(tx for tx, _ in owing), attempts=tuple(at for _, at in owing))
