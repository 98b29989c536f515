"""Messages as the broker sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal
from uuid import UUID

State = Literal["active", "deferred", "scheduled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a sender gave. It never changes.

    Attributes:
        payload: The whole message as it was encoded; opaque here.
        message_id, session_id: None if the sender gave none.
        time_to_live: Seconds; None for as long as the entity says.
        scheduled_for: Seconds since 1970 before which nobody gets it; None for at once.
        correlation_id, to, reply_to, subject, reply_to_session_id, content_type: What filters look at.
        properties: Application properties, for filters.
    """

    payload: bytes = field(repr=False)
    message_id: str | None = None
    session_id: str | None = None
    time_to_live: float | None = None
    scheduled_for: float | None = None
    correlation_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class DeathCertificate:
    """Why a message is a dead letter.

    Attributes:
        reason, description: None if whoever moved it gave none.
        source: The address of the queue or subscription that it was in.
    """

    reason: str | None
    description: str | None
    source: str


@dataclass(eq=False, slots=True)
class SessionLock:
    """One receiver's hold on a session.

    Attributes:
        until: Seconds since 1970.
        held: False once it has ended, in whatever way.
    """

    session_id: str
    until: float
    held: bool = True


@dataclass(eq=False, slots=True)
class Stored:
    """One message in one queue.

    Attributes:
        sequence_number: Given by the queue, ascending; a scheduled message gets a new one when its time has come.
        enqueued_at, expires_at: Seconds since 1970.
        delivery_count: Deliveries that failed.
        token: Of its lock; None while nobody holds it.
        locked_until: Seconds since 1970; without meaning for messages of sessions.
        session: The hold under which it is locked.
        death: Only in a dead-letter queue.
        changed: Application properties that receivers have set, and by which they replace those of the sender.
    """

    content: Content
    sequence_number: int
    enqueued_at: float
    expires_at: float = inf
    state: State = "active"
    delivery_count: int = 0
    token: UUID | None = None
    locked_until: float = 0.0
    session: SessionLock | None = None
    death: DeathCertificate | None = None
    changed: dict[str, object] = field(default_factory=dict)

    @property
    def lock_ends_at(self) -> float:
        """Seconds since 1970 until which whoever holds it may settle it."""
        return self.session.until if self.session else self.locked_until
