"""Every operation that the broker accepted, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from devtools.servicebus_endpoint.broker.messages import Stored


@dataclass(frozen=True, slots=True)
class Accepted:
    """One accepted operation on one message, or what time did to it.

    Attributes:
        number: From 1, without gaps.
        time: Seconds since 1970.
        operation: As faults name them (send, receive, complete, ...); also `lock_expired`, `activate` and `expire`.
        entity: Address of the queue, topic or subscription.
        message_id, session_id: As the sender gave them.
        sequence_number: Of the message, 0 for a copy that was not kept.
        delivery_count: Failed deliveries, this operation included.
        outcome: Where the message is now: active, locked, deferred, scheduled, dead_letter or removed; for a message
            that was not kept `duplicate` or `unmatched`.
    """

    number: int
    time: float
    operation: str
    entity: str
    message_id: str | None
    session_id: str | None
    sequence_number: int
    delivery_count: int
    outcome: str


@dataclass(slots=True)
class History:
    """The accepted operations so far."""

    _accepted: list[Accepted] = field(default_factory=list)

    def note(self, time: float, operation: str, entity: str, stored: Stored, outcome: str) -> None:
        """Write one down."""
        content = stored.content
        self._accepted.append(
            Accepted(
                len(self._accepted) + 1,
                time,
                operation,
                entity,
                content.message_id,
                content.session_id,
                stored.sequence_number,
                stored.delivery_count,
                outcome,
            )
        )

    def read(self, after: int = 0) -> list[Accepted]:
        """All after number `after`."""
        return self._accepted[after:]
