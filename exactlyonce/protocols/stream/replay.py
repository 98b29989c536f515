"""Replay: sending the outputs of earlier versions again, to rebuild a read model or to replace lost messages.

Only a version stream can replay: every message is stored, with a patch back to the state before. The outputs keep their ids
and numbers, so receivers recognize copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from exactlyonce.effects.attempt import Again, Memory, Work
from exactlyonce.effects.companions import FindEntries, FindNumbered
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved, SaveEntity
from exactlyonce.errors import ConfigurationError
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.protocols.steps.load import View, load, start_over
from exactlyonce.protocols.stream.protocol import (
    Point,
    VersionStream,
    outputs_again,
    part_from,
    point_before,
    require_same_kind,
)
from exactlyonce.records.companions import StreamEntry
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import EntityRef, Envelope


@dataclass(frozen=True, slots=True)
class Missing:
    """Outputs missing in a read model.

    Attributes:
        first, last: first and last number.
    """

    channel: str
    first: int
    last: int

    def includes(self, output: Output) -> bool:
        """Whether an output is missing."""
        place = output.place
        return place is not None and place.channel == self.channel and self.first <= place.number <= self.last


@dataclass(frozen=True, slots=True)
class Replayed:
    """A part of the versions was replayed.

    Attributes:
        sent: how many outputs were published again.
        following: the next version to replay; None after the last.
    """

    sent: int
    following: int | None
    memory: Memory


def versions_of(entity: EntityRef, missing: Missing, memory: Memory) -> Step[tuple[int, int] | Again | None]:
    """First and last version with missing outputs; None if the stream has none of them. At most 5 effects.

    A view in which the entity has yet to give out these numbers proves nothing, since the read model has seen later ones. But
    the entity may have forgotten the channel, or lost its last commits, after it was restored from a backup and renumbered.

    Raises:
        StoredDataError: the document cannot be trusted.
        ConfigurationError: the entity has no stream.
    """
    view = yield from load(entity, VersionStream(), memory)
    if isinstance(view, Again):
        return view
    last = next((sequence.last for sequence in view.ledger.sequences if sequence.channel == missing.channel), 0)
    if last < missing.last:
        if view.document is None:
            return Again(view.memory, "the entity does not exist, in the view that answered")
        # Fence: save the entity unchanged. If the save succeeds, the view was current, and no later view will know more.
        saved = yield from SaveEntity(entity, view.document, view.etag)
        if not isinstance(saved, Saved):
            return start_over(view.memory, saved)
    # Find the versions that sent these numbers. The entity's session token covers their entries.
    numbered = yield from FindNumbered(entity, missing.channel, (missing.first, missing.last), view.memory.entity_token)
    if isinstance(numbered, NoAnswer):
        return Again(view.memory, "the stream could not be read")
    return (min(numbered.versions), max(numbered.versions)) if numbered.versions else None


def replay(
    work: Work, versions: tuple[int, int], memory: Memory, missing: Missing | None = None
) -> Step[Replayed | Again]:
    """Publish the outputs of versions again, up to the next whole state. At most 5 effects; repeat until done.

    Args:
        work: the entity and its handler, without messages.
        versions: first and last version; for missing outputs, the result of `versions_of`: a view without these versions is
            older.
        missing: the outputs to send; None for all.

    Raises:
        NonDeterministicHandler: a handler sends other outputs than before; nothing of this part was sent.
        StoredDataError: the stream cannot be trusted, or clean-up has taken a part of it.
        ConfigurationError: the entity has no stream, or a stream of another kind than its type; or the first version is below
            1.
    """
    if versions[0] < 1:
        raise ConfigurationError(
            f"Nothing of entity {work.entity} can be sent again from version {versions[0]} on: versions are counted from 1."
        )
    view = yield from load(work.entity, VersionStream(), memory)
    if isinstance(view, Again):
        return view
    require_same_kind(work, view.ledger)
    if missing is not None and view.ledger.version < versions[1]:
        return Again(view.memory, "the entity was seen in an older view than its outputs")
    first, last = versions[0], min(versions[1], view.ledger.version)
    if first > last:
        return Replayed(0, None, view.memory)
    reach = part_from(first, view.ledger)
    # Read a part of the stream, as far as the next whole state. A replay of any length reads at most `snapshot_every`
    # entries at once.
    loaded = yield from FindEntries(work.entity, (reach,), view.memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(view.memory, "the stream could not be read")
    entries = tuple(entry for entry, _ in loaded.companions if isinstance(entry, StreamEntry))
    last_here = min(last, reach[1])
    outputs = tuple(
        output
        for version in range(first, last_here + 1)
        for output in _sent(work, version, entries, view)
        if missing is None or missing.includes(output)
    )
    if outputs:
        # Handle the part again, and publish. Ids and numbers are those of the first time. If a handler sends anything else,
        # nothing of the part is sent.
        published = yield from Publish(outputs)
        if published is not PUBLISHED:
            return Again(view.memory, "the outputs could not be published")
    return Replayed(len(outputs), last_here + 1 if last_here < last else None, view.memory)


def _sent(work: Work, version: int, entries: tuple[StreamEntry, ...], view: View) -> tuple[Output, ...]:
    """The outputs of a version."""
    now = Point(view.body)
    before = point_before(work, version, entries, view.ledger, now)
    entry = next(item for item in entries if item.version == version)
    return outputs_again(work.entity, Envelope.read(entry.envelope.text, limit=BATCH_BYTES), entry, before, work.handle)
