"""What teams write themselves: a handler without any guarantee, and one with a check of its own in front."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.competitors.requests import Claim, Overwrite
from exactlyonce.effects.attempt import Again, Before, Finished, Memory, Work
from exactlyonce.effects.effect import UNKNOWN, Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, LoadEntity, Publish
from exactlyonce.values.envelope import Envelope, key_of


@dataclass(frozen=True, slots=True)
class Naive:
    """Read, handle, write, send. A copy is handled again; of two at once on an entity, one is lost."""

    @property
    def group_limit(self) -> int:
        """One message at a time."""
        return 1

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """It remembers nothing."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process one message. Two store operations."""
        (envelope,) = work.messages
        loaded = yield from LoadEntity(work.entity)
        if isinstance(loaded, NoAnswer):
            return Again(memory, "the entity could not be read")
        begun = yield from Begin((key_of(envelope),))
        (tx,) = begun.transactions
        if tx is None:
            return Finished(memory)
        handled = work.handle(Before(loaded.document, begun.at, tx), envelope)
        written = yield from Overwrite(work.entity, handled.body)
        if written is UNKNOWN:
            return Again(memory, "whether the entity was written is not known")
        published = yield from Publish(handled.outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
        return Finished(memory, (key_of(envelope),))


@dataclass(frozen=True, slots=True)
class ProcessedDocument:
    """Create a document that says "processed"; if it was there, the message is a copy; otherwise do as `Naive`.

    Check and work are two writes: a crash between them loses the message, and so does a reply that is lost, since the copy
    meets its own document. Of two messages at once on an entity, one is lost.
    """

    handler: Naive = Naive()

    @property
    def group_limit(self) -> int:
        """One message at a time."""
        return self.handler.group_limit

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """Its documents stay."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process one message. Three store operations; one for a copy."""
        claimed = yield from Claim(work.entity, key_of(work.messages[0]))
        if isinstance(claimed, Conflict):
            return Finished(memory)
        if claimed is UNKNOWN:
            return Again(memory, "whether the message was claimed is not known")
        outcome = yield from self.handler.attempt(work, memory)
        return outcome
