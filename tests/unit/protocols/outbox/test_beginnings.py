"""The time at which a channel began, as its id says: whether it can be right."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce.errors import ForgottenChannel, MessageFromTheFuture
from exactlyonce.protocols.outbox.forgotten import require_time
from exactlyonce.records.sequences import milliseconds
from exactlyonce.values.lifetimes import AHEAD

NOW = datetime(2026, 1, 31, tzinfo=timezone.utc)
AGE = timedelta(days=10)


def require(age: timedelta, forget_after: timedelta | None = AGE) -> None:
    channel = f"{milliseconds(NOW - age):012x}c1"
    require_time(channel, forget_after, NOW, "Message m")


@pytest.mark.parametrize("age", [timedelta(days=3_000), timedelta(days=-3_000)])
def test_no_time_is_wrong_where_nothing_is_forgotten(age: timedelta) -> None:
    require(age, None)


@pytest.mark.parametrize("age", [-AHEAD, timedelta(0), AGE])
def test_a_time_is_taken_up_to_a_day_ahead_and_the_age_behind(age: timedelta) -> None:
    require(age)


def test_a_later_time_is_an_error_of_a_clock() -> None:
    with pytest.raises(MessageFromTheFuture, match="1 day, 0:00:01 ahead"):
        require(-AHEAD - timedelta(seconds=1))


def test_an_earlier_time_may_be_of_a_channel_that_was_forgotten() -> None:
    with pytest.raises(ForgottenChannel, match="began 10 days, 0:00:01 ago"):
        require(AGE + timedelta(seconds=1))
