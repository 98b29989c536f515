"""From the SDK's exceptions to the reply for a strategy: a table.

The rule behind its rows: azure-cosmos 4.17 and aiohttp below it repeat a request on their own after a lost reply or a 503,
writes included, so **an error speaks only for the last send**. Hence no refusal of a write proves that it was not applied: a
conflict may be one's own earlier success, which every protocol expects of a `Conflict`; and 429, 449, 410 and 408 may follow an
applied send, so that a write is never `Busy`. The SDK has waited out most throttling by then.

A fault that is neither the world's nor temporary is raised. An error is as safe as a crash between two effects, and, unlike
`UNKNOWN`, does not make every message spin until its queue gives it up.

Sources: measured with azure-cosmos 4.17.1; "HTTP status codes for Azure Cosmos DB" (Microsoft).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import (
    ConfigurationError,
    EntityRefused,
    EntityTooLarge,
    ExactlyOnceError,
    InvalidMessage,
    MalformedMessage,
    OutputTooLarge,
)

SESSION_TOKEN: Final = "x-ms-session-token"  # noqa: S105
CREATING: Final = 1013
"""Substatus of a 404: the container is being created."""
FAILURES: Final = (AzureError, asyncio.TimeoutError)
"""The exceptions of requests for faults of the world: AzureError is the root of all exceptions of the SDK, cut bodies included.
CancelledError is not here: cancelling equals a crash."""

_RETRY_AFTER_MS: Final = "x-ms-retry-after-ms"
_log = logging.getLogger(__name__)


class Operation(Enum):
    """A request to the service."""

    OPEN = "read the account, a database or a container"
    READ = "read a document"
    QUERY = "query documents"
    CREATE = "create an entity document"
    REPLACE = "replace an entity document"
    PAGE = "create a page"
    BOOK = "upsert a book"
    STAGE = "create staged documents"
    PARK = "park a message"
    COMMIT = "save an entity document and its companions"
    AMEND = "write over companions of an entity"
    DELETE = "delete documents of the library"
    OPEN_REQUEST = "create the document of a request"
    KEEP = "keep the answer to a request"
    NOTE = "write a note over a document of the library"


class Meaning(Enum):
    """The meaning of an outcome for a strategy."""

    ABSENT = "no such document, in the view that answered"
    CONFLICT = "the condition did not hold, possibly because of one's own earlier send"
    TAKEN = "the same, or a unique key of the container is taken"
    BEHIND = "the replica has not reached the session token"
    BUSY = "not now; nothing was applied"
    UNKNOWN = "nobody knows"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; the first row that fits decides.

    Attributes:
        operations: the operations of the row.
        status, substatus: codes of the reply; a substatus of None fits any.
        means: the reply, or the error to raise.
        advice: the action for the operator.
    """

    operations: frozenset[Operation]
    status: int
    substatus: int | None
    means: Meaning | type[ExactlyOnceError]
    advice: str = ""


_ALL: Final = frozenset(Operation)
_OPEN: Final = frozenset({Operation.OPEN})
_READS: Final = frozenset({Operation.READ, Operation.QUERY})
_SAVES: Final = frozenset({Operation.CREATE, Operation.REPLACE})
_COMMITS: Final = _SAVES | {Operation.COMMIT}
_OF_COMPANIONS: Final = frozenset({Operation.COMMIT, Operation.AMEND})

