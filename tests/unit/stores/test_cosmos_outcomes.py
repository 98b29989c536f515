"""What has no row in the table of replies, what batches and headers add to them, and what is logged of them."""

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
from azure.cosmos.exceptions import CosmosClientTimeoutError

from exactlyonce.effects.effect import UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import ConfigurationError, EntityRefused, EntityTooLarge, HandlerError, OutputTooLarge
from exactlyonce.stores.cosmos.replies import (
    FAILURES,
    Absent,
    Meaning,
    Operation,
    Taken,
    after_read,
    after_write,
    answered_at,
    meaning_of,
)
from tests.unit.stores.refusing import SECRET, TOKEN, answer, batch_refusal, refusal

EVERYTHING = tuple(Operation)


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


@pytest.mark.parametrize("index", [0, 3])
def test_a_batch_says_which_of_its_operations_met_what_is_taken(index: int) -> None:
    assert after_write(batch_refusal(409, index=index), Operation.COMMIT) == Taken(TOKEN, index)


def test_a_taken_place_is_a_conflict_for_a_caller_that_asks_no_further() -> None:
    assert isinstance(Taken(TOKEN), Conflict)


@pytest.mark.parametrize("error", [EntityRefused, EntityTooLarge, OutputTooLarge])
def test_what_is_refused_for_what_a_handler_gave_is_no_trouble_of_the_environment(error: type[Exception]) -> None:
    """A batch parks such a message, so that it does not fail the others."""
    assert issubclass(error, HandlerError)


def test_a_refusal_names_the_partition_that_it_is_about() -> None:
    for operation, error in ((Operation.READ, refusal(401)), (Operation.COMMIT, batch_refusal(413))):
        with pytest.raises((ConfigurationError, EntityTooLarge), match=r" in partition 'g-1' of container games \("):
            meaning_of(error, operation, "partition 'g-1' of container games")


def test_a_batch_that_is_too_large_as_a_whole_is_refused_by_the_service_itself() -> None:
    with pytest.raises(OutputTooLarge):
        after_write(refusal(413), Operation.STAGE)
    with pytest.raises(OutputTooLarge):
        after_write(batch_refusal(413), Operation.STAGE)
    with pytest.raises(EntityTooLarge):
        after_write(refusal(413), Operation.COMMIT)


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
