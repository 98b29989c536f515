"""The batch: one transactional save of the entity, with a companion for each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Work
from exactlyonce.effects.companions import FindOwing, FoundCompanions, ReplaceCompanions
from exactlyonce.effects.effect import Begun, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.errors import EntityTooLarge, ExactlyOnceError, TryAgainLater
from exactlyonce.protocols.steps.load import View, since_of_outputs
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import ColocatedRecord, Companion, StreamEntry, companion_document
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger, entity_document
from exactlyonce.records.outbox import Output, Sequences
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json

BATCH_BYTES: Final = 1_900_000
"""Limit for the documents of a batch: the service takes 2 MB of operations."""
BATCH_MESSAGES: Final = 50
"""Most messages in one batch: the service takes 100 operations."""


class HandledMessage(NamedTuple):
    """A message and its handler's result.

    Attributes:
        version: entity version after the commit.
    """

    key: str
    envelope: Envelope
    before: Before
    handled: Handled
    version: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of the fresh messages handled so far.

    Attributes:
        body: input of the next handler; None if absent or deleted.
        sequences: the numbers given out so far.
        saved: the properties to save besides the ledger; None before the first message.
        deleted: whether the entity becomes a tombstone.
        companions, outputs, blobs: of all messages to commit, in order.
        size: bytes of the companions.
        processed: keys of the messages to commit.
        failed: key and error of each message that cannot be committed.
    """

    body: Json | None
    sequences: Sequences
    saved: Json | None = None
    deleted: bool = False
    companions: tuple[Companion, ...] = ()
    outputs: tuple[Output, ...] = ()
    blobs: tuple[Blob, ...] = ()
    size: int = 0
    processed: tuple[str, ...] = ()
    failed: tuple[tuple[str, ExactlyOnceError], ...] = ()

    def document(self, ledger: Ledger) -> Json:
        """The entity document of the commit, with the successor of this ledger."""
        version = ledger.version + len(self.processed)
        grown = replace(ledger, version=version, deleted=self.deleted, sequences=self.sequences)
        return entity_document(Json("{}") if self.saved is None else self.saved, grown)


def draft_batch(
    work: Work,
    view: View,
    fresh: Mapping[str, Envelope],
    begun: Begun,
    companion_of: Callable[[HandledMessage], Companion],
) -> Batch:
    """Run the handlers one after the other; a message that cannot be committed drops out and takes nothing along.

    Args:
        fresh: messages never processed, by key.
        begun: time of the attempt, and a transaction id for each message.
        companion_of: makes a message's companion.
    """
    batch = Batch(view.body, view.ledger.sequences)
    for (key, envelope), tx in zip(fresh.items(), begun.transactions, strict=True):
        if tx is None:  # Its delivery was given back.
            continue
        try:
            since = since_of_outputs(envelope.since, begun.at, work.send_limit)
            before = Before(batch.body, begun.at, tx, batch.sequences, since=since)
            handled = work.handle(before, envelope)
            version = view.ledger.version + len(batch.processed) + 1
            companion = companion_of(HandledMessage(key, envelope, before, handled, version))
            batch = _fitting(work.entity, view.ledger, batch, _grown(batch, key, handled, companion))
        except ExactlyOnceError as error:
            batch = replace(batch, failed=(*batch.failed, (key, error)))
    return batch


def _grown(batch: Batch, key: str, handled: Handled, companion: Companion) -> Batch:
    return Batch(
        body=None if handled.deleted else handled.body,
        sequences=handled.sequences,
        saved=handled.body,
        deleted=handled.deleted,
        companions=(*batch.companions, companion),
        outputs=(*batch.outputs, *handled.outputs),
        blobs=(*batch.blobs, *handled.blobs),
        processed=(*batch.processed, key),
        failed=batch.failed,
    )


def _fitting(entity: EntityRef, ledger: Ledger, batch: Batch, grown: Batch) -> Batch:
    """The batch with one more message. Raises if the service would refuse the batch."""
    document = grown.document(ledger).size
    beside = batch.size + Json.of(companion_document(entity, grown.companions[-1])).size
    told = f"Message {grown.processed[-1]} on entity {entity}:"
    if document > MAX_DOCUMENT_BYTES:
        raise _too_large(
            told,
            f"the document would have {document} bytes; at most {MAX_DOCUMENT_BYTES} are allowed",
            "Keep less in one entity.",
        )
    if document + beside > BATCH_BYTES:
        if batch.processed:
            raise TryAgainLater(f"{told} there is no room for it in one batch with the messages before it.")
        raise _too_large(
            told,
            f"the document and the record of the message would have {document + beside} bytes; one batch takes {BATCH_BYTES}",
            "Keep less in one entity, or send less from one handler.",
        )
    return replace(grown, size=beside)


def _too_large(told: str, sizes: str, advice: str) -> EntityTooLarge:
    return EntityTooLarge(f"{told} {sizes}. {advice}", kept=sizes)


# Publishing what companions owe: co-located records, and entries of requests in a stream.


Records = tuple[tuple[Companion, str | None], ...]
"""Companions with their ETags; None if not read."""


def publish_records(entity: EntityRef, records: Records, memory: Memory) -> Step[Again | None]:
    """Publish the outputs owed by records, and drop them from the records; None once done. At most 2 effects."""
    owing = settled(records)
    outputs: tuple[Output, ...] = tuple(
        output
        for record, _ in records
        if isinstance(record, ColocatedRecord | StreamEntry)
        for output in record.owed or ()
    )
    if outputs:
        # Publish what records owe. Copies do no harm: the ids are the same.
        published = yield from Publish(outputs, entity)
        if published is not PUBLISHED:
            return Again(memory, "owed outputs could not be published")
    if owing:
        # Drop the outputs from the records, as they were read. Best effort: outputs still owed are published once more.
        yield from ReplaceCompanions(entity, owing)
    return None


def sweep_records(entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
    """Publish the outputs owed by records of the entity, and drop them. At most 3 effects."""
    # Find records that owe. Even an old view shows committed outputs only; publishing them again makes copies at most.
    owing = yield from FindOwing(entity)
    if not isinstance(owing, FoundCompanions):
        return Again(memory, "the records that owe could not be read")
    outcome = yield from publish_records(entity, owing.companions, memory)
    return outcome or Finished(memory)


def settled(records: Records) -> Records:
    """The owing records, without their debt."""
    return tuple(
        (replace(record, owed=None, owing_since=None), etag)
        for record, etag in records
        if isinstance(record, ColocatedRecord | StreamEntry) and record.owed is not None
    )
