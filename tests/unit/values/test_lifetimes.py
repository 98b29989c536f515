"""Who may still be judged, what may already be gone, and that nobody is judged by what is gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as draw

from exactlyonce import ConfigurationError
from exactlyonce.errors import MessageFromTheFuture, TooOldToJudge, UndatedMessage
from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, SETTLING_IN, Lifetimes, Retention

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def days(number: float) -> timedelta:
    return timedelta(days=number)


class TestRefusals:
    def test_a_message_is_judged_up_to_a_day_and_the_tolerance_before_the_retention_ends(self) -> None:
        oldest = NOW - (days(29) - CLOCK_TOLERANCE)
        assert Lifetimes().refusal(oldest, NOW) is None
        refused = Lifetimes().refusal(oldest - SECOND, NOW)
        assert isinstance(refused, TooOldToJudge)
        assert str(refused).startswith(f"It came about 28 days, 23:55:01 ago, at {(oldest - SECOND).isoformat()}.")

    def test_a_senders_clock_may_be_a_day_ahead_and_no_more(self) -> None:
        assert Lifetimes().refusal(NOW + DAY, NOW) is None
        refused = Lifetimes().refusal(NOW + DAY + SECOND, NOW)
        assert isinstance(refused, MessageFromTheFuture)
        assert "Set the clock of its sender." in str(refused)
        assert isinstance(Lifetimes().refusal(None, NOW), UndatedMessage)

    def test_a_message_within_the_send_limit_is_still_judged_after_its_queue_and_a_poison_queue(self) -> None:
        lifetimes = Lifetimes(Retention(days(20)), delivery_limit=days(4))
        oldest_sent = NOW - lifetimes.send_limit(NOW)
        assert lifetimes.refusal(oldest_sent, NOW + days(8)) is None
        assert isinstance(lifetimes.refusal(oldest_sent, NOW + days(8) + SECOND), TooOldToJudge)

    def test_a_retention_that_leaves_no_time_to_send_anything_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="Make it longer than 15 days, 0:05:00"):
            Lifetimes(Retention(days(15) + CLOCK_TOLERANCE))
        assert Lifetimes(Retention(days(15) + CLOCK_TOLERANCE + SECOND)).send_limit(NOW) == SECOND


class TestChanges:
    def test_a_shorter_one_is_for_those_who_judge_at_once_and_for_those_who_delete_a_day_later(self) -> None:
        shorter = Retention(days(30)).changed_to(days(20), NOW)
        assert (shorter.judged(NOW), shorter.kept(NOW)) == (days(20), days(30))
        assert (shorter.judged(NOW + DAY), shorter.kept(NOW + DAY)) == (days(20), days(20))
        assert shorter.settled(NOW + DAY)
        assert not shorter.settled(NOW + DAY - SECOND)

    def test_a_longer_one_is_for_those_who_delete_at_once_and_for_those_who_judge_once_all_is_kept_by_it(self) -> None:
        longer = Retention(days(20)).changed_to(days(30), NOW)
        assert (longer.judged(NOW), longer.kept(NOW)) == (days(20), days(30))
        assert longer.judged(NOW + days(21)) == days(20)
        assert longer.judged(NOW + days(25)) == days(24)
        assert not longer.settled(NOW + days(31) - SECOND)
        assert longer.judged(NOW + days(31)) == longer.kept(NOW + days(31)) == days(30)

    def test_a_change_waits_for_the_one_before(self) -> None:
        changing = Retention(days(30)).changed_to(days(20), NOW)
        with pytest.raises(
            ConfigurationError, match=r"from 30 days, 0:00:00 to 20 days, 0:00:00\. Wait until 2026-06-02"
        ):
            changing.changed_to(days(40), NOW + DAY - SECOND)
        changing = changing.changed_to(days(40), NOW + DAY)
        assert changing.previous == days(20)
        settled = NOW + days(42)
        with pytest.raises(
            ConfigurationError, match=rf"to 40 days, 0:00:00\. Wait until {re.escape(settled.isoformat())}"
        ):
            changing.changed_to(days(20), settled - SECOND)
        assert changing.changed_to(days(20), settled).previous == days(40)
        assert Retention().changed_to(days(30), NOW) == Retention()


@dataclass(frozen=True)
class History:
    """A message, and how the retention changed meanwhile.

    Attributes:
        first: the retention at first.
        changes: when it was changed, and to what.
        committed: when the message was processed first.
        ahead: how far its time is ahead of that.
        deleted: when clean-up takes its records, if they are old enough.
        judged: when a late copy comes.
        lag: for how long the judge has not looked at what is in force.
        running: for how long the job has not, when it deletes.
    """

    first: timedelta
    changes: list[tuple[datetime, timedelta]]
    committed: datetime
    ahead: timedelta
    deleted: datetime
    judged: datetime
    lag: timedelta
    running: timedelta

    @property
    def known(self) -> Callable[[datetime], Retention]:
        """What is in force at a moment."""
        history = [(NOW - days(1_000), Retention(self.first))]
        for at, new in sorted(self.changes):
            latest = history[-1][1]
            if latest.settled(at):
                history.append((at, latest.changed_to(new, at)))
        return lambda moment: next(item for since, item in reversed(history) if since <= moment)


@draw.composite
def histories(any: draw.DrawFn) -> History:
    """Histories near the edges: a copy that comes about when the message's records go."""
    hours = any(draw.lists(draw.integers(0, 24 * 90), max_size=3))
    first, others = any(retentions), [any(retentions) for _ in hours]
    changes = [(NOW + timedelta(hours=at), new) for at, new in zip(hours, others, strict=True)]
    committed = NOW + timedelta(hours=any(draw.integers(-24 * 60, 24 * 60)))
    near = any(draw.sampled_from([first, *others]))
    deleted = committed + near + any(draw.sampled_from([SECOND, timedelta(hours=1), DAY, days(3)]))
    lags = draw.integers(0, 23).map(lambda hours: timedelta(hours=hours))
    ahead = any(draw.sampled_from([AHEAD, AHEAD - timedelta(hours=1), timedelta(0), -days(3)]))
    return History(first, changes, committed, ahead, deleted, deleted + any(lags), any(lags), any(lags))


