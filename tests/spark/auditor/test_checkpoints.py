"""Checkpoints: the newest complete one counts, of nothing else than what is audited, and what is too old goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.checkpoints import MOST_REMEMBERED, OPEN, Checkpoint, Checkpoints, Subject
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.contents import Mode
from spark_jobs.spark.folder import Folder
from spark_jobs.transforms.facts import SEEN
from tests.spark.application import beginning

JOB = Job.read(
    {
        "database": "d",
        "entities": [{"type": "range", "container": "games", "protocol": "outbox"}],
    }
)
SUBJECT = Subject.of(JOB, Account("https://a.example/"))
NOW = 1_800_000_000
DAY = 86_400


@pytest.fixture
def checkpoints(spark: SparkSession, tmp_path: Path) -> Checkpoints:
    return Checkpoints(spark, Folder(spark, str(tmp_path / "checkpoint")))


def after(last: Checkpoint | None, now: int, mode: Mode = "full", findings: int = 0) -> Checkpoint:
    """The checkpoint of an audit that began in this second."""
    return Checkpoint.after(last, SUBJECT, beginning(now), mode, findings)


def entities(checkpoints: Checkpoints, found: Checkpoint) -> set[str]:
    return {row["entity"] for row in checkpoints.open(found).collect()}


def test_one_audit_leaves_to_the_next_what_is_open_and_what_it_saw(
    spark: SparkSession, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    assert checkpoints.newest(SUBJECT) is None
    first = after(None, NOW)
    checkpoints.write(first, spark.createDataFrame([("a",)], OPEN), spark.createDataFrame([("a", 3, NOW)], SEEN))
    found = checkpoints.newest(SUBJECT)
    assert found is not None
    assert (found.number, found.position) == (1, NOW)
    assert entities(checkpoints, found) == {"a"}

    second = after(found, NOW + DAY)
    checkpoints.write(second, spark.createDataFrame([("b",)], OPEN), None)
    found = checkpoints.newest(SUBJECT)
    assert found is not None
    assert entities(checkpoints, found) == {"b"}
    seen = checkpoints.seen(found)
    assert seen is not None
    assert [tuple(row) for row in seen.collect()] == [("a", 3, NOW)]
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == [
        "2.json",
        "open-2.parquet",
        "seen-1.parquet",
    ]
    assert found.trend == [(NOW, "full", 0), (NOW + DAY, "full", 0)]
    late = after(found, NOW + 31 * DAY)
    assert late.seen == {}


def test_an_audit_that_is_stopped_leaves_the_checkpoint_as_it_was(
    spark: SparkSession, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    first = after(None, NOW)
    checkpoints.write(first, spark.createDataFrame([("a",)], OPEN), None)
    (tmp_path / "checkpoint" / "open-2.parquet").mkdir()
    (tmp_path / "checkpoint" / ".unfinished-1").write_text("{")
    found = checkpoints.newest(SUBJECT)
    assert found is not None
    assert found.number == 1
    checkpoints.write(after(found, NOW), spark.createDataFrame([], OPEN), None)
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == ["2.json", "open-2.parquet"]


def test_it_goes_back_by_the_longest_grace_so_that_nothing_is_passed_over() -> None:
    assert Checkpoint(SUBJECT, 1, NOW).since(JOB) == NOW - 3600 - 300


def test_it_tells_how_much_the_last_audits_found_and_no_more_of_them_than_a_chart_shows() -> None:
    last = None
    for number in range(MOST_REMEMBERED + 5):
        last = after(last, NOW + number, "incremental" if number else "full", number)
    assert last is not None
    assert last.trend[0] == (NOW + 5, "incremental", 5)
    assert last.trend[-1] == (NOW + MOST_REMEMBERED + 4, "incremental", MOST_REMEMBERED + 4)
    assert len(last.trend) == MOST_REMEMBERED


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(SUBJECT, account="b.example"), "the account 'a.example', not 'b.example'"),
        (replace(SUBJECT, database="e"), "the database 'd', not 'e'"),
        (replace(SUBJECT, places={**SUBJECT.places, "library": "l"}), "a job file in which library differ"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(
    spark: SparkSession, checkpoints: Checkpoints, other: Subject, words: str
) -> None:
    checkpoints.write(after(None, NOW), spark.createDataFrame([], OPEN), None)
    with pytest.raises(ConfigurationError, match=words):
        checkpoints.newest(other)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "damaged"), ("[]", "damaged"), ('{"format": 1}', "damaged"), ('{"format": 9}', "another version")],
)
def test_a_damaged_checkpoint_is_refused(checkpoints: Checkpoints, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "1.json").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        checkpoints.newest(SUBJECT)
