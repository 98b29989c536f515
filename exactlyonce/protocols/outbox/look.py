"""Looking for what is not in the ledger: pages that may know a message, and documents of requests that callers opened."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Final

from exactlyonce.attempt import Again, Work
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.pages import DeletePages, FindPages, FindPagesAbove
from exactlyonce.effects.requests import FoundRequests, LoadRequests
from exactlyonce.errors import DatabaseRestored, TooOldToJudge
from exactlyonce.protocols.outbox.judge import Arrival, Arrived, Failed, judged, known_in, may_have_left
from exactlyonce.protocols.steps.fresh_token import fresh_token
from exactlyonce.protocols.steps.load import View
from exactlyonce.protocols.steps.save import fence
from exactlyonce.records.pages import Page
from exactlyonce.values.envelope import time_of
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import AHEAD
from exactlyonce.values.session_tokens import at_or_after, later

BEHIND_LEDGER: Final = (
    "no replica of the library's container is at the session token of the ledger (if this stays: was that container, or the "
    "account, exchanged or restored?)"
)
"""Reason of an attempt that goes no further, lest what only lost pages know be forgotten."""
_RETURNING: Final = "exactlyonce/taking-back"
"""Key of no message: messages of this source are nobody's."""


def look_apart(
    entity: EntityRef, messages: Arrived, view: View, opened: FoundRequests | None = None
) -> Step[View | Again]:
    """The view with all that the library's partition knows of the messages, at the ledger's session token. At most 2 effects.

    Args:
        entity: that was loaded, or is remembered.
        messages: of the attempt.
        view: of the entity. What pages and documents say was committed, whatever the ledger is by now.
        opened: the documents of opened requests as `first_look` asked for them; None if nobody has looked.
    """
    if messages.requests:
        found = opened
        if found is None or not at_or_after(found.token, view.ledger.token):
            # Look for requests at the ledger's session token.
            again = yield from _look_for_requests(entity, messages, view.ledger.token)
            if isinstance(again, NoAnswer):
                return Again(view.memory, "the documents of requests could not be read")
            found = again
        view = replace(view, requests=found.documents)
    may_be_hidden = any(may_have_left(one, view.ledger) for one in messages.messages)
    hidden = judged(messages, view).hidden if may_be_hidden else ()
    lacking = _lacking_answers(messages, view)
    if not hidden and not lacking:
        return view
    ledger = view.ledger
    times = tuple(dict.fromkeys(one.since for one in hidden if one.since is not None))
    # The answer to a request may have left before its mark, with another page.
    hashes = tuple(one.hash for one in (*hidden, *lacking) if one in lacking or one.since is None or one.envelope.asked)
    # Find the pages that may know the messages, at the ledger's session token. A page is written before the commit that drops
    # its marks, so a view at that token has all of them.
    pages = yield from FindPages(entity, times, hashes, ledger.cut, ledger.token)
    if isinstance(pages, NoAnswer):
        return Again(view.memory, BEHIND_LEDGER)
    # A page of a later version is no evidence: it is of a history of the entity that was taken back.
    return replace(view, pages=tuple(page for page in pages.pages if page.number <= ledger.cut))


def first_look(entity: EntityRef, messages: Arrived, token: str | None) -> LoadRequests:
    """The look for requests while their entity is loaded: in a view that shows them open, or what became of them since.

    Args:
        entity: that is loaded.
        messages: of the attempt.
        token: that this process knows of the library's partition.
    """
    opened = (one.envelope.opened for one in messages.requests)
    return LoadRequests(entity, tuple(one.envelope.id for one in messages.requests), reduce(later, opened, token))


def lost_pages(work: Work, fresh: tuple[Arrival, ...], view: View, now: datetime) -> Failed:
    """The errors of messages that may have a mark in a page which is gone before its time.

    The newest page shows if all are gone. A page that is so old that no message with its time is judged may be gone in order. A
    reply is known by its call.

    Args:
        work: says which messages are judged.
        fresh: messages that were looked for, and not found.
        view: with the pages.
        now: the present, by the store's time.
    """
    ledger = view.ledger
    there = not ledger.cut or view.pages is None or any(page.number == ledger.cut for page in view.pages)
    lost = ledger.lost if there or _is_over(work, ledger.complete, now) else ledger.complete
    if lost < 0:
        return ()
    return tuple(
        (
            one.key,
            DatabaseRestored(
                f"Message {one.key} for entity {ledger.entity} is not known, but what the library kept of older messages is "
                "gone. The message may have been processed, so nothing was changed. Was the library's container restored, "
                "exchanged or emptied?"
            ),
        )
        for one in fresh
        if one.reply is None and may_have_left(one, ledger) and not _is_over(work, lost, now) and _is_by(one, lost)
    )


def take_back(work: Work, view: View, page: Page) -> Step[Again]:
    """Delete the pages of a history that was taken back, which are in the way of a page. At most 6 effects.

    The document was put back to an earlier version. What pages of later versions say never happened; the first of them is in
    the way of the page that follows the same one now. They go only as they were read before a fence: if it holds, the view was
    current, and its ledger names all pages that count. Later ones, of commits after the fence, stay.

    The page that is in the way goes last. So where deleting ends early, something is in the way still, and the rest goes next.

    Args:
        work: the entity.
        view: of the entity, as the attempt started from it.
        page: that could not be written.
    """
    entity = work.entity
    token = yield from fresh_token(entity, _RETURNING)
    if token is None:
        return Again(view.memory, "whether anything was written is not known")
    # Find the pages of later versions than the ledger's newest page, in a view of the present. Those that are there now belong
    # to no history of the ledger. One that stayed behind would count as soon as the entity has its version.
    found = yield from FindPagesAbove(entity, view.ledger.cut, token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "the pages of another history could not be read")
    fenced = yield from fence(entity, view, work.absent)
    if isinstance(fenced, Again):
        return fenced
    newest_first = sorted(found.pages, key=lambda one: -one[0].number)
    # Delete these pages, as they were read, the newest first. What remains is in the way again.
    yield from DeletePages(entity, tuple((one.number, etag) for one, etag in newest_first if one != page))
    return Again(fenced, "the entity had another history, whose pages were in the way")


def _is_over(work: Work, milliseconds: int, now: datetime) -> bool:
    """Whether no message that came about at a time, or before, is judged any more."""
    return isinstance(work.refusal(time_of(milliseconds), now), TooOldToJudge)


def _is_by(one: Arrival, lost: int) -> bool:
    """Whether a message came about by a time. The clock of a sender may be ahead of the processing of an untimed message."""
    if one.since is not None:
        return one.since <= lost
    return one.envelope.time is None or one.envelope.time <= time_of(lost) + AHEAD


def _look_for_requests(entity: EntityRef, messages: Arrived, token: str | None) -> Step[FoundRequests | NoAnswer]:
    # Read the documents of opened requests, in a view that shows each of them open, or what became of it.
    found = yield from first_look(entity, messages, token)
    return found


def _lacking_answers(messages: Arrived, view: View) -> tuple[Arrival, ...]:
    """Requests that are known here by a mark, or by what they owe, and whose answer has left for a page."""
    asked = [one for one in messages.messages if one.envelope.asked and one.kind != "q"]
    if not asked or not view.ledger.cut:
        return ()
    here = known_in(view)
    answers = {one.cause for one in view.ledger.answers}
    return tuple(one for one in asked if one.hash in here and one.hash not in answers)