retentions = draw.integers(4, 40).map(days)


@given(histories())
def test_nobody_is_judged_by_what_may_be_gone(history: History) -> None:
    """Whatever the retention becomes, however late a judge hears of it and however long a job goes on by what it read first:
    a message whose record went before it was judged is refused."""
    job, judge = (history.known(at) for at in (history.deleted - history.running, history.judged - history.lag))
    gone = history.deleted - history.committed > job.kept(history.deleted - history.running)
    time = history.committed + history.ahead
    taken = Lifetimes(judge, timedelta(hours=1)).refusal(time, history.judged) is None
    assert not (gone and taken)


@given(
    previous=draw.integers(4, 40),
    current=draw.integers(4, 40),
    since=draw.integers(-60 * 24, 60 * 24),
    ahead=draw.sampled_from([0, 1, 24]),
    stayed=draw.integers(0, 40 * 24),
    older=draw.integers(0, 3 * 24),
    lag=draw.integers(0, 23),
    arrives=draw.integers(0, 70 * 24),
    by_job=draw.booleans(),
)
def test_a_message_that_is_judged_was_not_processed_unless_its_mark_or_its_page_is_there(
    *,
    previous: int,
    current: int,
    since: int,
    ahead: int,
    stayed: int,
    older: int,
    lag: int,
    arrives: int,
    by_job: bool,
) -> None:
    """The retention is changed at `NOW`. A message came about at `since`, up to a day ahead of its processing. Its mark stays
    in the ledger for a while, then leaves in a page with a newer one, by a process that knows what was in force a while before.
    The page goes by the time to live that it got then; or a job deletes it, by what is in force."""
    changed = Retention(days(previous)).changed_to(days(current), NOW)

    def known(at: datetime) -> Retention:
        """What is in force, as somebody knows it who has not looked for a while."""
        return changed if at - timedelta(hours=lag) >= NOW else Retention(days(previous))

    time = NOW + timedelta(hours=since)
    committed = time - timedelta(hours=ahead)
    cut, until = committed + timedelta(hours=stayed), time + timedelta(hours=older)
    arrival = time + timedelta(hours=arrives)
    in_ledger = arrival <= cut and arrival - time <= known(arrival).kept(arrival)
    by_store = max(until + known(cut).kept(cut) + DAY, cut + DAY)
    expired_before = cut - time > known(cut).kept(cut)  # Its mark went with age, and was in no page.
    deleted = arrival - until > known(arrival).kept(arrival) if by_job else arrival > by_store
    there = in_ledger or (arrival > cut and not expired_before and not deleted)
    taken = Lifetimes(known(arrival), timedelta(hours=1)).refusal(time, arrival) is None
    assert there or not taken


def test_all_that_may_lag_ends_while_a_change_settles_in() -> None:
    assert timedelta(hours=23) < SETTLING_IN
