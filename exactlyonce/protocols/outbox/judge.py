"""The judge: sorts messages into copies, fresh and refused, as a view shows them.

A mark knows a message by the hash of its identity. A timed message younger than every mark that has left, and without a mark
in the ledger, was never processed. Any other message may have a mark in a page.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Final, Literal, NamedTuple

from exactlyonce.effects.attempt import Again, Work
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
        key, hash: key of the message, and hash of its identity.
        envelope: one of the copies.
        since: time of a timed message, in milliseconds since 1970; else None.
        reply: the call answered; None if the message is no reply to a call.
    """

    key: str
    hash: str
    envelope: Envelope
    kind: Kind
    since: int | None
    reply: ReplyTo | None = None


class Proof(NamedTuple):
    """The proof that a message was processed.

    Attributes:
        place: "ledger" or "page" for a mark there; "outbox" for an entry whose mark has left.
        since: time of the mark, in milliseconds since 1970; None without a mark.
        page: number of the page; None outside of pages.
    """

    place: Literal["ledger", "page", "outbox"]
    since: int | None = None
    page: int | None = None


Failed = tuple[tuple[str, ExactlyOnceError], ...]
"""Key and error of each message that cannot be processed."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The messages of an attempt; copies of one message count once.

    Attributes:
        messages: messages this entity can take.
        failed: messages this entity cannot take.
    """

    messages: tuple[Arrival, ...]
    failed: Failed = ()

    @property
    def requests(self) -> tuple[Arrival, ...]:
        """The opened requests."""
        return tuple(message for message in self.messages if message.kind == "q")


@dataclass(frozen=True, slots=True)
class Judged:
    """The messages as sorted by a view.

    Attributes:
        copies: processed messages.
        fresh: unprocessed messages.
        hidden: messages that only pages can decide.
        failed: messages that cannot be processed, or not in this view.
        marks: the proofs in the view, as `known_in` gives them.
    """

    copies: tuple[Arrival, ...]
    fresh: tuple[Arrival, ...]
    hidden: tuple[Arrival, ...]
    failed: Failed
    marks: Mapping[str, str] = field(compare=False)


def arrived(entity: EntityRef, envelopes: Iterable[Envelope], senders: Container[str]) -> Arrived:
    """Sort messages by kind.

    Args:
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

    A processed message stays processed, so even an old view is right about copies. An old view may take a copy for fresh;
    then the commit fails on its condition.
    """
    marks = known_in(view)
    copies: list[Arrival] = []
    fresh: list[Arrival] = []
    hidden: list[Arrival] = []
    failed = list(arrived.failed)
    for message in arrived.messages:
        if message.hash in marks:
            copies.append(message)
        elif (refusal := _refusal(message, view)) is not None:
            failed.append((message.key, refusal))
        elif message.kind == "q" and any(
            document.answer for document in view.requests if document.request == message.envelope.id
        ):
            copies.append(message)
        elif _is_awaited(message, view.ledger):
            fresh.append(message)
        elif view.pages is None and may_have_left(message, view.ledger):
            hidden.append(message)
        elif message.reply is not None:
            failed.append((message.key, _not_awaited(message, view)))
        else:
            fresh.append(message)
    return Judged(tuple(copies), tuple(fresh), tuple(hidden), tuple(failed), marks)


def known_in(view: View) -> Mapping[str, str]:
    """The marks shown by a view, by hash. The value is empty for an entry whose mark has left."""
    here = by_hash(view.ledger.marks)
    elsewhere = {entry.cause: "" for entry in view.ledger.outbox if entry.cause not in here}
    for page in view.pages or ():
        elsewhere.update(by_hash(page.marks))
    return {**elsewhere, **here} if elsewhere else here


