"""The co-located protocol.

One transactional batch saves the entity, if it is unchanged, and creates a record for each message beside it, which holds the
outputs. Its id derives from the message, so a message that was processed collides with itself, whatever the reads before
missed. Then the outputs are published, and then dropped from the record.

It is what the well-known outbox persisters do, for entities whose container may hold the library's documents too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from exactlyonce.attempt import Again, Finished, Memory, Work, key_of
from exactlyonce.effects.companions import FindOwing, FoundCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import Saved
from exactlyonce.effects.publish import PUBLISHED, Owed, Publish
from exactlyonce.protocols.outbox.protocol import start_over, write_blobs
from exactlyonce.protocols.steps.batch import GROUP_LIMIT, Batch, Result, draft_batch
from exactlyonce.protocols.steps.sight import Sight, look_beside
from exactlyonce.records.companions import ColocatedRecord, Companion, record_id
from exactlyonce.records.outputs import Output, digest
from exactlyonce.values.identity import EntityRef

Found = tuple[tuple[Companion, str | None], ...]
"""Companions, each with the ETag that is known of it."""


@dataclass(frozen=True, slots=True)
class Colocated:
    """Records beside the entity, written in the entity's own batch. It has no settings."""

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        return GROUP_LIMIT

    @property
    def forgets(self) -> bool:
        """Records go with age."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 12 effects.

        Raises:
            StoredDataError: a document cannot be trusted.
            ConfigurationError: the entity belongs to another protocol.
        """
        entity = work.entity
        messages = {key_of(envelope): envelope for envelope in work.messages}
        sight = yield from look_beside(entity, tuple(record_id(entity, key) for key in messages), "colocated", memory)
        if isinstance(sight, Again):
            return sight
        # Finish duplicates. The attempt that committed them may have died before it published.
        owed = yield from publish_records(entity, sight.companions, sight.memory)
        if isinstance(owed, Again):
            return owed
        known = {record.message for record, _ in sight.companions if isinstance(record, ColocatedRecord)}
        fresh = {key: envelope for key, envelope in messages.items() if key not in known}
        if not fresh:
            return Finished(sight.memory)
        # Begin, and handle the messages. A message whose handler raises, or whose result does not fit, drops out alone.
        begun = yield from Begin(tuple(fresh))
        batch = draft_batch(work, sight, fresh, begun, lambda result: _record(entity, result))
        if not batch.processed:
            return Finished(sight.memory, failed=batch.failed)
        outcome = yield from self._commit(entity, sight, batch)
        return outcome

    def _commit(self, entity: EntityRef, sight: Sight, batch: Batch) -> Step[Finished | Again]:
        """Commit, publish, drop what was published: in this order."""
        kept = yield from write_blobs(batch.blobs, sight.memory)
        if kept is not None:
            return kept
        document = batch.document(sight.ledger)
        # Commit: save the entity and create the records, in one batch. A commit in between has changed the entity's ETag;
        # one of the same message has created its record. Nothing is undone if it fails: it may still land.
        saved = yield from SaveBatch(entity, document, sight.etag, batch.companions)
        if not isinstance(saved, Saved):
            return start_over(sight.memory, saved)
        memory = replace(sight.memory, entity_token=saved.token)
        if batch.outputs:
            # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are
            # acknowledged, so that none is lost.
            published = yield from Publish(batch.outputs)
            if published is not PUBLISHED:
                return Again(memory, "the outputs could not be published")
            # Drop the outputs from the new records. Without a condition: what is published stays so, whatever else was
            # written meanwhile.
            yield from ReplaceCompanions(entity, _settled(tuple((record, None) for record in batch.companions)))
        return Finished(memory, batch.processed, batch.failed)

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Nothing is left to mark: an attempt drops what it published itself. No effect."""
        del entity, memory
        yield from ()
        return Finished(Memory())


def sweep(entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
    """Publish what records of the entity owe, and drop it. At most 3 effects, for at most 100 records.

    No fresh view is needed: what a record owes was committed with it.

    Raises:
        StoredDataError: a record cannot be trusted.
    """
    # Find records that owe. Even an old view shows committed outputs only; publishing them again makes copies at most.
    found = yield from FindOwing(entity)
    if not isinstance(found, FoundCompanions):
        return Again(memory, "the records that owe could not be read")
    outcome = yield from publish_records(entity, found.companions, memory)
    return outcome or Finished(memory)


def publish_records(entity: EntityRef, found: Found, memory: Memory) -> Step[Again | None]:
    """Publish what these records owe, and drop it from them; None if that is done. At most 2 effects."""
    settled = _settled(found)
    outputs: tuple[Output, ...] = tuple(
        output for record, _ in found if isinstance(record, ColocatedRecord) for output in record.owed or ()
    )
    if outputs:
        # Publish what records owe. Copies do no harm: their ids are the same.
        published = yield from Publish(outputs, Owed(entity, min(record.at for record, _ in settled)))
        if published is not PUBLISHED:
            return Again(memory, "owed outputs could not be published")
    if settled:
        # Drop the outputs from the records, as they were read. Best effort: what a record still owes is published once
        # more.
        yield from ReplaceCompanions(entity, settled)
    return None


def _settled(found: Found) -> Found:
    """Those of the records that owe, owing nothing."""
    return tuple(
        (replace(record, owed=None, owing_since=None), etag)
        for record, etag in found
        if isinstance(record, ColocatedRecord) and record.owed is not None
    )


def _record(entity: EntityRef, result: Result) -> ColocatedRecord:
    message, _, before, handled, version = result
    return ColocatedRecord(
        entity=entity.key,
        message=message,
        tx=before.tx,
        version=version,
        at=before.at,
        outputs=tuple(output.ref for output in handled.outputs),
        digest=digest(handled.outputs),
        owed=handled.outputs or None,
        owing_since=before.at if handled.outputs else None,
    )
