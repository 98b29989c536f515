"""The reply that a strategy gets for what the SDK raises: each row of the table, and what has no row."""

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

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import (
    ConfigurationError,
    EntityRefused,
    EntityTooLarge,
    HandlerError,
    InvalidMessage,
    MalformedMessage,
    OutputTooLarge,
)
from exactlyonce.stores.cosmos.replies import (
    FAILURES,
    TABLE,
    Absent,
    Meaning,
    Operation,
    Row,
    Taken,
    after_query,
    after_read,
    after_write,
    answered_at,
    meaning_of,
)

SECRET = "what stands in a document"
TOKEN = "0:-1#913"
HEADERS = {"x-ms-session-token": TOKEN, "x-ms-retry-after-ms": "1500"}

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


def batch_refusal(status: int, headers: dict[str, str] | None = None, index: int = 0) -> CosmosBatchOperationError:
    """What the SDK raises for a batch one operation of which failed."""
    return CosmosBatchOperationError(  # type: ignore[no-untyped-call]
        error_index=index,
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
def test_a_status_is_a_reply(operation: Operation, status: int, substatus: int | None, reply: object) -> None:
    assert answer(refusal(status, substatus), operation) == reply


@pytest.mark.parametrize(
    ("operation", "status", "substatus", "error", "advice"),
    [
        pytest.param(operation, status, substatus, error, advice, id=f"{name}: {operation.name} {status}/{substatus}")
        for name, operations, status, substatus, error, advice in REFUSALS
        for operation in operations
    ],
)
def test_a_fault_that_stays_until_somebody_acts_is_raised_with_advice(
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


CUT_OFF = (ServiceResponseError, ServiceResponseTimeoutError, IncompleteReadError, DecodeError)
OTHERS = (AzureError, HttpResponseError, ServiceRequestError, ClientAuthenticationError)
TIMEOUTS = (CosmosClientTimeoutError(), asyncio.TimeoutError())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("error", [*(kind("?") for kind in (*CUT_OFF, *OTHERS)), *TIMEOUTS], ids=repr)
@pytest.mark.parametrize("operation", EVERYTHING, ids=lambda operation: operation.name)
def test_a_failure_without_a_status_of_the_service_is_unknown(error: Exception, operation: Operation) -> None:
    assert isinstance(error, FAILURES)
    assert answer(error, operation) is UNKNOWN


def test_a_status_of_somebody_else_is_not_the_services() -> None:
    """A cut-off body carries a status of success, and a token refused by Entra ID carries Entra's."""
    for error in (IncompleteReadError("?"), ClientAuthenticationError("?")):
        for status in (200, 400, 401, 404, 409, 412):
            error.status_code = status
            for operation in EVERYTHING:
                assert meaning_of(error, operation) is Meaning.UNKNOWN


@pytest.mark.parametrize(
    ("operation", "status", "reply"),
    [
        (Operation.STAGE, 409, Conflict(TOKEN)),
        (Operation.DELETE, 404, Conflict(TOKEN)),
        (Operation.DELETE, 412, Conflict(TOKEN)),
        (Operation.COMMIT, 404, Conflict(TOKEN)),
        (Operation.COMMIT, 409, Taken(TOKEN)),
        (Operation.COMMIT, 412, Conflict(TOKEN)),
        (Operation.COMMIT, 449, UNKNOWN),
        (Operation.AMEND, 404, Conflict(TOKEN)),
        (Operation.AMEND, 412, Conflict(TOKEN)),
        (Operation.STAGE, 429, UNKNOWN),
    ],
    ids=str,
)
def test_a_batch_means_what_the_operation_that_failed_means(operation: Operation, status: int, reply: object) -> None:
    assert after_write(batch_refusal(status), operation) == reply
    for index in (0, 3):
        assert after_write(batch_refusal(409, index=index), Operation.COMMIT) == Taken(TOKEN, index)


def test_classes_say_who_has_to_care() -> None:
    assert not issubclass(asyncio.CancelledError, FAILURES)  # A cancelled request has no outcome.
    assert issubclass(Taken, Conflict)  # For a caller that asks no further.
    for error in (EntityRefused, EntityTooLarge, OutputTooLarge):
        assert issubclass(error, HandlerError)  # A batch parks such a message, so that it does not fail the others.


def test_a_refusal_names_the_partition_that_it_is_about() -> None:
    for operation, error in ((Operation.READ, refusal(401)), (Operation.COMMIT, batch_refusal(413))):
        with pytest.raises((ConfigurationError, EntityTooLarge), match=r" in partition 'g-1' of container games \("):
            meaning_of(error, operation, "partition 'g-1' of container games")
    with pytest.raises(OutputTooLarge):
        after_write(batch_refusal(413), Operation.STAGE)


def test_replies_without_headers_have_no_token_and_no_time_to_wait() -> None:
    assert after_write(refusal(412, headers={}), Operation.REPLACE) == Conflict(None)
    assert after_write(refusal(409, headers={}), Operation.REPLACE) == Taken(None)
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
