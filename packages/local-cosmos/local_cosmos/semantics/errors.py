"""What the service refuses, with the status and substatus it documents for each case."""

from __future__ import annotations

from typing import Final

CODES: Final = {
    304: "NotModified",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    424: "FailedDependency",
    429: "TooManyRequests",
    449: "RetryWith",
    500: "InternalServerError",
    503: "ServiceUnavailable",
    507: "InsufficientStorage",
}
"""The `code` of an error body, by status."""


class RefusedError(Exception):
    """The request is refused and changed nothing.

    Args:
        message: What is wrong, and what to do where that is known.
        substatus: The `x-ms-substatus` that tells apart reasons of one status.
        retry_after_ms: When a throttled client may try again.
        more: `additionalErrorInfo` of the body; None for none.
    """

    def __init__(
        self,
        status: int,
        message: str,
        substatus: int = 0,
        retry_after_ms: int | None = None,
        *,
        more: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.substatus = substatus
        self.retry_after_ms = retry_after_ms
        self.more = more


def bad_request(message: str, substatus: int = 0) -> RefusedError:
    """400: the request makes no sense, or this emulator does not support it and says so."""
    return RefusedError(400, message, substatus)


def not_found(what: str, substatus: int = 0) -> RefusedError:
    """404: the resource is absent, expired, or (1002) not yet on the replica that was asked."""
    return RefusedError(404, f"Entity with the specified id does not exist in the system: {what}.", substatus)


def conflict(what: str) -> RefusedError:
    """409: the id is taken."""
    return RefusedError(409, f"Entity with the specified id already exists in the system: {what}.")


def unique_key_taken() -> RefusedError:
    """409: another item of the logical partition has the same values. Only the text tells it from an id that is taken."""
    return RefusedError(409, "Unique index constraint violation.")


def precondition_failed() -> RefusedError:
    """412: the ETag or the predicate does not hold."""
    return RefusedError(412, "Operation cannot be performed because one of the specified precondition is not met.")


def too_large() -> RefusedError:
    """413: more than 2 MB."""
    return RefusedError(413, "Request size is too large: an item, and a request, may have 2 MB.")


def session_not_available() -> RefusedError:
    """404/1002: the replica is behind the session token; not the same as absent."""
    return RefusedError(404, "The read session is not available for the input session token.", 1002)


def not_kept(reason: Exception) -> RefusedError:
    """507: the local disk has no room. The service has no such status; SDKs and applications take it for a 500."""
    return RefusedError(507, str(reason))
