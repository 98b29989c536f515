"""The zoo of marks and pages: what could make an entity forget a message, or take one for processed that never was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.effect import Begin, NoAnswer, Opened, Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import FindPages, FoundPages, HasPages, OpenNumbers, WritePage, Written
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.records import ledger as marks
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.model.careless import COMMIT, CONFLICT_TAKEN_FOR_A_COPY, SAVED, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.scenarios import outbox as worlds
from verification.scenarios import outbox_ages, restores
from verification.twins.alterations import answers, asks, deferred, replaced, unasked
from verification.twins.modules import Patch, around
from verification.world.scenario import Ages, Budget, Scenario

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


def ledger(change: Callable[..., Any]) -> Patch:
    """The ledger of a commit as `change(ledger, before, page)` makes it."""

    def wrapper(shipped: Callable[..., Any]) -> Callable[..., Any]:
        def twin(work: Any, view: Any, draft: Any, page: Any, paid: Any, *, token: Any) -> Any:
            made = shipped(work, view, draft, page, paid, token=token)
            return made if page is None else change(made, view.ledger, page)

        return twin

    return around(drafting.next_ledger, wrapper)


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
OVERWRITES = (("in_the_way", lambda *_: False),)
ONE_PAGE = (("page_name", lambda _: "page:0"), *OVERWRITES)

TWINS: tuple[Broken[Scenario], ...] = (
    Broken("complete is not raised", (ledger(lambda made, before, _: replace(made, complete=before.complete)),), THREE, TWICE),
    Broken(
        "complete is raised to the oldest mark that leaves",
        (ledger(lambda made, before, page: replace(made, complete=max(before.complete, page.begin))),),
        replace(YOUNGER, copies=(2, 2, 1), room=1, strategy=None, budget=Budget()),
        TWICE,
    ),
    Broken("nobody looks for pages", (around(judging.may_have_left, replaced(lambda *_: False)),), THREE, TWICE),
    Broken(
        "only strictly older messages are looked for",
        (around(judging.may_have_left, replaced(lambda item, now: item.since is None or item.since < now.complete)),),
        THREE,
        TWICE,
    ),
    Broken(
        "pages are looked for without the token",
        (around(judging.look_apart, asks(FindPages, _without_token)),),
        THREE,
        REFUSED,
    ),
    Broken("the token of a page is not carried", (around(COMMIT, answers(WritePage, _token_of_before)),), THREE, REFUSED),
    Broken("the page is not written", (around(COMMIT, unasked(WritePage, NOTHING)),), THREE, REFUSED),
    Broken(
        "the page is written after the commit", (around(COMMIT, deferred(WritePage, NOTHING, SaveEntity)),), THREE, REFUSED
    ),
    Broken(
        "an unknown page is taken for written", (around(COMMIT, answers(WritePage, _written_all_the_same)),), THREE, REFUSED
    ),
    Broken(
        "the page is not written, and nobody misses it",
        (around(COMMIT, unasked(WritePage, NOTHING)), UNGUARDED),
        THREE,
        TWICE,
    ),
    Broken("one page, written over", (), THREE, REFUSED, chores=ONE_PAGE),
    Broken(
        "the page has the marks of the attempt",
        (around(COMMIT, asks(WritePage, _with_the_marks_of_the_attempt)),),
        THREE,
        LOST,
        chores=OVERWRITES,
    ),
    Broken(
        "a page lives by its oldest mark",
        (
            around(
                outbox._seconds,
                lambda shipped: lambda work, page, at: shipped(work, replace(page, until=page.begin), at),
            ),
        ),
        replace(AGED, copies=(1, 2, 1), ages=Ages(5, (0, 4, 4)), room=1, strategy=None),
        "raised DatabaseRestored",
    ),
    Broken("the age is judged before the look", (around(Outbox.attempt, _time_first), UNGUARDED), AGED, TWICE),
    Broken(
        "messages are judged up to the retention",
        (UNGUARDED,),
        AGED,
        TWICE,
        ages=(("lifetimes", JudgedToTheEnd(Retention(timedelta(days=2)), timedelta(hours=1))),),
    ),
    Broken("nobody judges", (), AGED, TWICE, ages=(("judges", False),)),
    Broken(
        "marks are forgotten before the retention",
        (),
        WORLDS["marks go with age"],
        TWICE,
        ages=(("trimmed", 1), ("times", (2, 4, 5))),
    ),
    Broken(
        "saved without a condition", (around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag="*"))),),
        DUPLICATES, LOST,
    ),
    Broken("an unknown save is taken for done", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), DUPLICATES, "no_ghost_output"),
    Broken("a conflict is taken for a copy", (CONFLICT_TAKEN_FOR_A_COPY,), DUPLICATES, LOST),
    Broken("copies have another time", (UNGUARDED,), AGED, TWICE, ages=(("arriving", True),)),
    Broken(
        "untimed messages are judged by their arrival",
        (UNGUARDED,),
        WORLDS["pages go with age, one message has no stable time"],
        TWICE,
        ages=(("arriving", True), ("untimed", frozenset({0, 1, 2}))),
    ),
    Broken(
        "a shorter retention is gone by at once", (UNGUARDED,), WORLDS["a retention is shortened"], TWICE,
        ages=(("lifetimes", outbox_ages.changing(DeletedAtOnce, 2, 4).lifetimes),),
    ),
    Broken(
        "a longer retention is judged by at once", (UNGUARDED,), WORLDS["a retention is lengthened"], TWICE,
        ages=(("lifetimes", outbox_ages.changing(JudgedAtOnce, 4, 2).lifetimes),),
    ),
    Broken(
        "what is too old is published all the same", (), WORLDS["what is owed grows too old"], LOST, ages=(("limits", False),)
    ),
    Broken(
        "a page of a later version is believed", (around(judging.look_apart, answers(FindPages, _up_to_the_cut)),), PUT_BACK,
        LOST,
    ),
    Broken(
        "the newest page may be absent", (UNGUARDED,), WORLDS["pages are lost"],
        TWICE,
    ),
    Broken(
        "a removed ledger is told without a fence", (around(outbox._require_no_pages, unasked(SaveEntity, SAVED)),), THREE,
        "raised LedgerRemoved",
    ),
    Broken(
        "nobody asks whether an absent entity has pages", (around(outbox._require_no_pages, unasked(HasPages, False)),),
        WORLDS["removed: three messages"], TWICE,
    ),
    Broken(
        "nobody asks with a token whether it has", (around(outbox._require_no_pages, asks(HasPages, _without_token)),),
        REMEMBERED, TWICE,
    ),
    Broken(  # What is not promised: a replica lags behind all pages, and the process that asks has just begun.
        "a process begins anew", (), replace(REMEMBERED, budget=replace(REMEMBERED.budget, crashes=1)), TWICE
    ),
)  # fmt: skip
"""Each falls by the shortest story that there is."""