def proof_of(arrival: Arrival, view: View) -> Proof | None:
    """The proof in a view that a message was processed; None without proof."""
    if (mark := by_hash(view.ledger.marks).get(arrival.hash)) is not None:
        return Proof("ledger", time_in(mark))
    for page in view.pages or ():
        if (mark := by_hash(page.marks).get(arrival.hash)) is not None:
            return Proof("page", time_in(mark), page.number)
    return Proof("outbox") if any(entry.cause == arrival.hash for entry in view.ledger.outbox) else None


def may_have_left(arrival: Arrival, ledger: Ledger) -> bool:
    """Whether a message without a mark in the ledger may have a mark in a page."""
    return bool(ledger.cut) and (arrival.since is None or arrival.since <= ledger.complete)


def is_behind(arrival: Arrival, view: View) -> bool:
    """Whether a view is older than the call answered by a message. Such a view proves nothing about awaited replies."""
    return arrival.reply is not None and view.ledger.version < arrival.reply.version


def is_read_too_early(arrival: Arrival, view: View) -> bool:
    """Whether the document of a carried-out request was read in a view older than its answer."""
    if arrival.kind != "q" or any(
        entry.cause == arrival.hash and entry.answer is not None for entry in view.ledger.outbox
    ):
        return False
    return any(document.request == arrival.envelope.id and document.answer is None for document in view.requests)


def answers_of(copies: tuple[Arrival, ...], view: View) -> Answers:
    """The answers to requests among copies, as far as shown by this view."""
    if not copies:
        return ()
    kept = {item.cause: item.answer for page in view.pages or () for item in page.answers}
    kept |= {item.cause: item.answer for item in view.ledger.answers}
    kept |= {entry.cause: entry.answer for entry in view.ledger.outbox if entry.answer is not None}
    opened = {document.request: document.answer for document in view.requests}
    answers = (
        (copy_.key, kept.get(copy_.hash) or opened.get(copy_.envelope.id))
        for copy_ in copies
        if copy_.envelope.asked or copy_.kind == "q"
    )
    return tuple((key, answer) for key, answer in answers if answer is not None)


def unanswered(verdict: Judged, view: View) -> Failed:
    """The errors of requests whose answers are forgotten: their pages are gone, by accident or with age.

    While no mark has left, a request without an answer has the key of a message from a queue.
    """
    asked = tuple(copy_ for copy_ in verdict.copies if copy_.envelope.asked and copy_.kind != "q")
    if not asked:
        return ()
    answers = dict(answers_of(asked, view))
    forgotten = "was carried out so long ago that its answer is forgotten. Nothing was changed."
    return tuple(
        (item.key, TooOldToJudge(f"Request {item.key} {forgotten}"))
        for item in asked
        if item.key not in answers and (view.ledger.cut or not verdict.marks[item.hash])
    )


def contents_of(verdict: Judged) -> Contents:
    """The beginnings of digests, from the marks of copies."""
    return tuple((copy_.key, content_in(mark)) for copy_ in verdict.copies if (mark := verdict.marks.get(copy_.hash)))


def answered(calls: Calls, arrival: Arrival) -> Calls:
    """The awaited calls once this reply is handled.

    Raises:
        InvalidMessage: the commit already has another reply to the same call.
    """
    if arrival.reply is None:
        return calls
    if arrival.reply.call not in calls:
        raise InvalidMessage(
            f"Message {arrival.key} is another reply to call {arrival.reply.call}, which has one. Correct the sender."
        )
    return tuple(call for call in calls if call != arrival.reply.call)


def request_unknown(request: str) -> RequestUnknown:
    """The error of a request without a document."""
    return RequestUnknown(
        f"Request {request} does not exist: its caller closed it, or clean-up deleted it after a long time open. Nothing was "
        "changed. Unless you have its answer, open a new request."
    )


def _kind(envelope: Envelope, reply: ReplyTo | None, senders: Container[str]) -> Kind:
    if reply is not None:
        return "r"
    if envelope.opened is not None:
        return "q"
    return "i" if _is_sent_by(envelope, senders) else "f"


