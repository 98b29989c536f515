"""What the protocol concludes from what it has read: which messages are copies, which are fresh, and which cannot be told.

A mark knows a message by the hash of its identity. A timed message that is younger than every mark that has left, and has no
mark in the ledger, was never processed. Any other one may have a mark in a page.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Final, Literal, NamedTuple

from exactlyonce.attempt import Again, Work
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import DeletePages, FindPages, FindPagesAbove, FoundRequests, LoadRequests
from exactlyonce.errors import (
    DatabaseRestored,
    ExactlyOnceError,
    InvalidMessage,
    RequestUnknown,
    TooOldToJudge,
    TryAgainLater,
)
from exactlyonce.protocols.steps.load import Answers, Contents, View, fence, fresh_token
from exactlyonce.records.ledger import (
    Calls,
    Kind,
    Ledger,
    Page,
    ReplyTo,
    by_hash,
    content_in,
    is_reply,
    reply_of,
    time_in,
)
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, Envelope, key_of, message_hash, time_of
from exactlyonce.values.lifetimes import AHEAD
from exactlyonce.values.session_tokens import at_or_after, later


class Arrival(NamedTuple):
    """A message of an attempt.

    Attributes:
        key, hash: of the message.
        envelope: of one of its copies.
        kind: of the message.
        since: its time, if it is timed; in milliseconds since 1970.
        reply: what it answers; None if it is no reply to a call.
    """

    key: str
    hash: str
    envelope: Envelope
    kind: Kind
    since: int | None
    reply: ReplyTo | None = None


class Proof(NamedTuple):
    """What proves that a message was processed.

    Attributes:
        place: "ledger" or "page" for a mark there; "outbox" for an entry that owes, whose mark has left.
        since: of the mark, in milliseconds since 1970; None if it is no mark.
        page: its number; None if it is in none.
    """

    place: Literal["ledger", "page", "outbox"]
    since: int | None = None
    page: int | None = None


Failed = tuple[tuple[str, ExactlyOnceError], ...]
"""Key and error of each message that cannot be processed."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The messages of an attempt; copies of one message are one.

    Attributes:
        messages: those that can be for this entity.
        failed: those that cannot.
    """

    messages: tuple[Arrival, ...]
    failed: Failed = ()

    @property
    def requests(self) -> tuple[Arrival, ...]:
        """The requests that were opened."""
        return tuple(one for one in self.messages if one.kind == "q")


@dataclass(frozen=True, slots=True)
class Judged:
    """What a view shows of the messages.

    Attributes:
        copies: messages that were processed.
        fresh: messages that were not.
        hidden: messages of which only pages can say whether they were processed.
        failed: those that cannot be processed, or not in this view.
        known: `known_in` the view, from which it follows.
    """

    copies: tuple[Arrival, ...]
    fresh: tuple[Arrival, ...]
    hidden: tuple[Arrival, ...]
    failed: Failed
    known: Mapping[str, str] = field(compare=False)


def arrived(entity: EntityRef, envelopes: Iterable[Envelope], senders: Container[str]) -> Arrived:
    """Tell what kinds of messages came.

    Args:
        entity: that they came to.
        envelopes: the messages.
        senders: entity types of this application.
    """
    messages: dict[str, Arrival] = {}
    failed: dict[str, ExactlyOnceError] = {}
    for envelope in envelopes:
        key = key_of(envelope)
        try:
            reply = reply_of(envelope, entity, f"Message {key} for entity {entity}") if is_reply(envelope) else None
        except InvalidMessage as error:
            failed[key] = error
        else:
            kind = _kind(envelope, reply, senders)
            messages[key] = Arrival(key, message_hash(key), envelope, kind, envelope.since, reply)
    return Arrived(tuple(messages.values()), tuple(failed.items()))


def judged(arrived: Arrived, view: View) -> Judged:
    """Tell copies from fresh messages.

    What was processed stays so, so even an old view is right about copies. It may take a copy for fresh; then the commit fails
    on its condition.
    """
    known = known_in(view)
    copies: list[Arrival] = []
    fresh: list[Arrival] = []
    hidden: list[Arrival] = []
    failed = list(arrived.failed)
    for one in arrived.messages:
        if one.hash in known:
            copies.append(one)
        elif (refusal := _refusal(one, view)) is not None:
            failed.append((one.key, refusal))
        elif one.kind == "q" and any(
            document.answer for document in view.requests if document.request == one.envelope.id
        ):
            copies.append(one)
        elif _is_awaited(one, view.ledger):
            fresh.append(one)
        elif view.pages is None and may_have_left(one, view.ledger):
            hidden.append(one)
        elif one.reply is not None:
            failed.append((one.key, _not_awaited(one, view)))
        else:
            fresh.append(one)
    return Judged(tuple(copies), tuple(fresh), tuple(hidden), tuple(failed), known)


def known_in(view: View) -> Mapping[str, str]:
    """The marks that a view shows, by the hash of their message. An entry whose mark has left has none: its value is empty."""
    here = by_hash(view.ledger.marks)
    elsewhere = {entry.cause: "" for entry in view.ledger.outbox if entry.cause not in here}
    for page in view.pages or ():
        elsewhere.update(by_hash(page.marks))
    return {**elsewhere, **here} if elsewhere else here


def proof_of(one: Arrival, view: View) -> Proof | None:
    """What a view shows that proves a message processed; None if nothing does."""
    if (mark := by_hash(view.ledger.marks).get(one.hash)) is not None:
        return Proof("ledger", time_in(mark))
    for page in view.pages or ():
        if (mark := by_hash(page.marks).get(one.hash)) is not None:
            return Proof("page", time_in(mark), page.number)
    return Proof("outbox") if any(entry.cause == one.hash for entry in view.ledger.outbox) else None


def may_have_left(one: Arrival, ledger: Ledger) -> bool:
    """Whether the mark of a message that has none in the ledger may be in a page."""
    return bool(ledger.cut) and (one.since is None or one.since <= ledger.complete)


def is_behind(arrival: Arrival, view: View) -> bool:
    """Whether a view is older than the call that a message answers. That it does not await the reply then shows nothing."""
    return arrival.reply is not None and view.ledger.version < arrival.reply.version


def is_read_too_early(one: Arrival, view: View) -> bool:
    """Whether the document of an opened request that was carried out was read in a view older than its answer."""
    if one.kind != "q" or any(entry.cause == one.hash and entry.answer is not None for entry in view.ledger.outbox):
        return False
    return any(document.request == one.envelope.id and document.answer is None for document in view.requests)


def answers_of(copies: tuple[Arrival, ...], view: View) -> Answers:
    """The answers to requests among copies, as far as this view has them."""
    if not copies:
        return ()
    kept = {one.cause: one.answer for page in view.pages or () for one in page.answers}
    kept |= {one.cause: one.answer for one in view.ledger.answers}
    kept |= {entry.cause: entry.answer for entry in view.ledger.outbox if entry.answer is not None}
    opened = {document.request: document.answer for document in view.requests}
    found = (
        (one.key, kept.get(one.hash) or opened.get(one.envelope.id))
        for one in copies
        if one.envelope.asked or one.kind == "q"
    )
    return tuple((key, answer) for key, answer in found if answer is not None)


def unanswered(found: Judged, view: View) -> Failed:
    """The errors of requests whose answers are forgotten: the pages with them are gone, or went with age as their marks did.

    Where nothing has left, a request without an answer has the key of a message from a queue.
    """
    asked = tuple(one for one in found.copies if one.envelope.asked and one.kind != "q")
    if not asked:
        return ()
    answers = dict(answers_of(asked, view))
    forgotten = "was carried out, so long ago that its answer is forgotten. Nothing was changed now."
    return tuple(
        (one.key, TooOldToJudge(f"Request {one.key} {forgotten}"))
        for one in asked
        if one.key not in answers and (view.ledger.cut or not found.known[one.hash])
    )


def contents_of(found: Judged) -> Contents:
    """The beginnings of the digests that marks have of copies."""
    return tuple((one.key, content_in(mark)) for one in found.copies if (mark := found.known.get(one.hash)))


def answered(calls: Calls, arrival: Arrival) -> Calls:
    """The calls whose replies are awaited once this reply is handled.

    Raises:
        InvalidMessage: its call has another reply, which shares the commit.
    """
    if arrival.reply is None:
        return calls
    if arrival.reply.call not in calls:
        raise InvalidMessage(
            f"Message {arrival.key} is another reply to call {arrival.reply.call}, which has one. Correct the sender."
        )
    return tuple(one for one in calls if one != arrival.reply.call)


def request_unknown(request: str) -> RequestUnknown:
    """The error of a request that has no document."""
    return RequestUnknown(
        f"There is no request {request}: it was closed, or left open for so long that it was deleted. It changed nothing now. "
        "If it was not carried out before, open another one."
    )


def _kind(envelope: Envelope, reply: ReplyTo | None, senders: Container[str]) -> Kind:
    if reply is not None:
        return "r"
    if envelope.opened is not None:
        return "q"
    return "i" if _is_sent_by(envelope, senders) else "f"


def _is_sent_by(envelope: Envelope, senders: Container[str]) -> bool:
    """Whether an entity of one of these types sent a message. Others may choose such a source, but give no stable time."""
    if all(name != STABLE_TIME for name, _ in envelope.extensions):
        return False
    try:
        return EntityRef.of_source(envelope.source).type in senders
    except ValueError:
        return False


def _is_awaited(one: Arrival, ledger: Ledger) -> bool:
    return one.reply is not None and one.reply.call in ledger.calls


def _refusal(one: Arrival, view: View) -> ExactlyOnceError | None:
    """Why a message that is not known cannot be processed, or not in this view."""
    if is_behind(one, view):
        return TryAgainLater(
            f"Message {one.key} is the reply to a call that is newer than what was read, version {view.ledger.version} of its "
            "entity. Give it back to its queue. If that does not help, the entity was restored from a backup: the reply gets "
            "parked."
        )
    if one.kind == "q" and all(document.request != one.envelope.id for document in view.requests):
        return request_unknown(one.envelope.id)
    return None


def _not_awaited(one: Arrival, view: View) -> InvalidMessage:
    assert one.reply is not None  # noqa: S101  # Only replies are awaited.
    return InvalidMessage(
        f"Message {one.key} is the reply to call {one.reply.call}, which entity {view.ledger.entity} does not await, and it "
        "was not processed. Was the entity restored from a backup? Then process again what made the call.",
        kept="no call of the entity awaits this reply, and it was not processed: the entity may have been restored",
    )


# Looking for what is not in the ledger: pages that may know a message, and documents of requests that callers opened.


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
    ledger = view.ledger
    if not any(may_have_left(one, ledger) or (ledger.cut and one.envelope.asked) for one in messages.messages):
        return view
    before = judged(messages, view)
    hidden, lacking = before.hidden, _lacking_answers(before.copies, ledger)
    if not hidden and not lacking:
        return view
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


def _lacking_answers(copies: tuple[Arrival, ...], ledger: Ledger) -> tuple[Arrival, ...]:
    """Requests that are known here by a mark, or by what they owe, and whose answer has left for a page."""
    answers = {one.cause for one in ledger.answers}
    return tuple(one for one in copies if one.envelope.asked and one.kind != "q" and one.hash not in answers)
