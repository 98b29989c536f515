"""The co-located protocol, for entities whose container may hold the library's documents.

One transactional batch saves the entity, if unchanged, and creates a companion record with the outputs for each message. The
id of a record derives from the message, so a processed message collides with its own record, whatever earlier reads missed.
After the batch, the outputs are published, and then dropped from the record.

The well-known outbox persisters work in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from exactlyonce.effects.attempt import Again, Finished, Memory, Settled, Unfinished, Work
from exactlyonce.effects.companions import ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved
from exactlyonce.protocols.steps.batch import (
    BATCH_MESSAGES,
    Batch,
    HandledMessage,
    draft_batch,
    publish_records,
    settled,
    sweep_records,
)
from exactlyonce.protocols.steps.clean import clean_companions, committed_by_companions
from exactlyonce.protocols.steps.load import (
    View,
    answers_beside,
    contents_in,
    load_with_companions,
    start_over,
    write_blobs,
)
from exactlyonce.protocols.steps.park import companions_know, settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.companions import ColocatedRecord, record_id
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import digest
from exactlyonce.values.envelope import EntityRef, Envelope, key_of


@dataclass(frozen=True, slots=True)
class Colocated:
    """The co-located protocol: companion records, written in the entity's own batch. It has no settings."""

    name: ClassVar[str] = "colocated"
    companions: ClassVar[bool] = True
    """Records lie in the entity's partition."""
    answers: ClassVar[bool] = True
    """Records hold the answers."""
    unfinished: ClassVar[tuple[Unfinished, ...]] = ("companions",)
    """Records owe outputs."""
    group_limit: ClassVar[int] = BATCH_MESSAGES

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """True: clean-up deletes old records."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 12 effects."""
        entity = work.entity
        messages = {key_of(envelope): envelope for envelope in work.messages}
        ids = tuple(record_id(entity, key) for key in messages)
        view = yield from load_with_companions(entity, ids, self, memory)
        if isinstance(view, Again):
            return view
        # Finish duplicates. The attempt that committed them may have died before it published.
        owed = yield from publish_records(entity, view.companions, view.memory)
        if isinstance(owed, Again):
            return owed
        records = tuple(record for record, _ in view.companions if isinstance(record, ColocatedRecord))
        answers = answers_beside(records)
        recorded = {record.message for record in records}
        fresh = {key: envelope for key, envelope in messages.items() if key not in recorded}
        contents = contents_in(records)
        if not fresh:
            return Finished(view.memory, answers=answers, contents=contents)
        # Begin, and handle the messages. A message whose handler raises, or whose result does not fit, drops out alone.
        begun = yield from Begin(tuple(fresh))
        batch = draft_batch(work, view, fresh, begun, lambda result: _record(entity, result))
        if not batch.processed:
            return Finished(view.memory, failed=batch.failed, answers=answers, contents=contents)
        outcome = yield from self._commit(entity, view, batch)
        answers = (*answers, *outcome.answers)
        return replace(outcome, answers=answers, contents=contents) if isinstance(outcome, Finished) else outcome

    def _commit(self, entity: EntityRef, view: View, batch: Batch) -> Step[Finished | Again]:
        """Commit, publish, drop the published outputs: in this order."""
        kept = yield from write_blobs(batch.blobs, view.memory)
        if kept is not None:
            return kept
        document = batch.document(view.ledger)
        # Commit: save the entity and create the records, in one batch. A commit in between has changed the entity's ETag, and
        # a commit of the same message has created its record. A failed save is not undone: it may still land.
        saved = yield from SaveBatch(entity, document, view.etag, batch.companions)
        if not isinstance(saved, Saved):
            return start_over(view.memory, saved)
        memory = replace(view.memory, entity_token=saved.token)
        if batch.outputs:
            # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are
            # acknowledged, so that none is lost.
            published = yield from Publish(batch.outputs)
            if published is not PUBLISHED:
                return Again(memory, "the outputs could not be published")
            # Drop the outputs from the new records. Unconditionally: published outputs stay published, whatever else was
            # written meanwhile.
            yield from ReplaceCompanions(entity, settled(tuple((record, None) for record in batch.companions)))
        return Finished(memory, batch.processed, batch.failed, answers=answers_beside(batch.companions))

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Publish the outputs owed by records of the entity, and drop them. At most 3 effects, for at most 100 records.

        No fresh view is needed: a record's outputs were committed with the record.
        """
        return sweep_records(work.entity, memory)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message given up by the host: publish its record's outputs, or park the message. At most 9 effects."""
        (envelope,) = work.messages
        ids = (record_id(work.entity, key_of(envelope)),)
        return settle(self, work, delivered, reason, memory, finish=lambda view: _finished(work.entity, view), ids=ids)

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether a record proves a message processed. At most 4 effects."""
        return companions_know(self, entity, envelope, (record_id(entity, key_of(envelope)),), memory)

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """The attempts whose transaction is named by a record. At most one effect."""
        del ledger
        ids = {author: record_id(entity, author.message) for author in authors}
        return committed_by_companions(entity, ids, memory)

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete old records that owe nothing, without a look at the ledger. At most 2 effects."""
        return clean_companions(entity, candidates, Ledger(), memory)


def _finished(entity: EntityRef, view: View) -> Step[Settled | Again | None]:
    """Publish the outputs owed by the message's record; None without a record."""
    if not view.companions:
        return None
    # Finish a processed message. Only its outputs may be missing.
    owed = yield from publish_records(entity, view.companions, view.memory)
    return owed or Settled("processed", view.memory)


def _record(entity: EntityRef, message: HandledMessage) -> ColocatedRecord:
    outputs = message.handled.outputs
    return ColocatedRecord(
        entity=entity.key,
        message=message.key,
        tx=message.before.tx,
        version=message.version,
        at=message.before.at,
        outputs=tuple(output.ref for output in outputs),
        digest=digest(outputs),
        owed=outputs or None,
        owing_since=message.before.at if outputs else None,
        answer=message.handled.answer,
        content=message.envelope.content if message.envelope.asked is None else None,
    )
