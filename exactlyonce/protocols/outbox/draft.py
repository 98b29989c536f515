"""What the outbox protocol computes without asking the world: from a loaded entity and messages to what is to be committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from exactlyonce.attempt import Before, Handled, Work
from exactlyonce.effects.effect import Begun
from exactlyonce.errors import EntityTooLarge, ExactlyOnceError
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Entry, Ledger, entity_document, entry_size
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outputs import Output, digest
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.shapes import shape_json

_LEDGER_FRAME_BYTES: Final = 1024  # What the ledger has besides entries and numbers: version, token, type and the like.


class _Commit(NamedTuple):
    """What a commit gives an entry: its transaction, the entity's version, and the time of the attempt."""

    tx: str
    version: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of `Outbox`, which documents them, and the age from which its ledger forgets; None if it need not."""

    window: int | None
    inline_limit: int | None
    retention: timedelta | None


@dataclass(frozen=True, slots=True)
class Draft:
    """What the handlers made of the fresh messages so far.

    Attributes:
        handled: the latest result; None before the first.
        body: what the next handler sees; None if absent or deleted.
        entries, outputs, staged: of all messages that can be committed.
        size: bytes of the entries.
        failed: key and error of those that cannot.
        flush: all entries of before leave with this commit: the window, or the document, has no room for them.
        sequences: the numbers given out so far.
        blobs: of all messages that can be committed.
    """

    handled: Handled | None
    body: Json | None
    entries: tuple[Entry, ...] = ()
    size: int = 0
    outputs: tuple[Output, ...] = ()
    staged: tuple[StagedOutputs, ...] = ()
    failed: tuple[tuple[str, ExactlyOnceError], ...] = ()
    flush: bool = False
    sequences: Sequences = ()
    blobs: tuple[Blob, ...] = ()

    def document(self, ledger: Ledger) -> Json:
        """The entity document of the commit."""
        return entity_document(Json("{}") if self.handled is None else self.handled.body, ledger)


def draft_commit(limits: Limits, work: Work, view: View, fresh: Mapping[str, Envelope], begun: Begun) -> Draft:
    """Run the handlers one after the other; a message that cannot be committed drops out and takes nothing along."""
    draft = Draft(None, view.body, sequences=view.ledger.sequences)
    before = _bytes_before(view)
    for (key, envelope), tx in zip(fresh.items(), begun.transactions, strict=True):
        if tx is None:  # Its delivery was given back.
            continue
        try:
            handled = work.handle(Before(draft.body, begun.at, tx, draft.sequences), envelope)
            version = view.ledger.version + len(draft.entries) + 1
            added = _adding(draft, work.entity, handled, _entry(limits, handled, key, _Commit(tx, version, begun.at)))
            draft = _fitting(limits, view, added, key, work.entity, before=before)
        except ExactlyOnceError as error:
            draft = replace(draft, failed=(*draft.failed, (key, error)))
    return draft


def next_ledger(limits: Limits, view: View, draft: Draft, token: str | None) -> Ledger:
    """The ledger of the commit. What this process published is marked along the way."""
    kept: tuple[Entry, ...] = ()
    if not draft.flush:
        kept = view.ledger.with_published(view.memory.published).entries
        if limits.retention is not None:
            kept = _trimmed(kept, view.timestamp, limits.retention)
    return replace(
        view.ledger,
        version=view.ledger.version + len(draft.entries),
        token=token,
        entries=(*kept, *draft.entries),
        deleted=draft.handled is not None and draft.handled.deleted,
        sequences=draft.sequences,
    )


def _entry(limits: Limits, handled: Handled, message: str, commit: _Commit) -> Entry:
    size = sum(output.size for output in handled.outputs)
    staged = limits.inline_limit is not None and size > limits.inline_limit
    return Entry(
        message=message,
        tx=commit.tx,
        version=commit.version,
        at=commit.at,
        outputs=tuple(output.ref for output in handled.outputs),
        digest=digest(handled.outputs),
        staged=staged,
        owed=("staged" if staged else handled.outputs) if handled.outputs else None,
    )


def _adding(draft: Draft, entity: EntityRef, handled: Handled, entry: Entry) -> Draft:
    staged = (StagedOutputs(entity.key, entry.message, entry.tx, entry.at, handled.outputs),) if entry.staged else ()
    return Draft(
        handled=handled,
        body=None if handled.deleted else handled.body,
        entries=(*draft.entries, entry),
        size=draft.size + entry_size(entry),
        outputs=(*draft.outputs, *handled.outputs),
        staged=(*draft.staged, *staged),
        failed=draft.failed,
        flush=draft.flush,
        sequences=handled.sequences,
        blobs=(*draft.blobs, *handled.blobs),
    )


def _bytes_before(view: View) -> int:
    """Bytes of the document as it was loaded, without what every commit writes anew: the state, and the numbers given out."""
    replaced = (0 if view.body is None else view.body.size) + _size_of(view.ledger.sequences)
    return 0 if view.document is None else view.document.size - replaced


def _fitting(limits: Limits, view: View, draft: Draft, key: str, entity: EntityRef, *, before: int) -> Draft:
    """The draft, with the entries of before leaving if there is no room for them.

    All leave at once, so that one batch of records serves many commits. Sizes are added up, since writing the whole document
    for each message of a group would take long.
    """
    body = 0 if draft.handled is None else draft.handled.body.size
    frame = _size_of(draft.sequences) + _LEDGER_FRAME_BYTES
    added = body + draft.size + frame
    flush = draft.flush
    if limits.window is not None and view.ledger.entries:
        crowded = len(view.ledger.entries) + len(draft.entries) > limits.window
        flush = flush or crowded or before + added > MAX_DOCUMENT_BYTES
    size = added if flush else before + added
    if size > MAX_DOCUMENT_BYTES:
        raise EntityTooLarge(
            f"Message {key} on entity {entity}: the document would have {size} bytes, {body} of them the state; at most "
            f"{MAX_DOCUMENT_BYTES} are allowed. Keep less in one entity, or send less from one handler; and where the ledger "
            "keeps everything (Outbox.embedded), use Outbox()."
        )
    return replace(draft, flush=flush)


def _size_of(sequences: Sequences) -> int:
    """Bytes that the numbers given out take in a document. They stay when entries leave."""
    return shape_json(sequences, Sequences).size


def _trimmed(entries: tuple[Entry, ...], now: int, retention: timedelta) -> tuple[Entry, ...]:
    """Without entries older than the retention that owe nothing; the others are dated by the document they were found in.

    `now` is the server's time of that document's last write: nothing looks older than it is, and no process's clock counts.
    """
    dated = tuple(entry if entry.seen is not None else replace(entry, seen=now) for entry in entries)
    oldest = now - retention.total_seconds()
    return tuple(entry for entry in dated if entry.owed is not None or (entry.seen or now) >= oldest)
