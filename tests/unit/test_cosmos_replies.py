"""Each row of the table from what the SDK raises to what a strategy is told, and everything that has no row."""

from __future__ import annotations

import asyncio
import logging

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosClientTimeoutError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from exactlyonce.effects import BEHIND, UNKNOWN, Conflict
from exactlyonce.errors import ConfigurationError, EntityTooLarge, MalformedMessage, OutputTooLarge
from exactlyonce.stores.cosmos_replies import (
    FAILURES,
    TABLE,
    Absent,
    Meaning,
    Operation,
    Row,
    after_query,
    after_read,
    after_write,
    answered_at,
    meaning_of,
)
from exactlyonce.stores.port import Busy

SECRET = "what stands in a document"
TOKEN = "0:-1#913"
HEADERS = {"x-ms-session-token": TOKEN, "x-ms-retry-after-ms": "1500"}

READS = (Operation.READ, Operation.QUERY)
SAVES = (Operation.CREATE, Operation.REPLACE)
LIBRARY_WRITES = (Operation.STAGE, Operation.RECORD)
BESIDE = (Operation.COMMIT, Operation.AMEND)
WRITES = (*SAVES, *LIBRARY_WRITES, Operation.PARK, *BESIDE, Operation.DELETE)
EVERYTHING = tuple(Operation)

_CLASSES: dict[int, type[CosmosHttpResponseError]] = {
    404: CosmosResourceNotFoundError,
    409: CosmosResourceExistsError,
    412: CosmosAccessConditionFailedError,
}


def refusal(
    status: int, substatus: int | None = None, headers: dict[str, str] | None = None
) -> CosmosHttpResponseError:
    """What the SDK raises for a reply of the service."""
    error = _CLASSES.get(status, CosmosHttpResponseError)(status_code=status, message=SECRET)
    error.sub_status = substatus
    error.headers = HEADERS if headers is None else headers
    return error


def batch_refusal(status: int, headers: dict[str, str] | None = None) -> CosmosBatchOperationError:
    """What the SDK raises for a batch one operation of which failed."""
    return CosmosBatchOperationError(  # type: ignore[no-untyped-call]
        error_index=0,
        headers=HEADERS if headers is None else headers,
        status_code=status,
        message=SECRET,
        operation_responses=[],
    )


def answer(error: Exception, operation: Operation) -> object:
    """The reply for an operation, whichever function is responsible."""
    if operation is Operation.READ:
        return after_read(error)
    if operation is Operation.QUERY:
        return after_query(error)
    return after_write(error, operation)


ANSWERS: list[tuple[str, tuple[Operation, ...], int, int | None, object]] = [
    ("a replica behind the token is never an absence", READS, 404, 1002, BEHIND),
    ("a document that is not there is absent", (Operation.READ,), 404, None, Absent(TOKEN)),
    ("an absence may carry a substatus of zero", (Operation.READ,), 404, 0, Absent(TOKEN)),
    ("an id that is taken is a conflict", (*SAVES, Operation.COMMIT, Operation.STAGE), 409, None, Conflict(TOKEN)),
    ("an etag that is outdated is a conflict", (*SAVES, *BESIDE, Operation.DELETE), 412, None, Conflict(TOKEN)),
    (
        "a document to replace that is gone is a conflict",
        (Operation.REPLACE, *BESIDE, Operation.DELETE),
        404,
        0,
        Conflict(TOKEN),
    ),
    ("a throttled read is not now", READS, 429, 3200, Busy(1.5)),
    ("a read in the way of another request is not now", READS, 449, None, Busy(1.5)),
    ("a read from a partition that moves is not now", READS, 410, 1007, Busy(1.5)),
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
    ("an upsert has nothing to conflict with", (Operation.RECORD, Operation.PARK), 409, None, UNKNOWN),
    ("a companion that is written over keeps its id", (Operation.AMEND,), 409, None, UNKNOWN),
    ("a companion that is too large to be written over stays as it is", (Operation.AMEND,), 413, None, UNKNOWN),
    ("a status nobody has heard of", (*READS, *WRITES), 418, None, UNKNOWN),
]

