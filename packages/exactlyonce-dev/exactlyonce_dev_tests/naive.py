"""The naive protocol: read, handle, save, send. What most handlers do, and nothing more."""

from __future__ import annotations

from typing import ClassVar

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Again, Before, Finished, Memory, Work
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.records.ledger import read_entity
from exactlyonce.values.envelope import EntityRef, Envelope, key_of


class Naive(Outbox):
    """Knows no duplicate, and publishes what is in memory. It saves on condition, so that it loses no update."""

    name: ClassVar[str] = "naive"
    group_limit: ClassVar[int] = 1

    def forgets(self, envelope: Envelope) -> bool:
        del envelope
        return False

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        (message,) = work.messages
        loaded = yield from LoadEntity(work.entity)
        if isinstance(loaded, NoAnswer):
            return Again(memory, "the entity could not be read")
        begun = yield from Begin((key_of(message),))
        (tx,) = begun.given
        handled = work.handle(Before(read_entity(work.entity, loaded.document).body, begun.at, tx), message)
        saved = yield from SaveEntity(work.entity, handled.body, loaded.etag)
        if not isinstance(saved, Saved):
            return Again(memory, "the entity could not be saved")
        published = yield from Publish(handled.outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
        return Finished(Memory(), (key_of(message),))

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        del entity, memory
        yield from ()
        return Finished(Memory())
