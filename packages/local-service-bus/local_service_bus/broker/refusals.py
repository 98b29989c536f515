"""What the service refuses, by the conditions that its clients know."""

from __future__ import annotations

from typing import Final

ALREADY_EXISTS: Final = "com.microsoft:entity-already-exists"
ARGUMENT_ERROR: Final = "com.microsoft:argument-error"
DETACH_FORCED: Final = "amqp:link:detach-forced"
MESSAGE_LOCK_LOST: Final = "com.microsoft:message-lock-lost"
MESSAGE_NOT_FOUND: Final = "com.microsoft:message-not-found"
SERVER_BUSY: Final = "com.microsoft:server-busy"
SESSION_CANNOT_BE_LOCKED: Final = "com.microsoft:session-cannot-be-locked"
SESSION_LOCK_LOST: Final = "com.microsoft:session-lock-lost"
TIMEOUT: Final = "com.microsoft:timeout"
NOT_ALLOWED: Final = "amqp:not-allowed"
NOT_FOUND: Final = "amqp:not-found"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
TOO_LARGE: Final = "amqp:link:message-size-exceeded"
UNAUTHORIZED: Final = "amqp:unauthorized-access"


class RefusedError(Exception):
    """An operation that the broker does not do; nothing has changed.

    Args:
        condition: One of this module's.
    """

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text


def lock_lost(address: str, of_session: bool) -> RefusedError:
    """The refusal of whoever holds no lock, or no longer."""
    if of_session:
        return RefusedError(SESSION_LOCK_LOST, f"{address}: the lock on the session is lost; accept the session again.")
    return RefusedError(MESSAGE_LOCK_LOST, f"{address}: the lock on the message is lost; it is delivered again.")