def _is_sent_by(envelope: Envelope, senders: Container[str]) -> bool:
    """Whether an entity of one of these types sent a message. Foreign senders may copy a source, but set no stable time."""
    if all(name != STABLE_TIME for name, _ in envelope.extensions):
        return False
    try:
        return EntityRef.of_source(envelope.source).type in senders
    except ValueError:
        return False


def _is_awaited(arrival: Arrival, ledger: Ledger) -> bool:
    return arrival.reply is not None and arrival.reply.call in ledger.calls


def _refusal(arrival: Arrival, view: View) -> ExactlyOnceError | None:
    """The reason against processing a message without proof, at all or in this view; None if there is none."""
    if is_behind(arrival, view):
        return TryAgainLater(
            f"Message {arrival.key} is the reply to a call newer than the entity's version read, {view.ledger.version}. Give "
            "the "
            "message back to its queue. If the error stays, the entity was restored from a backup: the reply gets parked."
        )
    if arrival.kind == "q" and all(document.request != arrival.envelope.id for document in view.requests):
        return request_unknown(arrival.envelope.id)
    return None


def _not_awaited(arrival: Arrival, view: View) -> InvalidMessage:
    assert arrival.reply is not None  # noqa: S101  # Only replies are awaited.
    return InvalidMessage(
        f"Message {arrival.key} is the reply to call {arrival.reply.call}, which entity {view.ledger.entity} does not await. "
        "The "
        "message was not processed. If the entity was restored from a backup, process the message that made the call again.",
        kept="no call of the entity awaits this reply, so the reply was not processed: the entity may have been restored",
    )


# Looking outside the ledger: pages with marks, and documents of opened requests.


BEHIND_LEDGER: Final = (
    "no replica of the library's container is at the session token of the ledger (if this stays: was that container, or the "
    "account, exchanged or restored?)"
)
"""Reason of an attempt that stops, because it cannot see pages that may know the message."""
_RETURNING: Final = "exactlyonce/taking-back"
"""Key of no message: no entity has this source."""


def look_apart(
    entity: EntityRef, messages: Arrived, view: View, opened: FoundRequests | None = None
) -> Step[View | Again]:
    """The view, with everything the library's partition holds about the messages, at the ledger's session token. At most 2
    effects.

    Args:
        view: view of the entity. Pages and documents hold committed facts, whatever the ledger is by now.
        opened: the reply to `first_look`; None before any look.
    """
    if messages.requests:
        requests = opened
        if requests is None or not at_or_after(requests.token, view.ledger.token):
            # Read the documents of opened requests, in a view that shows each of them open, or its end.
            again = yield from first_look(entity, messages, view.ledger.token)
            if isinstance(again, NoAnswer):
                return Again(view.memory, "the documents of requests could not be read")
            requests = again
        view = replace(view, requests=requests.documents)
    ledger = view.ledger
    if not any(
        may_have_left(message, ledger) or (ledger.cut and message.envelope.asked) for message in messages.messages
    ):
        return view
    before = judged(messages, view)
    hidden, lacking = before.hidden, _lacking_answers(before.copies, ledger)
    if not hidden and not lacking:
        return view
    times = tuple(dict.fromkeys(item.since for item in hidden if item.since is not None))
    # The answer to a request may have left before its mark, with another page.
    hashes = tuple(
        item.hash for item in (*hidden, *lacking) if item in lacking or item.since is None or item.envelope.asked
    )
    # Find the pages that may know the messages, at the ledger's session token. A page is written before the commit that drops
    # its marks, so a view at the token has all of them.
    pages = yield from FindPages(entity, times, hashes, ledger.cut, ledger.token)
    if isinstance(pages, NoAnswer):
        return Again(view.memory, BEHIND_LEDGER)
    # A page of a later version is no evidence: its history of the entity was taken back.
    return replace(view, pages=tuple(page for page in pages.pages if page.number <= ledger.cut))