TABLE: Final = (
    # A replica that is behind says nothing about the document. After it, 404/0 on a read is a statement of a replica.
    Row(_READS, 404, 1002, Meaning.BEHIND),
    Row(frozenset({Operation.READ}), 404, 0, Meaning.ABSENT),
    # Conditional writes are judged by the primary, and the condition fails as well if an earlier send of the same request
    # was applied: 409 for a create, 412 for a replace. A document to replace or delete may be gone already. A batch has the
    # status of the operation that failed. In a user's container a 409 may also be a unique key, and only a read of
    # the document shows which: the text may say so or not, and the order of id, ETag and unique key is not documented.
    Row(_ALL, 409, 1006, Meaning.UNKNOWN),  # An operation on the account is under way.
    Row(_COMMITS, 409, None, Meaning.TAKEN),
    Row(frozenset({Operation.PAGE, Operation.STAGE, Operation.OPEN_REQUEST}), 409, None, Meaning.CONFLICT),
    Row(_SAVES | _OF_COMPANIONS | {Operation.DELETE, Operation.NOTE}, 412, None, Meaning.CONFLICT),
    Row(
        _OF_COMPANIONS | {Operation.REPLACE, Operation.DELETE, Operation.KEEP, Operation.NOTE}, 404, 0, Meaning.CONFLICT
    ),
    # Not now: throttled, in the way of another request for the same document, the partition moving. A read applies nothing
    # however often it was sent. For a write the same codes are UNKNOWN, by the rule above.
    Row(_READS, 429, None, Meaning.BUSY),
    Row(_READS, 449, None, Meaning.BUSY),
    Row(_READS, 410, None, Meaning.BUSY),
    # The write region is moving; it passes, and the SDK has tried for a while. Every other 403 stays until somebody acts.
    Row(_ALL, 403, 3, Meaning.UNKNOWN),
    Row(_ALL, 403, 1008, Meaning.UNKNOWN),
    Row(
        _ALL,
        403,
        1014,
        ConfigurationError,
        "The logical partition has reached 20 GB: use a finer partition key, or let clean-up remove old records.",
    ),
    Row(
        _ALL,
        403,
        None,
        ConfigurationError,
        "Give the identity the data-plane role 'Cosmos DB Built-in Data Contributor' on the database; let the network it calls "
        "from through the account's firewall; check the clock, too. If all that is as it has to be, the account's activity log "
        "says more, such as a quota that is used up, or a customer-managed key that was revoked.",
    ),
    Row(
        _ALL,
        401,
        None,
        ConfigurationError,
        "Check the account key, which must not be a read-only one; or, without one, that the identity belongs to the account's "
        "tenant; check the clock, too.",
    ),
    # An absent database or container is never an absent document: taken for one, every duplicate would look new.
    Row(_ALL, 404, 1003, ConfigurationError, "Create the container, or correct its name in the settings."),
    Row(_OPEN, 404, CREATING, Meaning.UNKNOWN),
    Row(_OPEN, 404, None, ConfigurationError, "Create database and container, or correct their names in the settings."),
    Row(  # The SDK has looked at the container once more, and asked again.
        _ALL,
        400,
        1024,
        ConfigurationError,
        "The container was deleted and created anew meanwhile: restart the application, and see what became of its documents.",
    ),
    # What the library adds to an entity is always well-formed, so it is the state that is not.
    Row(
        _COMMITS,
        400,
        0,
        EntityRefused,
        "Look at what the handler returns: Cosmos DB takes properties up to 128 levels deep, numbers that a double holds, and "
        "a 'ttl' that is a positive whole number or -1.",
    ),
    Row(
        _ALL,
        400,
        None,
        ConfigurationError,
        "The request makes no sense to this container: check that its partition key path is what the entity declares.",
    ),
    # Too large is so at every send, so nothing was applied. The library's own limits leave room below 2 MB, but properties of
    # many small outputs, and characters that JSON has to escape, add to what they count.
    Row(_SAVES, 413, None, EntityTooLarge, "Keep less in the entity: the service takes documents up to 2 MB."),
    Row(
        frozenset({Operation.COMMIT}),
        413,
        None,
        EntityTooLarge,
        "Keep less in the entity, or send less from one handler: the service takes documents up to 2 MB, and as much in all "
        "that is saved together.",
    ),
    Row(
        frozenset({Operation.PAGE}),
        413,
        None,
        EntityTooLarge,
        "Give shorter answers to requests: the service takes documents up to 2 MB, and those that leave the ledger together "
        "are in one.",
    ),
    Row(
        frozenset({Operation.STAGE}),
        413,
        None,
        OutputTooLarge,
        "Send fewer messages from one handler: the service takes documents up to 2 MB.",
    ),
    Row(
        frozenset({Operation.PARK}),
        413,
        None,
        MalformedMessage,
        "Save the message and take it from its poison queue by hand: the service takes documents up to 2 MB.",
    ),
    Row(
        frozenset({Operation.OPEN_REQUEST}),
        413,
        None,
        InvalidMessage,
        "Send a smaller request: the service takes documents up to 2 MB.",
    ),
    # Everything else is UNKNOWN: 408 and 5xx above all, which can follow an applied write; and whatever has no row.
)