REFUSALS: list[tuple[str, tuple[Operation, ...], int, int | None, type[Exception], str]] = [
    ("a full partition", EVERYTHING, 403, 1014, ConfigurationError, "20 GB"),
    ("a role or a network that is missing", EVERYTHING, 403, None, ConfigurationError, "Data Contributor"),
    ("a key that is wrong", EVERYTHING, 401, None, ConfigurationError, "account key"),
    ("a container that is missing", EVERYTHING, 404, 1003, ConfigurationError, "container"),
    ("a database that is missing", (Operation.OPEN,), 404, 0, ConfigurationError, "database"),
    ("a request that makes no sense", EVERYTHING, 400, 1001, ConfigurationError, "partition key"),
    ("an entity that is too large", SAVES, 413, None, EntityTooLarge, "2 MB"),
    ("what is too large to be saved together", (Operation.COMMIT,), 413, None, EntityTooLarge, "saved together"),
    ("outputs that are too large", LIBRARY_WRITES, 413, None, OutputTooLarge, "2 MB"),
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


@pytest.mark.parametrize(
    "error",
    [
        AzureError("?"),
        HttpResponseError("?"),
        ServiceRequestError("?"),
        ServiceResponseError("?"),
        ServiceResponseTimeoutError("?"),
        IncompleteReadError("?"),
        DecodeError("?"),
        ClientAuthenticationError("?"),
        CosmosClientTimeoutError(),  # type: ignore[no-untyped-call]
        asyncio.TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("operation", EVERYTHING, ids=lambda operation: operation.name)
def test_what_has_no_status_of_the_service_is_unknown(error: Exception, operation: Operation) -> None:
    assert isinstance(error, FAILURES)
    assert answer(error, operation) is UNKNOWN


def test_a_status_of_somebody_else_is_not_the_services() -> None:
    """A cut-off body carries a status of success, and a token refused by Entra ID carries Entra's."""
    for error in (IncompleteReadError("?"), ClientAuthenticationError("?")):
        for status in (200, 400, 401, 404, 409, 412):
            error.status_code = status
            for operation in EVERYTHING:
                assert meaning_of(error, operation) is Meaning.UNKNOWN


def test_a_cancelled_request_has_no_outcome() -> None:
    assert not issubclass(asyncio.CancelledError, FAILURES)


@pytest.mark.parametrize(
    ("operation", "status", "reply"),
    [
        (Operation.STAGE, 409, Conflict(TOKEN)),
        (Operation.RECORD, 409, UNKNOWN),
        (Operation.DELETE, 404, Conflict(TOKEN)),
        (Operation.DELETE, 412, Conflict(TOKEN)),
        (Operation.COMMIT, 404, Conflict(TOKEN)),
        (Operation.COMMIT, 409, Conflict(TOKEN)),
        (Operation.COMMIT, 412, Conflict(TOKEN)),
        (Operation.COMMIT, 449, UNKNOWN),
        (Operation.AMEND, 404, Conflict(TOKEN)),
        (Operation.AMEND, 412, Conflict(TOKEN)),
        (Operation.STAGE, 429, UNKNOWN),
        (Operation.RECORD, 449, UNKNOWN),
    ],
    ids=str,
)
def test_a_batch_means_what_the_operation_that_failed_means(operation: Operation, status: int, reply: object) -> None:
    assert after_write(batch_refusal(status), operation) == reply


def test_a_batch_that_is_too_large_as_a_whole_is_refused_by_the_service_itself() -> None:
    with pytest.raises(OutputTooLarge):
        after_write(refusal(413), Operation.STAGE)
    with pytest.raises(OutputTooLarge):
        after_write(batch_refusal(413), Operation.STAGE)
    with pytest.raises(EntityTooLarge):
        after_write(refusal(413), Operation.COMMIT)


def test_replies_without_headers_have_no_token_and_no_time_to_wait() -> None:
    assert after_write(refusal(412, headers={}), Operation.REPLACE) == Conflict(None)
    assert after_write(batch_refusal(409, headers={}), Operation.STAGE) == Conflict(None)
    assert after_read(refusal(404, headers={})) == Absent(None)
    assert after_read(refusal(429, headers={})) == Busy(None)


@pytest.mark.parametrize(
    "error", [refusal(503), ServiceRequestError(SECRET), batch_refusal(500)], ids=lambda error: type(error).__name__
)
def test_unknown_outcomes_are_logged_by_class_and_status_and_never_with_their_text(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="exactlyonce"):
        after_write(error, Operation.REPLACE)
    assert type(error).__name__ in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("status", [404, 409, 412])
def test_ordinary_outcomes_are_not_logged(status: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="exactlyonce"):
        after_write(refusal(status), Operation.REPLACE)
    assert not caplog.records


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:01:40 GMT", 100.0),
        ("Thu, 01 Jan 1970 00:01:40 -0000", None),
        ("not a date", None),
        ("", None),
        (None, None),
    ],
)
def test_the_service_says_when_it_answered_or_nobody_does(date: str | None, seconds: float | None) -> None:
    assert answered_at({} if date is None else {"Date": date}) == seconds
