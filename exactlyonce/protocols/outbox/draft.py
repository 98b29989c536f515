"""What the outbox protocol computes without asking the world: from a loaded entity and messages to what is to be committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from exactlyonce.attempt import Before, Handled, Work
from exactlyonce.effects.effect import Begun
from exactlyonce.errors import EntityTooLarge, ExactlyOnceError
from exactlyonce.protocols.outbox.forgotten import require_time
from exactlyonce.protocols.outbox.judge import Arrival, Failed, answered, channels_in, received
from exactlyonce.protocols.outbox.opened import relied_on
from exactlyonce.protocols.steps.answers import Answers
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.blobs import Blob
from exactlyonce.records.calls import Calls
from exactlyonce.records.channels import Channel, Channels
from exactlyonce.records.kept import Kept, kept_by
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Apart, Entry, Ledger, entity_document, entry_size
from exactlyonce.records.library import ChannelDocument, ProcessedRecord, Seal, StagedOutputs, processed_record
from exactlyonce.records.outputs import Output, digest
from exactlyonce.records.places import Place
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.shapes import shape_json

SEALED_AFTER: Final = 16
"""Messages after which an entity gets its seal, if nothing else lies in the library's partition by then."""

_LEDGER_FRAME_BYTES: Final = (
    1024  # What the ledger has besides entries, channels and numbers: version, token, type and so on.
)
_MESSAGE_BYTES: Final = (
    4096  # More than a message adds to its channel. Its outputs take more in its entry than in sequences.
)
_KEPT_BYTES: Final = 256  # More than the ledger says of one kept message.


class _Commit(NamedTuple):
    """What a commit gives an entry: its transaction, the entity's version and source, and the time of the attempt."""

    tx: str
    version: int
    at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of `Outbox`, which documents them, and the age from which its ledger forgets; None if it need not."""

    window: int | None
    inline_limit: int | None
    channels: int
    retention: timedelta | None
    forget_after: timedelta | None


class Draft(NamedTuple):
    """What the handlers made of the fresh messages so far.

    Attributes:
        handled: the latest result; None before the first.
        body: what the next handler sees; None if absent or deleted.
        processed: keys of the messages that can be committed.
        entries, outputs, staged, blobs: of these messages.
        size: bytes of the entries.
        failed: key and error of those that cannot.
        sequences: the numbers given out so far.
        channels: the ledger's, with what was received through them so far; those of these messages come last.
        touched: ids of the channels of these messages.
        flush: all entries of before leave with this commit: the window, or the document, has no room for them.
        apart: all channels that are not touched leave with this commit.
        more: messages are left for another commit: neither the window nor the document has room for them in this one.
        answers: to requests among the copies.
        calls: ids of the calls whose replies are awaited.
        kept: messages that are kept until they are due.
        unrecorded: how many of the messages so far have neither a number nor a record.
    """

    handled: Handled | None
    body: Json | None
    processed: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    size: int = 0
    outputs: tuple[Output, ...] = ()
    staged: tuple[StagedOutputs, ...] = ()
    blobs: tuple[Blob, ...] = ()
    failed: Failed = ()
    sequences: Sequences = ()
    channels: Channels = ()
    touched: frozenset[str] = frozenset()
    flush: bool = False
    apart: bool = False
    more: bool = False
    answers: Answers = ()
    calls: Calls = ()
    kept: tuple[Kept, ...] = ()
    unrecorded: int = 0

    def document(self, ledger: Ledger) -> Json:
        """The entity document of the commit."""
        return entity_document(Json("{}") if self.handled is None else self.handled.body, ledger)


def draft_commit(limits: Limits, work: Work, view: View, fresh: tuple[Arrival, ...], begun: Begun) -> Draft:
    """Run the handlers one after the other; a message that cannot be committed drops out and takes nothing along.

    Args:
        limits: settings of the outbox.
        work: the entity and its handler.
        view: the entity as it was loaded.
        fresh: the messages to handle.
        begun: time, and a transaction id for each message.
    """
    before = view.ledger
    draft = Draft(
        None,
        view.body,
        sequences=before.sequences,
        channels=before.channels,
        calls=before.calls,
        kept=before.kept,
    )
    known = channels_in(view)
    kept = len(before.unpublished(view.memory.published))
    for arrival, tx in zip(fresh, begun.transactions, strict=True):
        if tx is None:  # Its delivery was given back.
            continue
        key, envelope, place = arrival.key, arrival.envelope, arrival.place
        if (
            arrival.foreign
            and limits.window is not None
            and sum(entry.recorded for entry in draft.entries) >= limits.window
        ):
            return draft._replace(more=True)
        try:
            if place is not None and place.channel not in known:
                require_time(place.channel, limits.forget_after, begun.at, f"Message {key}")
            drafted = draft if place is None else _receiving(draft, known, envelope, place)
            drafted = drafted._replace(calls=answered(draft.calls, arrival))
            drafted = drafted._replace(unrecorded=draft.unrecorded + (arrival.place is None and not arrival.foreign))
            commit = _Commit(tx, before.version + len(draft.processed) + 1, begun.at, work.entity.source)
            kept_ids = frozenset(one.id for one in draft.kept)
            given = Before(draft.body, begun.at, tx, draft.sequences, version=commit.version, kept=kept_ids)
            handled = work.handle(given, envelope)
            entry = _entry(limits, handled, arrival, commit)
            drafted = _adding(drafted, work.entity, key, handled, entry)
            drafted = _keeping(drafted, work.entity, key, handled, commit)
            drafted = _with_room(limits, view, drafted, kept)
        except ExactlyOnceError as error:
            draft = draft._replace(failed=(*draft.failed, (key, error)))
            continue
        if (size := _bytes(view, drafted)) <= MAX_DOCUMENT_BYTES:
            draft = drafted
        elif (
            draft.processed and handled.body.size + drafted.size - draft.size < MAX_DOCUMENT_BYTES - _LEDGER_FRAME_BYTES
        ):
            return draft._replace(more=True)  # Without the others it may fit.
        else:
            draft = draft._replace(failed=(*draft.failed, (key, _too_large(work.entity, key, handled, size))))
    return draft


def next_ledger(limits: Limits, view: View, draft: Draft, token: str | None) -> Ledger:
    """The ledger of the commit. What this process published is marked along the way."""
    kept: tuple[Entry, ...] = ()
    if not draft.flush:
        kept = view.ledger.unpublished(view.memory.published)
        if limits.retention is not None:
            kept = _trimmed(kept, view.timestamp, limits.retention)
    return replace(
        view.ledger,
        version=view.ledger.version + len(draft.processed),
        token=relied_on(view.ledger, view.memory, token),
        entries=(*kept, *draft.entries),
        channels=_kept(draft),
        apart=_apart(view, draft),
        deleted=draft.handled is not None and draft.handled.deleted,
        sequences=draft.sequences,
        calls=draft.calls,
        kept=draft.kept,
        unrecorded=view.ledger.unrecorded + draft.unrecorded,
    )


def records_of(entity: EntityRef, view: View, draft: Draft) -> tuple[ProcessedRecord | ChannelDocument | Seal, ...]:
    """What is to be written in the library's partition before the commit: what leaves the ledger, and the seal."""
    before, after = view.ledger.apart, _apart(view, draft)
    records = (processed_record(entity, entry) for entry in _leaving(view, draft) if entry.recorded)
    channels = (
        ChannelDocument(entity.key, channel, view.ledger.version, before.turn)
        for channel in (view.ledger.channels if draft.apart else ())
        if channel.id not in draft.touched
    )
    seal = (Seal(entity.key),) if after.sealed and not before.sealed else ()
    return (*records, *channels, *seal)


