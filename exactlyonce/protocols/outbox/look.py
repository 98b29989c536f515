"""Looking for what is not in the ledger: pages that may know a message, and documents of requests that callers opened."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final

from exactlyonce.attempt import Again, Work
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.pages import DeletePages, FindPages, FindPagesAbove
from exactlyonce.effects.requests import FoundRequests, LoadRequests
from exactlyonce.errors import DatabaseRestored
from exactlyonce.protocols.outbox.judge import Arrival, Arrived, Failed, judged
from exactlyonce.protocols.steps.load import View
from exactlyonce.protocols.steps.save import fence
from exactlyonce.records.marks import by_hash
from exactlyonce.records.pages import FIRST, Page
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after, later

_BEHIND: Final = (
    "no replica of the library's container is at the session token of the ledger (if this stays: was that container, or the "
    "account, exchanged or restored?)"
)


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
    hidden, lacking = judged(messages, view).hidden, _lacking_answers(messages, view)
    if not hidden and not lacking:
        return view
    ledger = view.ledger
    times = tuple(dict.fromkeys(one.since for one in hidden if one.since is not None))
    hashes = tuple(one.hash for one in (*hidden, *lacking) if one in lacking or one.since is None)
    # Find the pages that may know the messages, at the ledger's session token. A page is written before the commit that drops its
    # marks, so a view at that token has all of them.
    pages = yield from FindPages(entity, times, hashes, ledger.cut, ledger.token)
    if isinstance(pages, NoAnswer):
        return Again(view.memory, _BEHIND)
    # A page of a later version is no evidence: it is of a history of the entity that was taken back.
    return replace(view, pages=tuple(page for page in pages.pages if page.version <= ledger.cut))


def first_look(entity: EntityRef, messages: Arrived, token: str | None) -> LoadRequests:
    """The look for requests while their entity is loaded: in a view that shows them open, or what became of them since.

    Args:
        entity: that is loaded.
        messages: of the attempt.
        token: that this process knows of the library's partition.
    """
    opened = (one.envelope.opened for one in messages.requests)
    return LoadRequests(entity, tuple(one.envelope.id for one in messages.requests), reduce(later, opened, token))


def lost_pages(looked: tuple[Arrival, ...], view: View, now: int, retention: int) -> Failed:
    """The errors of messages that may have a mark in a page, where the newest page is gone before its time.

    Args:
        looked: messages that were looked for in pages, and not found.
        view: with the pages.
        now: the present, in milliseconds since 1970.
        retention: for which pages stay, in milliseconds.
    """
    ledger = view.ledger
    there = view.pages is None or any(page.version == ledger.cut for page in view.pages)
    if there or ledger.cut == FIRST or ledger.until + retention <= now:
        return ()
    return tuple(
        (
            one.key,
            DatabaseRestored(
                f"Message {one.key} for entity {ledger.entity} is not known, but what the library kept of older messages is "
                "gone: its newest page is not there. The message may have been processed, so nothing was changed. Was the "
                "library's container restored, or emptied?"
            ),
        )
        for one in looked
    )


def take_back(work: Work, view: View, page: Page) -> Step[Again]:
    """Delete the pages of a history that was taken back, which are in the way of a page. At most 3 effects.

    The document was put back to an earlier version. What pages of later versions say never happened; the first of them is in the
    way of the page that follows the same one now. They go only as they were read before a fence: if it holds, the view was
    current, and its ledger names all pages that count. Later ones, of commits after the fence, stay.

    Args:
        work: the entity.
        view: of the entity, as the attempt started from it.
        page: that could not be written.
    """
    entity = work.entity
    # Find the pages of later versions than the ledger's newest page. Those that are there now belong to no history of the ledger.
    found = yield from FindPagesAbove(entity, view.ledger.cut, view.ledger.token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "the pages of another history could not be read")
    fenced = yield from fence(entity, view, work.absent)
    if isinstance(fenced, Again):
        return fenced
    # Delete these pages, as they were read. What remains is in the way again.
    yield from DeletePages(entity, tuple((one.after, etag) for one, etag in found.pages if one != page))
    return Again(fenced, "the entity had another history, whose pages were in the way")


def _look_for_requests(entity: EntityRef, messages: Arrived, token: str | None) -> Step[FoundRequests | NoAnswer]:
    # Read the documents of opened requests, in a view that shows each of them open, or what became of it.
    found = yield from first_look(entity, messages, token)
    return found


def _lacking_answers(messages: Arrived, view: View) -> tuple[Arrival, ...]:
    """Requests that are known here, by a mark or by what they owe, and whose answer has left for a page."""
    ledger = view.ledger
    if ledger.cut == FIRST:
        return ()
    here = {*by_hash(ledger.marks), *(entry.cause for entry in ledger.outbox)}
    answers = {one.cause for one in ledger.answers}
    return tuple(
        one
        for one in messages.messages
        if one.envelope.asked and one.kind != "q" and one.hash in here and one.hash not in answers
    )
