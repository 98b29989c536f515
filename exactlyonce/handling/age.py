"""The age check: refuses unknown messages that are too old to be judged. It fails closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exactlyonce.attempt import Before, Handle, Handled, key_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes


@dataclass(frozen=True, slots=True)
class AgeCheck:
    """A `Handle` that refuses messages which cannot be judged, like a handler that raises.

    A strategy handles a message only after it found no proof that it was processed, and takes the time of the attempt after
    that look. So the age at that time shows whether a proof may have been deleted. A message that is handled again is
    known, and never refused.

    Attributes:
        handle: handles messages that are not refused.
        entity: of the messages.
        lifetimes: of the application.
        forgets: whether the proof that a message was processed goes with age, as `Strategy.forgets` says.
    """

    handle: Handle
    entity: EntityRef
    lifetimes: Lifetimes
    forgets: Callable[[Envelope], bool]

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        """Handle one message.

        Raises:
            UndatedMessage, MessageFromTheFuture, TooOldToJudge: it cannot be judged; nothing was changed.
            ExactlyOnceError: as `handle` does.
        """
        if before.sent is None and self.forgets(envelope):
            refusal = self.lifetimes.refusal(envelope.judged_by, before.at)
            if refusal is not None:
                raise type(refusal)(f"Message {key_of(envelope)} on entity {self.entity}: {refusal}")
        return self.handle(before, envelope)
