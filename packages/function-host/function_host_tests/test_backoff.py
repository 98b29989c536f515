"""Pauses between polls and renewals follow the WebJobs SDK."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_host.backoff import PollingInterval, RenewalInterval


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def test_an_empty_queue_is_polled_ever_more_rarely_up_to_two_seconds() -> None:
    interval = PollingInterval(60.0, chance=middle)

    pauses = [interval.next(found=False) for _ in range(8)]

    assert pauses == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.9, 1.7, 2.0, 2.0])


def test_a_smaller_maximum_of_host_json_wins() -> None:
    interval = PollingInterval(0.25, chance=middle)

    assert [interval.next(found=False) for _ in range(4)] == pytest.approx([0.1, 0.2, 0.25, 0.25])


def test_a_message_resets_the_pause() -> None:
    interval = PollingInterval(60.0, chance=middle)
    for _ in range(8):
        interval.next(found=False)

    assert interval.next(found=True) == pytest.approx(0.1)
    assert interval.next(found=False) == pytest.approx(0.2)


def test_chance_spreads_the_increment_by_a_fifth() -> None:
    asked: list[tuple[float, float]] = []

    def note(low: float, high: float) -> float:
        asked.append((low, high))
        return high

    interval = PollingInterval(60.0, chance=note)
    pauses = [interval.next(found=False) for _ in range(3)]

    assert asked == [(0.8, 1.2)] * 2
    assert pauses == pytest.approx([0.1, 0.22, 0.34])


@given(st.lists(st.booleans(), max_size=30), st.floats(0.1, 100.0), st.randoms())
def test_no_pause_is_ever_shorter_than_a_tenth_or_longer_than_the_maximum(
    found: list[bool], maximum: float, chance: Random
) -> None:
    interval = PollingInterval(maximum, chance=chance.uniform)

    assert all(0.1 <= interval.next(found=each) <= max(0.1, min(maximum, 2.0)) for each in found)


def test_renewals_come_at_half_the_invisibility_and_speed_up_to_a_minute_while_they_fail() -> None:
    interval = RenewalInterval(600.0)

    assert interval.first() == 300.0
    assert [interval.next(succeeded=False) for _ in range(4)] == [150.0, 75.0, 60.0, 60.0]
    assert interval.next(succeeded=True) == 300.0


def test_a_short_invisibility_is_renewed_before_it_ends_even_after_a_failure() -> None:
    interval = RenewalInterval(2.0)

    assert interval.first() + interval.next(succeeded=False) < 2.0
