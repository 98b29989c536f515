"""The operations that the broker accepted, in order: the last ones, and whoever asks for others is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import UUID

from local_service_bus.broker.messages import Stored

KEPT: Final = 100_000
"""Operations that are kept: some 30 MB."""


class ForgottenError(LookupError):
    """What is asked of the history is so long ago that the endpoint has forgotten some of it."""


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


class History:
    """The last accepted operations."""

    def __init__(self, kept: int = KEPT) -> None:
        self._accepted: deque[Accepted] = deque(maxlen=kept)
        self._count = 0

    def note(self, time: float, operation: str, entity: str, stored: Stored, outcome: str) -> None:
        """Write one down."""
        self._count += 1
        message = (stored.content.message_id, stored.content.session_id, stored.sequence_number, stored.delivery_count)
        self._accepted.append(Accepted(self._count, time, operation, entity, *message, outcome))

    def read(self, after: int = 0) -> list[Accepted]:
        """All after number `after`.

        Raises:
            ForgottenError: some of them are not there any more.
        """
        forgotten = self._count - len(self._accepted)
        if after < forgotten:
            raise ForgottenError(
                f"The history begins after operation {forgotten}, since only the last {len(self._accepted)} are kept. Ask for "
                "those after a later one, or more often."
            )
        return list(islice(self._accepted, after - forgotten, None))


@dataclass(frozen=True, slots=True)
class World:
    """The broker's surroundings.

    Attributes:
        now: Seconds since 1970.
        new_token: A lock token that was never given before.
    """

    now: Callable[[], float]
    new_token: Callable[[], UUID]
    history: History
