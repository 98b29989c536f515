"""The zoo of requests: what a client could be told that is not the committed answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Again, Before, Finished
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, SaveEntity
from exactlyonce.effects.library import DeleteStaged, KeepAnswers, LoadStaged, Stage, Written
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import due
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.steps.load import load
from exactlyonce.records.ledger import by_hash
from tests.model.broken_memory import CONFLICT_TAKEN_FOR_A_COPY, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.scenarios import calls, kept, opened, requests
from verification.scenarios.calls import FIRST
from verification.twins.alterations import answers, called, ending, first, followed, replaced, unasked
from verification.twins.mistakes import COMMIT, NO_PAGES_SOUGHT, OWED_NOT_PUBLISHED, saved_without_condition
from verification.twins.modules import around, constant
from verification.world.scenario import Scenario

REQUESTS = {scenario.name.removeprefix("requests: "): scenario for scenario in requests.SMALL}
LOST_REPLIES = REQUESTS["lost replies"]
LEAVING = REQUESTS["marks leave"]
BODIES = REQUESTS["two bodies under one key"]
TOGETHER = REQUESTS["two bodies in one commit"]
LOST, TWICE, REFUSED, GHOST = "nothing_lost", "at_most_one_state_change", "no_failure", "no_ghost_output"
ANSWER, GARBAGE = "one_answer", "no_garbage"


def _answered_by_the_loser(
    reply: Any, _save: Any, _self: Any, _work: Any, view: Any, draft: Any, *_: Any
) -> Finished | None:
    if not isinstance(reply, Conflict):
        return None
    return Finished(view.memory, draft.processed)


def _of_marks_here(copies: Any, ledger: Any) -> tuple[Any, ...]:
    """Only of messages whose mark is in the ledger answers are looked for."""
    marks = by_hash(ledger.marks)
    return tuple(item for item in _LACKING(copies, ledger) if item.hash in marks)


_LACKING = judging._lacking_answers
PUBLISHED_UNASKED = around(outbox.pay, unasked(Publish, PUBLISHED))

BROKEN_REQUESTS: tuple[Broken[Scenario], ...] = (
    Broken("requests: answered before the outputs are published", (PUBLISHED_UNASKED,), LOST_REPLIES, LOST, 3),
    Broken("requests: a duplicate is answered before it is published", (OWED_NOT_PUBLISHED,), LOST_REPLIES, LOST, 4),
    Broken("requests: a lost save is answered", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), LOST_REPLIES, "no_ghost_output", 4),
    Broken(
        "requests: the loser answers", (around(COMMIT, ending(SaveEntity, _answered_by_the_loser)),), BODIES, LOST, 6,
    ),
    Broken("requests: pages are not looked at", (NO_PAGES_SOUGHT,), LEAVING, TWICE, 10),
    Broken(
        "requests: answers that have left are looked for where a mark is here",
        (around(judging._lacking_answers, replaced(_of_marks_here)),), LEAVING, "no_failure", 8,
    ),
    Broken(
        "requests: a page without its answers",
        (around(drafting.leaving, lambda leaving: lambda *a: (made := leaving(*a)) and replace(made, answers=())),),
        LEAVING, "no_failure", 9,
    ),
)  # fmt: skip


# The zoo of opened requests: what could lose one, or its answer, or leave its document behind.


OPENED = {scenario.name.removeprefix("opened: "): scenario for scenario in opened.SMALL}
STALE_READS = OPENED["stale reads"]
TAKEN_FOR_KEPT = Written("0:-1#0")


def _kept_all_the_same(reply: Any, *_: Any) -> Any:
    return reply if isinstance(reply, Written) else TAKEN_FOR_KEPT


BROKEN_OPENED: tuple[Broken[Scenario], ...] = (
    Broken(
        "opened: an older view of the document will do",
        (around(judging.is_read_too_early, replaced(lambda *_: False)),), STALE_READS, ANSWER, 10,
    ),
    Broken(
        "opened: looked in any view",
        (around(judging.first_look, lambda look: lambda *given: replace(look(*given), token=None)),), STALE_READS, LOST,
        3,
    ),
    Broken(
        "opened: the answer is not kept", (around(outbox._keep_answers, unasked(KeepAnswers, TAKEN_FOR_KEPT)),),
        STALE_READS, ANSWER, 7,
    ),
    Broken(
        "opened: an unknown keep is taken for done",
        (around(outbox._keep_answers, answers(KeepAnswers, _kept_all_the_same)),), STALE_READS, ANSWER, 8,
    ),
    Broken(
        "opened: the document goes, like a message's token", (), STALE_READS, LOST, 9,
        chores={"kept": lambda _there, _written: None},
    ),
    Broken(
        "opened: the answer is written whether or not the request is there", (), STALE_READS, GARBAGE, 7,
        chores={"kept": lambda _there, written: written},
    ),
)  # fmt: skip
"""In the last two, what is around the strategy is broken."""


# The zoo of calls: what could make an entity handle a reply twice, or never.


CALLS = {scenario.name.removeprefix("calls: "): scenario for scenario in calls.SMALL}


def _only_its_own_calls(work: Any, view: Any, draft: Any, *rest: Any) -> tuple[Any, ...]:
    """The ledger of a commit is made of the calls that it makes."""
    made = tuple(call for call in draft.calls if call not in view.ledger.calls)
    return (work, view, draft._replace(calls=made), *rest)


def _without_its_calls(added: Any) -> Any:
    return lambda draft, entity, arrival, handled, commit, *, calls: added(
        draft, entity, arrival, handled, commit, calls=tuple(call for call in calls if call not in handled.calls)
    )


NOT_REMOVED = around(judging.answered, replaced(lambda calls, _arrival: calls))
NEVER_BEHIND = around(judging.is_behind, replaced(lambda _arrival, _view: False))

BROKEN_CALLS: tuple[Broken[Scenario], ...] = (
    Broken(
        "calls: a call is forgotten before its reply is handled",
        (around(drafting.next_ledger, called(_only_its_own_calls)),), CALLS["another message comes between"], REFUSED,
        8,
    ),
    Broken(
        "calls: the commit that calls does not write the call", (around(drafting._added, _without_its_calls),),
        CALLS["lost replies"], REFUSED, 5,
    ),
    Broken(
        "calls: a handled reply is still awaited", (NOT_REMOVED,), CALLS["another message comes between"], TWICE, 13,
    ),
    Broken(
        "calls: a reply answers all calls",
        (around(judging.answered, replaced(lambda calls, arrival: () if arrival.reply else calls)),),
        CALLS["two calls, answered in one commit"], REFUSED, 8,
    ),
    Broken("calls: an old view shows a copy", (NEVER_BEHIND,), CALLS["stale reads"], REFUSED, 6),
    Broken(
        "calls: an old view shows a copy, in a group", (NEVER_BEHIND,), CALLS["in groups with another message"],
        REFUSED, 6,
    ),
    Broken("calls: an old view settles a reply", (NEVER_BEHIND,), CALLS["given up"], REFUSED, 6),
    Broken(
        "calls: what the copy of a reply owes is not published",
        (around(judging.judged, lambda shipped: lambda *known: replace(shipped(*known), copies=())),),
        CALLS["lost replies"], LOST, 4,
    ),
    Broken("calls: saved without a condition", (saved_without_condition("*"),), CALLS["stale reads"], LOST, 6),
    Broken("calls: a conflict is taken for a copy", (CONFLICT_TAKEN_FOR_A_COPY,), CALLS["stale reads"], LOST, 6),
    Broken(
        "calls: a lost save is taken for done", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), CALLS["lost replies"],
        "no_ghost_output", 4,
    ),
)  # fmt: skip

AWAITED_FOR_EVER: Broken[Scenario] = Broken(
    "awaited for ever",
    (NOT_REMOVED,),
    Scenario("calls: one reply", (1, 0), CALLS["lost replies"].strategy, workers=1, replies=(None, FIRST)),
)
"""Nothing falls, for no copy comes; but the work is never finished."""


# The zoo of kept messages: what could release one twice, after it was cancelled, or never.


KEPT = {scenario.name.removeprefix("kept: "): scenario for scenario in kept.SMALL}


def _cancelling_nothing(draft: Any, entity: Any, arrival: Any, handled: Any, commit: Any) -> tuple[Any, ...]:
    return (draft, entity, arrival, replace(handled, cancelled=frozenset()), commit)


def _keeping_nothing(draft: Any, entity: Any, arrival: Any, handled: Any, commit: Any) -> tuple[Any, ...]:
    return (draft, entity, arrival, replace(handled, kept=()), commit)


def _only_its_own_kept(work: Any, view: Any, draft: Any, *rest: Any) -> tuple[Any, ...]:
    """The ledger of a commit names what it keeps, and nothing of before."""
    own = tuple(item for item in draft.kept if item not in view.ledger.kept)
    return (work, view, draft._replace(kept=own), *rest)


def _told_nothing(*known: Any, **named: Any) -> Before:
    return replace(Before(*known, **named), kept=frozenset())


def _published(found: Any, *_: Any) -> Publish | None:
    outputs = tuple(output for document in getattr(found, "documents", ()) for output in document.outputs)
    return Publish(outputs) if outputs else None


def _deleted_first(_self: Any, work: Any, view: Any, *_: Any) -> DeleteStaged | None:
    kept = tuple(item.tx for item in view.ledger.kept)
    return DeleteStaged(work.entity, kept) if kept else None


def _load_without_kept(*arguments: Any) -> Step[Any]:
    view = yield from load(*arguments)
    return view if isinstance(view, Again) else replace(view, ledger=replace(view.ledger, kept=()))


BROKEN_KEPT: tuple[Broken[Scenario], ...] = (
    Broken(
        "kept: saved without a condition", (saved_without_condition("*"),), KEPT["cancelled, stale reads"],
        "serial_execution", 7,
    ),
    Broken(
        "kept: what was released, or cancelled, is still kept", (around(drafting._added, called(_cancelling_nothing)),),
        KEPT["released, repeated saves"], LOST, 7,
    ),
    Broken(
        "kept: the commit does not name what it keeps", (around(drafting._added, called(_keeping_nothing)),),
        KEPT["released, repeated saves"], LOST, 3,
    ),
    Broken(
        "kept: the next commit forgets what is kept", (around(drafting.next_ledger, called(_only_its_own_kept)),),
        KEPT["the entity is deleted before it is due"], LOST, 6,
    ),
    Broken(
        "kept: a handler is not told what was kept before it", (constant(drafting, "Before", _told_nothing),),
        KEPT["cancelled in the commit that keeps"], "serial_execution", 4,
    ),
    Broken(
        "kept: sent before the commit that releases it", (around(due.release, followed(LoadStaged, _published)),),
        KEPT["cancelled, lost replies"], GHOST, 7,
    ),
    Broken(
        "kept: a lost save is taken for done", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), KEPT["released, lost replies"], LOST, 4,
    ),
)  # fmt: skip

NEVER_RELEASED: tuple[Broken[Scenario], ...] = (
    Broken(
        "kept: committed without being staged", (around(Outbox._commit, unasked(Stage, Written("0:-1#0"))),),
        KEPT["released, repeated saves"],
    ),
    Broken(
        "kept: deleted before the commit that releases it", (around(COMMIT, first(_deleted_first)),),
        KEPT["released, lost replies"],
    ),
    Broken(
        "kept: clean-up takes it for garbage", (constant(retention, "load", _load_without_kept),),
        KEPT["cleaned up meanwhile"],
    ),
)  # fmt: skip
"""Nothing falls, for nothing wrong is sent; but a message stays kept for ever."""