@dataclass(frozen=True, slots=True)
class Taken(Conflict):
    """A conflict that may also be for a unique key: then the document itself is as its condition says, and it is no conflict.

    Attributes:
        operation: index of the conflicting operation in a batch; 0 without a batch.
    """

    operation: int = 0


@dataclass(frozen=True, slots=True)
class Absent:
    """No such document, in a view at `token`."""

    token: str | None


def after_read(
    error: BaseException, operation: Operation = Operation.READ, where: str = ""
) -> Absent | NoAnswer | Busy:
    """The reply to a failed read. Raises the error of a row with an error."""
    meaning = meaning_of(error, operation, where)
    if meaning is Meaning.ABSENT:
        return Absent(headers_of(error).get(SESSION_TOKEN))
    if meaning is Meaning.BEHIND:
        return BEHIND
    return Busy(_retry_after(error)) if meaning is Meaning.BUSY else UNKNOWN


def after_query(error: BaseException, where: str = "") -> NoAnswer | Busy:
    """The reply to a failed query; no row lets a query find a document absent."""
    reply = after_read(error, Operation.QUERY, where)
    return UNKNOWN if isinstance(reply, Absent) else reply


def after_write(error: BaseException, operation: Operation, where: str = "") -> Conflict | Unknown:
    """The reply to a failed write, with the token of the conflict. Raises the error of a row with an error."""
    meaning = meaning_of(error, operation, where)
    token = headers_of(error).get(SESSION_TOKEN)
    if meaning is Meaning.TAKEN:
        return Taken(token, (error.error_index or 0) if isinstance(error, CosmosBatchOperationError) else 0)
    return Conflict(token) if meaning is Meaning.CONFLICT else UNKNOWN


def meaning_of(error: BaseException, operation: Operation, where: str = "") -> Meaning:
    """The meaning of an outcome.

    Args:
        error: the request's exception.
        operation: the request's operation.
        where: the partition of the request; empty without a partition.

    Raises:
        ConfigurationError, EntityRefused, EntityTooLarge, InvalidMessage, MalformedMessage, OutputTooLarge: as the row says.
    """
    status, substatus = _status(error)
    place = f" in {where}" if where else ""
    for row in TABLE:
        if operation in row.operations and row.status == status and row.substatus in (None, substatus):
            if not isinstance(row.means, Meaning):
                raise row.means(
                    f"Cosmos DB refused to {operation.value}{place} ({status}/{substatus}). {row.advice}"
                ) from error
            meaning = row.means
            break
    else:
        meaning = Meaning.UNKNOWN
    if meaning in (Meaning.UNKNOWN, Meaning.BUSY):
        # The class and the codes only: the text of an error may quote what was sent.
        _log.warning("could not %s%s: %s, %s/%s", operation.value, place, type(error).__name__, status, substatus)
    return meaning


def headers_of(error: BaseException) -> Mapping[str, Any]:
    """The headers of the reply, if there was one."""
    return (error.headers or {}) if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError) else {}


def _status(error: BaseException) -> tuple[int | None, int]:
    """Status and substatus of the reply. Only these two classes have the service's: further classes, as for a cut body or a
    token refused by Entra ID, derive from HttpResponseError and carry a status with another meaning."""
    if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError):
        return error.status_code, error.sub_status or 0
    return None, 0


def _retry_after(error: BaseException) -> float | None:
    milliseconds = headers_of(error).get(_RETRY_AFTER_MS)
    return None if milliseconds is None else float(milliseconds) / 1000


def answered_at(headers: Mapping[str, Any]) -> float | None:
    """When the service answered, by its common header `Date`. None if the header is absent, or no date with a zone."""
    return _seconds(str(headers.get("Date")))


@lru_cache(maxsize=8)  # Replies of the same second share a date.
def _seconds(date: str) -> float | None:
    try:
        read = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return None if read.tzinfo is None else read.timestamp()
