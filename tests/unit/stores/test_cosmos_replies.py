"""Each row of the table from what the SDK raises to the reply that a strategy gets."""

from __future__ import annotations

import pytest

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import (
    ConfigurationError,
    EntityRefused,
    EntityTooLarge,
    InvalidMessage,
    MalformedMessage,
    OutputTooLarge,
)
from exactlyonce.stores.cosmos.replies import TABLE, Absent, Operation, Row, Taken
from tests.unit.stores.refusing import SECRET, TOKEN, answer, refusal

READS = (Operation.READ, Operation.QUERY)
SAVES = (Operation.CREATE, Operation.REPLACE)
LIBRARY_WRITES = (Operation.STAGE, Operation.PAGE, Operation.BOOK)
BATCHES = (Operation.COMMIT, Operation.AMEND)
COMMITS = (*SAVES, Operation.COMMIT)
WRITES = (*SAVES, *LIBRARY_WRITES, Operation.PARK, *BATCHES, Operation.DELETE, Operation.OPEN_REQUEST, Operation.KEEP)
EVERYTHING = tuple(Operation)

ANSWERS: list[tuple[str, tuple[Operation, ...], int, int | None, object]] = [
    ("a replica behind the token is never an absence", READS, 404, 1002, BEHIND),
    ("a document that is not there is absent", (Operation.READ,), 404, None, Absent(TOKEN)),
    ("an absence may carry a substatus of zero", (Operation.READ,), 404, 0, Absent(TOKEN)),
    ("an id or a unique key that is taken is a conflict of its own kind", COMMITS, 409, None, Taken(TOKEN)),
    ("an account that is changed will have changed", (Operation.OPEN, *READS, *WRITES), 409, 1006, UNKNOWN),
    (
        "pages, staged documents and requests have no unique keys",
        (Operation.PAGE, Operation.STAGE, Operation.OPEN_REQUEST),
        409,
        None,
        Conflict(TOKEN),
    ),
    (
        "an etag that is outdated is a conflict",
        (*SAVES, *BATCHES, Operation.DELETE, Operation.NOTE),
        412,
        None,
        Conflict(TOKEN),
    ),
    (
        "a document to replace that is gone is a conflict",
        (Operation.REPLACE, *BATCHES, Operation.DELETE, Operation.KEEP, Operation.NOTE),
        404,
        0,
        Conflict(TOKEN),
    ),
    ("a throttled read is not now", READS, 429, 3200, Busy(1.5)),
    ("a read in the way of another request is not now", READS, 449, None, Busy(1.5)),
    ("a read from a partition that moves is not now", READS, 410, 1007, Busy(1.5)),
    ("a container whose throughput changes is not now", READS, 429, 3084, Busy(1.5)),
    ("a throttled write may have been applied by an earlier send", WRITES, 429, 3200, UNKNOWN),
    ("a write in the way of another may have been applied by an earlier send", WRITES, 449, None, UNKNOWN),
    ("a write to a partition that moves may have been applied by an earlier send", WRITES, 410, 1007, UNKNOWN),
    ("a write region that moves will have moved", (*READS, *WRITES), 403, 3, UNKNOWN),
    ("an account that moves will have moved", (*READS, *WRITES), 403, 1008, UNKNOWN),
    ("a request that timed out in the service", (*READS, *WRITES), 408, None, UNKNOWN),
    ("an error in the service", (*READS, *WRITES), 500, None, UNKNOWN),
    ("a bad gateway", (*READS, *WRITES), 502, None, UNKNOWN),
    ("a service that is unavailable", (*READS, *WRITES), 503, 21008, UNKNOWN),
    ("a query cannot find a document absent", (Operation.QUERY,), 404, 0, UNKNOWN),
    ("a write cannot be behind", WRITES, 404, 1002, UNKNOWN),
    ("a create has nothing to miss", (Operation.CREATE, Operation.PARK, *LIBRARY_WRITES), 404, 0, UNKNOWN),
    ("an upsert has nothing to conflict with", (Operation.BOOK, Operation.PARK), 409, None, UNKNOWN),
    ("a companion that is written over keeps its id", (Operation.AMEND,), 409, None, UNKNOWN),
    ("a companion that is too large to be written over stays as it is", (Operation.AMEND,), 413, None, UNKNOWN),
    ("a resource that is locked", (*READS, *WRITES), 423, None, UNKNOWN),
    ("a local store whose disk is full", (*READS, *WRITES), 507, None, UNKNOWN),
    ("a container that is being created will be there", (Operation.OPEN, *READS, *WRITES), 404, 1013, UNKNOWN),
    ("a status nobody has heard of", (*READS, *WRITES), 418, None, UNKNOWN),
]

