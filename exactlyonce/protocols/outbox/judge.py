"""What the protocol concludes from what it has read: which messages are copies, which are fresh, and which cannot be told.

A mark knows a message by the hash of its identity. A timed message that is younger than every mark that has left, and has no
mark in the ledger, was never processed. Any other one may have a mark in a page.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exactlyonce.attempt import key_of
from exactlyonce.errors import ExactlyOnceError, InvalidMessage, RequestUnknown, TooOldToJudge, TryAgainLater
from exactlyonce.protocols.steps.answers import Answers, Contents
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.calls import Calls, ReplyTo, is_reply, reply_of
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.marks import Kind, by_hash, content_in, time_in
from exactlyonce.values.envelope import STABLE_TIME, Envelope
from exactlyonce.values.identity import EntityRef, message_hash


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
    """

    copies: tuple[Arrival, ...]
    fresh: tuple[Arrival, ...]
    hidden: tuple[Arrival, ...]
    failed: Failed


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
    return Judged(tuple(copies), tuple(fresh), tuple(hidden), tuple(failed))


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


def unanswered(copies: Iterable[Arrival], view: View) -> Failed:
    """The errors of requests whose answers are forgotten: the pages with them are gone, or went with age as their marks did.

    Where nothing has left, a request without an answer has the key of a message from a queue.
    """
    asked = tuple(one for one in copies if one.envelope.asked and one.kind != "q")
    if not asked:
        return ()
    known, answers = known_in(view), dict(answers_of(asked, view))
    forgotten = "was carried out, so long ago that its answer is forgotten. Nothing was changed now."
    return tuple(
        (one.key, TooOldToJudge(f"Request {one.key} {forgotten}"))
        for one in asked
        if one.key not in answers and (view.ledger.cut or not known[one.hash])
    )


def contents_of(copies: tuple[Arrival, ...], view: View) -> Contents:
    """The beginnings of the digests that marks have of copies."""
    if not copies:
        return ()
    known = known_in(view)
    return tuple((one.key, content_in(mark)) for one in copies if (mark := known.get(one.hash)))


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
