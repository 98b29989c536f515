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


class TestPatience:
    def test_an_answer_is_given_back_at_once(self, time: Time) -> None:
        assert insist(Request(), "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait) == "reply"
        assert time.waits == []

    def test_waits_double_up_to_the_longest(self, time: Time) -> None:
        request = Request(answered(429), answered(449), answered(410))
        assert insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait) == "reply"
        assert time.waits == [1.0, 2.0, 3.0]

    def test_the_service_may_ask_for_more(self, time: Time) -> None:
        request = Request(answered(429, "7500"), answered(429, "10"))
        insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
        assert time.waits == [7.5, 2.0]

    def test_it_has_an_end_that_names_what_was_asked_for(self, time: Time) -> None:
        request = Request(*(answered(429) for _ in range(9)))
        with pytest.raises(
            AccountError, match="answered 429/0 when asked for the container 'games': run the job again"
        ):
            insist(request, "the container 'games'", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
        assert request.sends == 4

    def test_what_does_not_pass_is_raised_as_it_is(self, time: Time) -> None:
        request = Request(answered(412))
        with pytest.raises(CosmosHttpResponseError):
            insist(request, "x", passes=is_refused_for_now, patience=PATIENCE, sleep=time.wait)
        assert request.sends == 1


class TestWhatAnErrorSays:
    @pytest.mark.parametrize("status", [410, 429, 449])
    def test_refused_for_now(self, status: int) -> None:
        assert is_refused_for_now(answered(status))
        assert not is_without_answer(answered(status))

    @pytest.mark.parametrize(
        "error",
        [
            answered(408),
            answered(503),
            ServiceRequestError("refused"),
            ServiceResponseError("timed out"),
            IncompleteReadError("cut off"),
        ],
    )
    def test_without_an_answer(self, error: AzureError) -> None:
        assert is_without_answer(error)
        assert not is_refused_for_now(error)

    @pytest.mark.parametrize("error", [answered(401), answered(412), answered(404)])
    def test_an_answer_that_stays(self, error: AzureError) -> None:
        assert not is_without_answer(error)
        assert not is_refused_for_now(error)


class TestAnAllowance:
    def test_what_was_spent_is_waited_for_before_the_next_request(self, time: Time) -> None:
        allowance = Allowance(10.0, time, time.wait)
        for units in (5.0, 20.0, 5.0):
            allowance.wait()
            allowance.spend(units)
        assert time.waits == [0.5, 2.0]

    def test_over_a_long_time_the_rate_is_kept(self, time: Time) -> None:
        allowance = Allowance(400.0, time, time.wait)
        for _ in range(1000):
            allowance.wait()
            allowance.spend(550.0)
        assert 1000 * 550.0 / (time.now - 100.0 + 550.0 / 400.0) == pytest.approx(400.0)

    def test_a_pause_is_no_credit(self, time: Time) -> None:
        allowance = Allowance(10.0, time, time.wait)
        time.now += 3600
        allowance.spend(10.0)
        allowance.wait()
        assert time.waits == [1.0]

    def test_without_a_rate_nobody_waits(self, time: Time) -> None:
        allowance = Allowance(None, time, time.wait)
        allowance.spend(1e9)
        allowance.wait()
        assert time.waits == []
