"""The benchmark of the audit: what it measures is what it says, and what is too slow is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks import spark as benchmark

GOOD: dict[str, Any] = {
    "audits": {
        "10000": {"full": 4.0, "incremental": 3.0},
        "100000": {"full": 9.0, "incremental": 3.0},
        "1000000": {"full": 35.0, "incremental": 4.0},
        "10000000": {"full": 350.0, "incremental": 30.0},
    },
}


def test_figures_that_are_as_they_should_be_pass() -> None:
    assert list(benchmark.too_slow(GOOD)) == []


@pytest.mark.parametrize(
    ("records", "mode", "seconds", "words"),
    [
        ("10000000", "full", 351.0, "10,000,000 records take 351.0 s"),
        ("10000000", "incremental", 35.0, "After one change in a hundred, 10,000,000 records take 35.0 of 350.0 s"),
        ("1000000", "full", 36.0, "The full audit of 1,000,000 records takes 36.0 s"),
        ("1000000", "incremental", 4.1, "The incremental audit of 1,000,000 records takes 4.1 s"),
    ],
)
def test_an_audit_that_is_too_slow_is_reported(records: str, mode: str, seconds: float, words: str) -> None:
    slow = {**GOOD, "audits": {**GOOD["audits"], records: {**GOOD["audits"][records], mode: seconds}}}
    (said,) = benchmark.too_slow(slow)
    assert said.startswith(words)


def test_synthetic_games_are_audited_whole_and_then_what_changed(spark: SparkSession, tmp_path: Path) -> None:
    seconds = benchmark.measure(spark, tmp_path, 1_000)
    assert set(seconds) == {"full", "incremental"}
