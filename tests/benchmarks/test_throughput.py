"""`benchmarks.throughput` measures the load that docs/performance.md describes."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.contenders import contenders
from benchmarks.subjects import TIMED
from benchmarks.throughput import measure
from benchmarks.traffic import Load, Pace, messages


@pytest.mark.acceptance
async def test_the_store_was_asked_for_as_much_as_is_measured() -> None:
    hot = Load("hot", 64, 5)
    one = (await measure([(hot, (TIMED,))], 0.4, 1, games=20))[str(hot)][TIMED]
    assert one["request units"] > one["requests"] > 0
    assert one["CPU ms"] > 0
    assert one["conflicts"] == 0


def test_of_all_deliveries_a_tenth_are_copies_and_games_are_chosen_as_the_workload_says() -> None:
    contender = contenders()[0]
    for workload, most in (("uniform", 0.02), ("zipf", 0.25), ("hot", 1.0)):
        coming = messages(contender, workload, Random(1), {}, hot="hot-1", games=200)
        given = [next(coming) for _ in range(5_000)]
        games = [contender.entity.ref_of(item).id for item in given]
        busiest = max(set(games), key=games.count)
        assert 0.4 * most <= games.count(busiest) / len(games) <= most
        assert len(given) - len({item.id for item in given}) == pytest.approx(500, rel=0.2)


def test_how_long_messages_take_is_not_known_where_the_slow_ones_are_missing() -> None:
    assert (Pace(10.0, (), 5, 0.1).p50, Pace(10.0, (), 5, 0.1).p99) == (None, None)
    pace = Pace(10.0, tuple(number / 1000 for number in range(1, 101)), 100, 0.1)
    assert pace.p50 == pytest.approx(50.5)
    assert pace.p99 == pytest.approx(100, abs=1)
