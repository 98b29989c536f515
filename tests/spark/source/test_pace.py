"""Repetition with a cap, and request units per second; on a clock of the test's own."""

from __future__ import annotations

import pytest
from azure.core.exceptions import AzureError, IncompleteReadError, ServiceRequestError, ServiceResponseError
from azure.cosmos.exceptions import CosmosHttpResponseError

from spark_jobs.job.exits import AccountError
from spark_jobs.source.pace import Allowance, Patience, insist, is_refused_for_now, is_without_answer
from tests.spark.source.conftest import Time, answered

PATIENCE = Patience(sends=4, first=1.0, longest=3.0)


class Request:
    """A request that fails in these ways before it succeeds."""

    def __init__(self, *errors: AzureError) -> None:
        self.errors = list(errors)
        self.sends = 0

    def __call__(self) -> str:
        self.sends += 1
        if self.errors:
            raise self.errors.pop(0)
        return "reply"


def test_an_answer_is_given_back_at_once(time: Time) -> None:
    assert insist(Request(), "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait) == "reply"
    assert time.waits == []


def test_waits_double_up_to_the_longest(time: Time) -> None:
    request = Request(answered(429), answered(449), answered(410))
    assert insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait) == "reply"
    assert time.waits == [1.0, 2.0, 3.0]


def test_the_service_may_ask_for_a_longer_wait(time: Time) -> None:
    request = Request(answered(429, "7500"), answered(429, "10"))
    insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
    assert time.waits == [7.5, 2.0]


def test_patience_has_an_end_that_names_the_resource(time: Time) -> None:
    request = Request(*(answered(429) for _ in range(9)))
    with pytest.raises(AccountError, match="answered 429/0 when asked for the container 'games': run the job again"):
        insist(request, "the container 'games'", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
    assert request.sends == 4


def test_an_error_that_does_not_pass_is_raised_as_it_is(time: Time) -> None:
    request = Request(answered(412))
    with pytest.raises(CosmosHttpResponseError):
        insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
    assert request.sends == 1


@pytest.mark.parametrize(
    ("error", "for_now", "unanswered"),
    [
        *((answered(status), True, False) for status in (410, 429, 449)),
        *((answered(status), False, True) for status in (408, 503)),
        (ServiceRequestError("refused"), False, True),
        (ServiceResponseError("timed out"), False, True),
        (IncompleteReadError("cut off"), False, True),
        *((answered(status), False, False) for status in (401, 404, 412)),
    ],
)
def test_an_error_is_refused_for_now_or_without_an_answer_or_stays(
    error: AzureError, for_now: bool, unanswered: bool
) -> None:
    assert (is_refused_for_now(error), is_without_answer(error)) == (for_now, unanswered)


def test_spent_units_are_waited_for_before_the_next_request(time: Time) -> None:
    allowance = Allowance(10.0, time, time.wait)
    for units in (5.0, 20.0, 5.0):
        allowance.wait()
        allowance.spend(units)
    assert time.waits == [0.5, 2.0]


def test_over_a_long_time_the_rate_is_kept(time: Time) -> None:
    allowance = Allowance(400.0, time, time.wait)
    for _ in range(1000):
        allowance.wait()
        allowance.spend(550.0)
    assert 1000 * 550.0 / (time.now - 100.0 + 550.0 / 400.0) == pytest.approx(400.0)


def test_a_pause_is_no_credit(time: Time) -> None:
    allowance = Allowance(10.0, time, time.wait)
    time.now += 3600
    allowance.spend(10.0)
    allowance.wait()
    assert time.waits == [1.0]


def test_without_a_rate_nobody_waits(time: Time) -> None:
    allowance = Allowance(None, time, time.wait)
    allowance.spend(1e9)
    allowance.wait()
    assert time.waits == []
