"""Publishing what companions owe: co-located records, and entries of requests in a stream."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import FindOwing, FoundCompanions, ReplaceCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.records.companions import ColocatedRecord, Companion, StreamEntry
from exactlyonce.records.outputs import Output
from exactlyonce.values.identity import EntityRef

Found = tuple[tuple[Companion, str | None], ...]
"""Companions, each with the ETag that is known of it."""


def publish_records(entity: EntityRef, found: Found, memory: Memory) -> Step[Again | None]:
    """Publish what these records owe, and drop it from them; None if that is done. At most 2 effects."""
    owing = settled(found)
    outputs: tuple[Output, ...] = tuple(
        output
        for record, _ in found
        if isinstance(record, ColocatedRecord | StreamEntry)
        for output in record.owed or ()
    )
    if outputs:
        # Publish what records owe. Copies do no harm: their ids are the same.
        published = yield from Publish(outputs, entity)
        if published is not PUBLISHED:
            return Again(memory, "owed outputs could not be published")
    if owing:
        # Drop the outputs from the records, as they were read. Best effort: what a record still owes is published once
        # more.
        yield from ReplaceCompanions(entity, owing)
    return None


def sweep_records(entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
    """Publish what records of the entity owe, and drop it. At most 3 effects."""
    # Find records that owe. Even an old view shows committed outputs only; publishing them again makes copies at most.
    found = yield from FindOwing(entity)
    if not isinstance(found, FoundCompanions):
        return Again(memory, "the records that owe could not be read")
    outcome = yield from publish_records(entity, found.companions, memory)
    return outcome or Finished(memory)


def settled(found: Found) -> Found:
    """Those of the records that owe, owing nothing."""
    return tuple(
        (replace(record, owed=None, owing_since=None), etag)
        for record, etag in found
        if isinstance(record, ColocatedRecord | StreamEntry) and record.owed is not None
    )
