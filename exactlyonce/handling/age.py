"""Refusing messages that are not known and may have been processed all the same: fail closed."""

from __future__ import annotations

from dataclasses import dataclass

from exactlyonce.attempt import Before, Handle, Handled, key_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes


@dataclass(frozen=True, slots=True)
class AgeCheck:
    """A `Handle` that refuses what cannot be judged, like a handler that raises.

    A strategy has a message handled only when a look at everything that is kept did not find it, and begins after that look: so
    the age at the beginning tells whether what it would have found may be gone. One that is handled again is known.

    Attributes:
        handle: handles what is not refused.
        entity: that the messages are for.
        lifetimes: of the application.
    """

    handle: Handle
    entity: EntityRef
    lifetimes: Lifetimes

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        """Handle one message.

        Raises:
            UndatedMessage, MessageFromTheFuture, TooOldToJudge: it cannot be judged; nothing was changed.
            ExactlyOnceError: as `handle` does.
        """
        if before.sent is None and (refusal := self.lifetimes.refusal(envelope.time, before.at)) is not None:
            raise type(refusal)(f"Message {key_of(envelope)} on entity {self.entity}: {refusal}")
        return self.handle(before, envelope)