def needs_more(entity: EntityRef, view: View, draft: Draft) -> bool:
    """Whether anything has to be written before the commit."""
    return bool(draft.staged or draft.blobs or records_of(entity, view, draft))


def _leaving(view: View, draft: Draft) -> tuple[Entry, ...]:
    return view.ledger.entries if draft.flush else ()


def _kept(draft: Draft) -> Channels:
    """The channels that stay in the ledger."""
    return tuple(one for one in draft.channels if not draft.apart or one.id in draft.touched)


def _apart(view: View, draft: Draft) -> Apart:
    before = view.ledger.apart
    records = before.records or any(entry.recorded for entry in _leaving(view, draft))
    channels = before.channels or draft.apart
    # No seal before the document has a ledger: if the first commit were lost, the seal would say that the ledger was removed.
    many = view.ledger.version >= SEALED_AFTER
    return replace(before, records=records, channels=channels, sealed=records or channels or many)


def _receiving(draft: Draft, known: Mapping[str, Channel], envelope: Envelope, place: Place) -> Draft:
    """The draft once it has received a message. Raises `ForkedChannel` or `InvalidMessage`."""
    others = tuple(one for one in draft.channels if one.id != place.channel)
    before = next((one for one in draft.channels if one.id == place.channel), None) or known.get(place.channel)
    return draft._replace(
        channels=(*others, received(before, envelope, place)), touched=draft.touched | {place.channel}
    )


def _entry(limits: Limits, handled: Handled, arrival: Arrival, commit: _Commit) -> Entry | None:
    """The entry of a message; None if there is nothing to remember that its channel does not."""
    recorded = arrival.foreign or bool(handled.blobs)
    if not recorded and not handled.outputs and arrival.request is None:
        return None
    size = sum(output.size for output in handled.outputs)
    staged = limits.inline_limit is not None and size > limits.inline_limit
    contents = tuple(output.content(commit.source, commit.at) for output in handled.outputs)
    return Entry(
        message=arrival.key,
        tx=commit.tx,
        version=commit.version,
        at=commit.at,
        outputs=tuple(output.ref for output in handled.outputs),
        digest=digest(handled.outputs),
        staged=staged,
        owed=("staged" if staged else contents) if contents or arrival.request is not None else None,
        recorded=recorded,
        answer=handled.answer,
        request=arrival.request,
        content=arrival.envelope.content if arrival.foreign and arrival.envelope.asked is None else None,
    )


