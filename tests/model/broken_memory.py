"""The zoo of marks and pages: what could make an entity forget a message, or take one for processed that never was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Finished
from exactlyonce.effects.effect import Begin, NoAnswer, Opened, Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FindPages,
    FindPaid,
    FoundPages,
    HasPages,
    OpenNumbers,
    WritePage,
    Written,
)
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.steps import load as loading
from exactlyonce.records import ledger as marks
from exactlyonce.records.library import Book
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.model.zoo import Broken
from verification.scenarios import books, kept, outbox_ages, restores
from verification.scenarios import outbox as worlds
from verification.twins import mistakes
from verification.twins.alterations import (
    answers,
    asks,
    comes_to,
    deferred,
    ending,
    replaced,
    seeing,
    unasked,
)
from verification.twins.mistakes import COMMIT
from verification.twins.modules import Patch, around
from verification.world.books import BookWritten, Clerk
from verification.world.scenario import Ages, Budget, Scenario

# Mistakes of an outbox that show in many worlds: several zoos have a twin that makes them.


SAVED = Saved("0", None)


def _finished_by_a_conflict(reply: Any, _save: Any, _self: Any, _work: Any, view: Any, *_: Any) -> Finished | None:
    return Finished(view.memory) if isinstance(reply, Conflict) else None


def taken_for(reply: Any, *kinds: Any) -> Callable[..., Any]:
    """Replies of these kinds are taken for another one."""
    return lambda given, *_: reply if isinstance(given, kinds) else given


def saved_all_the_same(reply: Any, *_: Any) -> Any:
    return SAVED if isinstance(reply, NoAnswer) else reply


CONFLICT_TAKEN_FOR_A_COPY: Final[Patch] = around(COMMIT, ending(SaveEntity, _finished_by_a_conflict))
UNKNOWN_SAVE_TAKEN_FOR_DONE: Final[Patch] = around(COMMIT, answers(SaveEntity, saved_all_the_same))


WORLDS = {item.name: item for item in (*worlds.SMALL, *outbox_ages.SMALL, *restores.SMALL, *restores.LARGE)}
THREE = WORLDS["pages: room for none, three messages"]
TWO = WORLDS["pages: room for none, every fault"]
UNTIMED = WORLDS["pages: one message has no time"]
YOUNGER = WORLDS["pages: a younger message comes first"]
DUPLICATES = WORLDS["duplicates, crash, lost and repeated writes"]
AGED = WORLDS["pages go with age, three messages"]
PUT_BACK = WORLDS["put back: three messages"]
REMEMBERED = WORLDS["removed: processes remember"]
TWICE, LOST, REFUSED = "at_most_one_state_change", "nothing_lost", "no_failure"
UNGUARDED = around(judging.lost_pages, replaced(lambda *_: ()))
"""The newest page may be absent, as if it had been there."""


class JudgedToTheEnd(Lifetimes):
    """One by which messages are judged for as long as their marks may stay."""

    def oldest_judged(self, now: datetime) -> timedelta:
        return self.retention.judged(now)


class DeletedAtOnce(Retention):
    """One by which pages go though somebody may still judge by what it was."""

    def kept(self, now: datetime) -> timedelta:
        return self.current


class JudgedAtOnce(Retention):
    """One by which messages are judged though their pages may still go by the former one."""

    def judged(self, now: datetime) -> timedelta:
        return self.current


def _without_token(asked: Any, *_: Any) -> Any:
    return replace(asked, token=None)


def _with_the_marks_of_the_attempt(write: Any, _self: Any, _work: Any, _view: Any, draft: Any, *_: Any) -> Any:
    page = write.page
    return replace(write, page=replace(page, marks=marks.written((*marks.split(page.marks), *draft.marks))))


def _time_first(attempt: Callable[..., Step[Any]]) -> Callable[..., Step[Any]]:
    """The age of messages is judged by the time at which the attempt began."""

    def twin(*arguments: Any) -> Step[Any]:
        begun = yield from Begin()
        aged = answers(
            OpenNumbers, lambda reply, *_: replace(reply, at=begun.at) if isinstance(reply, Opened) else reply
        )
        result = yield from aged(attempt)(*arguments)
        return result

    return twin


def _up_to_the_cut(found: Any, _find: Any, _entity: Any, _messages: Any, view: Any, *_: Any) -> Any:
    if not isinstance(found, FoundPages):
        return found
    return FoundPages(tuple(replace(page, number=min(page.number, view.ledger.cut)) for page in found.pages))


def _token_of_before(reply: Any, _write: Any, _self: Any, _work: Any, view: Any, *_: Any) -> Any:
    return Written(view.ledger.token) if isinstance(reply, Written) else reply


def _written_all_the_same(reply: Any, _write: Any, _self: Any, _work: Any, view: Any, *_: Any) -> Any:
    return Written(view.ledger.token) if isinstance(reply, NoAnswer) else reply


NOTHING = Written("0:-1#0")
OVERWRITES = {"in_the_way": lambda *_: False}
ONE_PAGE = {"page_name": lambda _: "page:0", **OVERWRITES}

BROKEN_MEMORY: tuple[Broken[Scenario], ...] = (
    Broken("complete is not raised", (mistakes.COMPLETE_NOT_RAISED,), THREE, TWICE, 11),
    Broken(
        "complete is raised to the oldest mark that leaves",
        (mistakes.ledger_after_a_page(lambda made, before, page: replace(made, complete=max(before.complete, page.begin))),),
        replace(YOUNGER, copies=(2, 2, 1), room=1, strategy=None, budget=Budget()), TWICE, 13,
    ),
    Broken("nobody looks for pages", (mistakes.NO_PAGES_SOUGHT,), THREE, TWICE, 11),
    Broken(
        "only strictly older messages are looked for",
        (around(judging.may_have_left, replaced(lambda item, now: item.since is None or item.since < now.complete)),),
        THREE, TWICE, 11,
    ),
    Broken("pages are looked for without the token", (mistakes.PAGES_IN_ANY_VIEW,), THREE, REFUSED, 10),
    Broken(
        "the token of a page is not carried", (around(COMMIT, answers(WritePage, _token_of_before)),), THREE, REFUSED,
        10,
    ),
    Broken("the page is not written", (around(COMMIT, unasked(WritePage, NOTHING)),), THREE, REFUSED, 9),
    Broken(
        "the page is written after the commit", (around(COMMIT, deferred(WritePage, NOTHING, SaveEntity)),), THREE,
        REFUSED, 9,
    ),
    Broken(
        "an unknown page is taken for written", (around(COMMIT, answers(WritePage, _written_all_the_same)),), THREE,
        REFUSED, 10,
    ),
    Broken(
        "the page is not written, and nobody misses it", (around(COMMIT, unasked(WritePage, NOTHING)), UNGUARDED),
        THREE, TWICE, 10,
    ),
    Broken("one page, written over", (), THREE, REFUSED, 13, chores=ONE_PAGE),
    Broken(
        "the page has the marks of the attempt", (around(COMMIT, asks(WritePage, _with_the_marks_of_the_attempt)),),
        THREE, LOST, 12, chores=OVERWRITES,
    ),
    Broken(
        "a page lives by its oldest mark",
        (
            around(
                outbox._seconds,
                lambda shipped: lambda work, page, at: shipped(work, replace(page, until=page.begin), at),
            ),
        ),
        replace(AGED, copies=(1, 2, 1), ages=Ages(5, (0, 4, 4)), room=1, strategy=None), "raised DatabaseRestored", 17,
    ),
    Broken("the age is judged before the look", (around(Outbox.attempt, _time_first), UNGUARDED), AGED, TWICE, 19),
    Broken(
        "messages are judged up to the retention", (UNGUARDED,), AGED, TWICE, 16,
        ages={"lifetimes": JudgedToTheEnd(Retention(timedelta(days=2)), timedelta(hours=1))},
    ),
    Broken("nobody judges", (), AGED, TWICE, 16, ages={"judges": False}),
    Broken(
        "marks are forgotten before the retention", (), WORLDS["marks go with age"], TWICE, 12,
        ages={"trimmed": 1, "times": (2, 4, 5)},
    ),
    Broken("saved without a condition", (mistakes.saved_without_condition("*"),), DUPLICATES, LOST, 6),
    Broken("an unknown save is taken for done", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), DUPLICATES, "no_ghost_output", 4),
    Broken("a conflict is taken for a copy", (CONFLICT_TAKEN_FOR_A_COPY,), DUPLICATES, LOST, 3),
    Broken("copies have another time", (UNGUARDED,), AGED, TWICE, 12, ages={"arriving": True}),
    Broken(
        "untimed messages are judged by their arrival", (UNGUARDED,),
        WORLDS["pages go with age, one message has no stable time"], TWICE, 16,
        ages={"arriving": True, "untimed": frozenset({0, 1, 2})},
    ),
    Broken(
        "a shorter retention is gone by at once", (UNGUARDED,), WORLDS["a retention is shortened"], TWICE, 17,
        ages={"lifetimes": outbox_ages.changing(DeletedAtOnce, 2, 4).lifetimes},
    ),
    Broken(
        "a longer retention is judged by at once", (UNGUARDED,), WORLDS["a retention is lengthened"], TWICE, 16,
        ages={"lifetimes": outbox_ages.changing(JudgedAtOnce, 4, 2).lifetimes},
    ),
    Broken(
        "what is too old is published all the same", (), WORLDS["what is owed grows too old"], LOST, 8,
        ages={"limits": False},
    ),
    Broken(
        "a page of a later version is believed", (around(judging.look_apart, answers(FindPages, _up_to_the_cut)),),
        PUT_BACK, LOST, 20,
    ),
    Broken("the newest page may be absent", (UNGUARDED,), WORLDS["pages are lost"], TWICE, 13),
    Broken(
        "a removed ledger is told without a fence", (around(outbox._require_no_pages, unasked(SaveEntity, SAVED)),),
        THREE, "raised LedgerRemoved", 8,
    ),
    Broken(
        "nobody asks whether an absent entity has pages", (around(outbox._require_no_pages, unasked(HasPages, False)),),
        WORLDS["removed: three messages"], TWICE, 10,
    ),
    Broken(
        "nobody asks with a token whether it has", (around(outbox._require_no_pages, asks(HasPages, _without_token)),),
        REMEMBERED, TWICE, 12,
    ),
    # What is not promised: a replica lags behind all pages, and the process that asks has just begun.
    Broken("a process begins anew", (), replace(REMEMBERED, budget=replace(REMEMBERED.budget, crashes=1)), TWICE, 11),
)  # fmt: skip
"""Each falls by the shortest story that there is."""


# The zoo of books: what could make outputs count as sent that were not, or leave them to nobody.


BOOKS = {item.name.removeprefix("books: "): item for item in (*books.SMALL, *worlds.SMALL)}
ONE_PROCESS = BOOKS["one process, then another, every fault"]
TWO_PROCESSES = BOOKS["two processes"]
WITH_SWEEPER = BOOKS["two messages, and the sweeper"]
ASKED = BOOKS["clients leave"]


class Trusting(Clerk):
    """One that takes what has no book for sent."""

    def proves(self, read: Mapping[str, BookWritten | None], tx: str) -> bool:
        return any(read[book] is None for book in read) or super().proves(read, tx)


class Sanguine(Clerk):
    """One that takes all numbers of others for sent."""

    def proves(self, read: Mapping[str, BookWritten | None], tx: str) -> bool:
        return True


BROKEN_BOOKS: tuple[Broken[Scenario], ...] = (
    Broken("a number is closed before it is sent", (mistakes.CLOSED_BEFORE_SENT,), ONE_PROCESS, LOST, 6),
    Broken("any view closes a number", (mistakes.CLOSED_BY_ANY_VIEW,), WITH_SWEEPER, LOST, 9),
    Broken("a conflict closes a number", (mistakes.closed_on(Conflict),), ONE_PROCESS, LOST, 5),
    Broken("an unknown save closes a number", (mistakes.closed_on(NoAnswer),), ONE_PROCESS, LOST, 5),
    Broken("what has no book is taken for sent", (), ONE_PROCESS, LOST, 7, chores={"clerk": Trusting}),
    Broken("numbers of others are taken for sent", (), ONE_PROCESS, LOST, 7, chores={"clerk": Sanguine}),
    Broken(
        "a book says only how far", (around(Book.pays, replaced(lambda self, number: number <= self.used)),),
        TWO_PROCESSES, LOST, 7,
    ),
    Broken(
        "a process that begins anew takes the same book", (), replace(ONE_PROCESS, copies=(2, 1), budget=Budget(1, 1)),
        LOST, 8, chores={"fresh_id": lambda _: "b0"},
    ),
    Broken("entries of others are dropped", (mistakes.ENTRIES_DROPPED,), TWO_PROCESSES, LOST, 7),
    Broken("what copies owe is not sent", (mistakes.OWED_NOT_PUBLISHED,), ONE_PROCESS, LOST, 5),
    Broken(
        "a settler tells its book a part of the outbox",
        (around(Outbox._finished, asks(FindPaid, lambda find, *_: _of_what_is_needed(find))),),
        BOOKS["the settler during processing"], LOST, 11,
    ),
)  # fmt: skip

LEFT_TO_NOBODY: tuple[Broken[Scenario], ...] = (
    Broken("numbers are used before the store has the book", (), ASKED, chores={"books_first": False}),
    Broken("nobody sweeps", (), replace(ASKED, budget=replace(ASKED.budget, sweeps=0))),
)
"""Nothing falls, but what a client left behind is never sent."""


def _of_what_is_needed(find: FindPaid) -> FindPaid:
    owing = [pair for pair in zip(find.transactions, find.attempts, strict=True) if pair[0] in find.needed]
    return replace(find, transactions=tuple(tx for tx, _ in owing), attempts=tuple(at for _, at in owing))


# More of the zoo: what can go wrong with sweeper, settler and clean-up if one guard is missing, and where it shows.


SWEPT = Scenario("swept", (1, 1), budget=Budget(crashes=1, unknown=1, sweeps=1))
GIVEN_UP = Scenario("given up", (1,), budget=Budget(crashes=1, unknown=1, stale=1, poisoned=1))
CLEANED = next(item for item in kept.SMALL if item.name == "kept: cleaned up meanwhile")


def fenced_at_any_rate(fenced: Any, _entity: Any, view: Any, _absent: Any) -> Any:
    del fenced
    return replace(view.memory, saved=None)


def _no_look(_entity: Any, _messages: Any, view: Any) -> Step[Any]:
    yield from ()
    return view


BROKEN_CHORES: tuple[Broken[Scenario], ...] = (
    Broken(
        "a sweeper that drops and does not publish", (around(Outbox.sweep, unasked(Publish, PUBLISHED)),), SWEPT,
        "nothing_lost", 5,
    ),
    Broken(
        "a sweeper that drops though publishing failed",
        (around(Outbox.sweep, answers(Publish, lambda *_: PUBLISHED)),), SWEPT, "nothing_lost", 6,
    ),
    Broken(
        "a settler that takes an unknown fence for one", (around(loading.fence, comes_to(fenced_at_any_rate)),),
        GIVEN_UP, "parked_is_unprocessed", 8,
    ),
    Broken(
        "a settler that does not publish what its message owes",
        (around(Outbox._finished, unasked(Publish, PUBLISHED)),),
        replace(GIVEN_UP, budget=Budget(crashes=1, poisoned=1)), "nothing_lost", 6,
    ),
    Broken(
        "a settler that looks for no page", (around(Outbox._finished, seeing(look_apart=_no_look)),),
        replace(GIVEN_UP, copies=(1, 1), room=0, strategy=None, budget=Budget(crashes=1, sweeps=1, poisoned=1)),
        "parked_is_unprocessed", 14,
    ),
)  # fmt: skip

NEVER_CLEANED: tuple[Broken[Scenario], ...] = (
    Broken("clean-up without a fence", (around(retention.clean_staged, unasked(SaveEntity, SAVED)),), CLEANED),
    Broken(
        "clean-up with the fence after the deletion",
        (around(retention.clean_staged, deferred(SaveEntity, SAVED, until=DeleteStaged)),), CLEANED,
    ),
    Broken(
        "clean-up that takes an unknown fence for one",
        (around(retention.clean_staged, answers(SaveEntity, taken_for(SAVED, Conflict, NoAnswer))),), CLEANED,
    ),
    Broken(
        "clean-up without a fence where the entity is absent",
        (around(retention.clean_staged, unasked(SaveEntity, SAVED, lambda save, *_: save.etag is None)),), CLEANED,
    ),
)  # fmt: skip
"""Nothing falls, for nothing wrong is sent; but a message stays kept for ever."""