def first_look(entity: EntityRef, messages: Arrived, token: str | None) -> LoadRequests:
    """The read of opened requests beside the load of their entity: in a view that shows each request open, or its end.

    Args:
        token: this process's session token of the library's partition.
    """
    opened = (request.envelope.opened for request in messages.requests)
    return LoadRequests(
        entity, tuple(request.envelope.id for request in messages.requests), reduce(later, opened, token)
    )


def lost_pages(work: Work, fresh: tuple[Arrival, ...], view: View, now: datetime) -> Failed:
    """The errors of messages that may have a mark in a page lost before its time.

    A missing newest page shows that all may be gone. A page may also be gone in order, once no message of its time is judged
    any more. A reply needs no page: the call decides.

    Args:
        work: decides which messages are judged.
        fresh: messages without a mark in ledger or pages.
        now: the present, by the store's time.
    """
    ledger = view.ledger
    there = not ledger.cut or view.pages is None or any(page.number == ledger.cut for page in view.pages)
    lost = ledger.lost if there or _is_over(work, ledger.complete, now) else ledger.complete
    if lost < 0:
        return ()
    return tuple(
        (
            item.key,
            DatabaseRestored(
                f"Message {item.key} for entity {ledger.entity} has no mark, but pages with marks of older messages are gone. "
                "The message may have been processed, so nothing was changed. Check whether the library's container was "
                "restored, exchanged or emptied."
            ),
        )
        for item in fresh
        if item.reply is None and may_have_left(item, ledger) and not _is_over(work, lost, now) and _is_by(item, lost)
    )


def take_back(work: Work, view: View, page: Page) -> Step[Again]:
    """Delete the pages of a history that was taken back, since they block a new page. At most 6 effects.

    The document was put back to an earlier version. Pages of later versions are no longer true, and the first of them has the
    number of the next page. Pages go only as read before a fence: if the fence holds, the view was current, and its ledger
    names all valid pages. Pages of commits after the fence stay.

    The blocking page goes last. So if deleting ends early, a page still blocks, and the next attempt deletes the rest.

    Args:
        page: the page that could not be written.
    """
    entity = work.entity
    token = yield from fresh_token(entity, _RETURNING)
    if token is None:
        return Again(view.memory, "whether anything was written is not known")
    # Find the pages of later versions than the ledger's newest page, in a view of the present. Pages that exist now belong to
    # no history of the ledger. A page left behind would count as soon as the entity reaches its version.
    above = yield from FindPagesAbove(entity, view.ledger.cut, token)
    if isinstance(above, NoAnswer):
        return Again(view.memory, "the pages of another history could not be read")
    fenced = yield from fence(entity, view, work.absent)
    if isinstance(fenced, Again):
        return fenced
    newest_first = sorted(above.pages, key=lambda item: -item[0].number)
    # Delete these pages, as they were read, the newest first. A remaining page blocks again.
    yield from DeletePages(entity, tuple((item.number, etag) for item, etag in newest_first if item != page))
    return Again(fenced, "the entity had another history, whose pages were in the way")


def _is_over(work: Work, milliseconds: int, now: datetime) -> bool:
    """Whether messages of this time, or older, are no longer judged."""
    return isinstance(work.refusal(time_of(milliseconds), now), TooOldToJudge)


def _is_by(arrival: Arrival, lost: int) -> bool:
    """Whether a message originated by a time. For an untimed message, the sender's clock may be ahead of the processing."""
    if arrival.since is not None:
        return arrival.since <= lost
    return arrival.envelope.time is None or arrival.envelope.time <= time_of(lost) + AHEAD


def _lacking_answers(copies: tuple[Arrival, ...], ledger: Ledger) -> tuple[Arrival, ...]:
    """Requests proved by a mark or an entry, whose answer has left for a page."""
    answers = {answer.cause for answer in ledger.answers}
    return tuple(copy_ for copy_ in copies if copy_.envelope.asked and copy_.kind != "q" and copy_.hash not in answers)
