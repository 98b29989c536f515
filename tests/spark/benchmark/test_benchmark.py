"""The benchmark of the audit: what it measures is what it says, and what is too slow is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks import spark as benchmark

GOOD: dict[str, Any] = {
    "audits": {
        "10000": {"full": 20.0, "incremental": 9.0},
        "100000": {"full": 60.0, "incremental": 10.0},
        "1000000": {"full": 400.0, "incremental": 30.0},
    },
}


def test_figures_that_are_as_they_should_be_pass() -> None:
    assert list(benchmark.too_slow(GOOD)) == []


@pytest.mark.parametrize(
    ("records", "mode", "seconds", "words"),
    [
        ("1000000", "full", 700.0, "1,000,000 records take 700.0 s"),
        ("1000000", "incremental", 40.0, "After one change in a hundred, 1,000,000 records take 40.0 of 400.0 s"),
    ],
)
def test_what_is_too_slow_is_reported(records: str, mode: str, seconds: float, words: str) -> None:
    slow = {**GOOD, "audits": {**GOOD["audits"], records: {**GOOD["audits"][records], mode: seconds}}}
    (said,) = benchmark.too_slow(slow)
    assert said.startswith(words)


@pytest.mark.timeout(600)
def test_synthetic_games_are_audited_whole_and_then_what_changed(spark: SparkSession, tmp_path: Path) -> None:
    seconds = benchmark.measure(spark, tmp_path, 1_000)
    assert set(seconds) == {"full", "incremental"}