def _adding(draft: Draft, entity: EntityRef, key: str, handled: Handled, entry: Entry | None) -> Draft:
    entries = () if entry is None else (entry,)
    staged = (StagedOutputs(entity.key, one.message, one.tx, one.at, handled.outputs) for one in entries if one.staged)
    return draft._replace(
        handled=handled,
        body=None if handled.deleted else handled.body,
        processed=(*draft.processed, key),
        entries=(*draft.entries, *entries),
        size=draft.size + sum(map(entry_size, entries)),
        outputs=(*draft.outputs, *handled.outputs),
        staged=(*draft.staged, *staged),
        blobs=(*draft.blobs, *handled.blobs),
        sequences=handled.sequences,
        calls=(*draft.calls, *handled.calls),
    )


def _keeping(draft: Draft, entity: EntityRef, key: str, handled: Handled, commit: _Commit) -> Draft:
    """The draft with what a message keeps, and without what it cancels, which may have been kept by one before it."""
    draft = draft._replace(kept=tuple(one for one in draft.kept if one.id not in handled.cancelled))
    if not handled.kept:
        return draft
    tx = kept_by(commit.tx)
    kept = tuple(Kept(output.id, due, tx) for due, output in handled.kept)
    staged = StagedOutputs(entity.key, key, tx, commit.at, tuple(output for _, output in handled.kept))
    return draft._replace(kept=(*draft.kept, *kept), staged=(*draft.staged, staged))


def _with_room(limits: Limits, view: View, draft: Draft, kept: int) -> Draft:
    """The draft, with entries of before and channels leaving if there is no room for them.

    All entries leave at once, so that one batch of records serves many commits; so do all channels that are not touched.
    A large answer goes at once, with all others: its record is written once, and the document with every commit. `kept` counts
    the entries that would stay.
    """
    added = sum(entry.recorded for entry in draft.entries)
    recorded = (entry.answer for entry in view.ledger.entries if entry.recorded)
    large = any(answer is not None and answer.is_large for answer in recorded)
    if limits.window is not None and (large or kept + added > limits.window):
        draft = draft._replace(flush=True)
    if len(draft.channels) > max(limits.channels, len(draft.touched)):
        draft = draft._replace(apart=True)
    if kept and limits.window is not None and _bytes(view, draft) > MAX_DOCUMENT_BYTES:
        draft = draft._replace(flush=True)
    if len(draft.channels) > len(draft.touched) and _bytes(view, draft) > MAX_DOCUMENT_BYTES:
        draft = draft._replace(apart=True)
    return draft


def _bytes(view: View, draft: Draft) -> int:
    """At least as many bytes as the document of the commit will have.

    Sizes are added up, since writing the whole document for each message of a group would take long; and not even that where
    there is plenty of room.
    """
    body = 0 if draft.handled is None else draft.handled.body.size
    before = 0 if view.document is None else view.document.size
    ledger, state = view.ledger, 0 if view.body is None else view.body.size
    rough = before + body + 2 * draft.size + len(draft.processed) * _MESSAGE_BYTES + _LEDGER_FRAME_BYTES
    rough += len(draft.kept) * _KEPT_BYTES
    if rough <= MAX_DOCUMENT_BYTES and len(draft.sequences) == len(ledger.sequences):
        return rough
    others = (
        (ledger.sequences, Sequences),
        (ledger.channels, Channels),
        (ledger.calls, Calls),
        (ledger.kept, tuple[Kept, ...]),
    )
    entries = 0 if draft.flush else before - state - sum(_size(*one) for one in others)
    others = (
        (draft.sequences, Sequences),
        (_kept(draft), Channels),
        (draft.calls, Calls),
        (draft.kept, tuple[Kept, ...]),
    )
    return max(entries, 0) + body + draft.size + sum(_size(*one) for one in others) + _LEDGER_FRAME_BYTES


def _size(part: object, shape: object) -> int:
    """Bytes that a part of the ledger takes in a document."""
    return shape_json(part, shape).size


def _too_large(entity: EntityRef, key: str, handled: Handled, size: int) -> EntityTooLarge:
    state, most = handled.body.size, MAX_DOCUMENT_BYTES
    sizes = f"the document would have {size} bytes, {state} of them the state; at most {most} are allowed"
    return EntityTooLarge(
        f"Message {key} on entity {entity}: {sizes}. Keep less in one entity, or send less from one handler; and where the "
        "ledger keeps everything (Outbox.embedded), use Outbox().",
        kept=sizes,
    )


def _trimmed(entries: tuple[Entry, ...], now: int, retention: timedelta) -> tuple[Entry, ...]:
    """Without entries older than the retention that owe nothing; the others are dated by the document they were found in.

    `now` is the server's time of that document's last write: nothing looks older than it is, and no process's clock counts.
    """
    dated = tuple(entry if entry.seen is not None else replace(entry, seen=now) for entry in entries)
    oldest = now - retention.total_seconds()
    return tuple(entry for entry in dated if entry.owed is not None or (entry.seen or now) >= oldest)