REFUSALS: list[tuple[str, tuple[Operation, ...], int, int | None, type[Exception], str]] = [
    ("a full partition", EVERYTHING, 403, 1014, ConfigurationError, "20 GB"),
    ("a role or a network that is missing", EVERYTHING, 403, None, ConfigurationError, "Data Contributor"),
    ("a key that is wrong", EVERYTHING, 401, None, ConfigurationError, "account key"),
    ("a container that is missing", EVERYTHING, 404, 1003, ConfigurationError, "container"),
    ("a database that is missing", (Operation.OPEN,), 404, 0, ConfigurationError, "database"),
    ("a customer-managed key that was revoked", EVERYTHING, 403, 4003, ConfigurationError, "customer-managed key"),
    ("a clock that is off", EVERYTHING, 403, None, ConfigurationError, "clock"),
    ("a key that may not write", EVERYTHING, 401, None, ConfigurationError, "read-only"),
    ("a partition key that is another", EVERYTHING, 400, 1001, ConfigurationError, "partition key"),
    ("a container that was created anew", EVERYTHING, 400, 1024, ConfigurationError, "restart"),
    ("a state that cannot be stored", COMMITS, 400, None, EntityRefused, "'ttl'"),
    (
        "a request that makes no sense",
        (Operation.OPEN, *READS, *LIBRARY_WRITES, Operation.PARK, Operation.AMEND, Operation.DELETE),
        400,
        None,
        ConfigurationError,
        "makes no sense",
    ),
    ("an entity that is too large", SAVES, 413, None, EntityTooLarge, "2 MB"),
    ("what is too large to be saved together", (Operation.COMMIT,), 413, None, EntityTooLarge, "saved together"),
    ("a request that is too large", (Operation.OPEN_REQUEST,), 413, None, InvalidMessage, "smaller"),
    ("a page that is too large", (Operation.PAGE,), 413, None, EntityTooLarge, "answers"),
    ("outputs that are too large", (Operation.STAGE,), 413, None, OutputTooLarge, "2 MB"),
    ("a message that is too large to be parked", (Operation.PARK,), 413, None, MalformedMessage, "by hand"),
]


@pytest.mark.parametrize(
    ("operation", "status", "substatus", "reply"),
    [
        pytest.param(operation, status, substatus, reply, id=f"{name}: {operation.name} {status}/{substatus}")
        for name, operations, status, substatus, reply in ANSWERS
        for operation in operations
    ],
)
def test_what_a_status_means(operation: Operation, status: int, substatus: int | None, reply: object) -> None:
    assert answer(refusal(status, substatus), operation) == reply


@pytest.mark.parametrize(
    ("operation", "status", "substatus", "error", "advice"),
    [
        pytest.param(operation, status, substatus, error, advice, id=f"{name}: {operation.name} {status}/{substatus}")
        for name, operations, status, substatus, error, advice in REFUSALS
        for operation in operations
    ],
)
def test_what_stays_until_somebody_acts_is_raised_and_says_what_to_do(
    operation: Operation, status: int, substatus: int | None, error: type[Exception], advice: str
) -> None:
    with pytest.raises(error, match=advice) as raised:
        answer(refusal(status, substatus), operation)
    assert SECRET not in str(raised.value)
    assert f"{status}/{substatus or 0}" in str(raised.value)
    assert raised.value.__cause__ is not None


def test_every_row_of_the_table_is_reached() -> None:
    asked = [
        *((operations, status, substatus) for _, operations, status, substatus, _ in ANSWERS),
        *((operations, status, substatus) for _, operations, status, substatus, _, _ in REFUSALS),
    ]
    reached = {
        id(_row(operation, status, substatus or 0))
        for operations, status, substatus in asked
        for operation in operations
    }
    assert not [row for row in TABLE if id(row) not in reached]


def _row(operation: Operation, status: int, substatus: int) -> Row | None:
    fitting = (row for row in TABLE if operation in row.operations and row.status == status)
    return next((row for row in fitting if row.substatus in (None, substatus)), None)
