"""Checkpoints: the newest complete one counts, of nothing else than what is audited, and what is too old goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.checkpoints import OPEN, Checkpoint, Checkpoints, Subject
from spark_jobs.job.configuration import Account, Job
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


def entities(checkpoints: Checkpoints, found: Checkpoint) -> set[str]:
    return {row["entity"] for row in checkpoints.open(found).collect()}


def test_one_audit_leaves_to_the_next_what_is_open_and_what_it_saw(
    spark: SparkSession, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    assert checkpoints.newest(SUBJECT) is None
    first = Checkpoint.after(None, SUBJECT, beginning(NOW))
    checkpoints.write(first, spark.createDataFrame([("a",)], OPEN), spark.createDataFrame([("a", 3, NOW)], SEEN))
    found = checkpoints.newest(SUBJECT)
    assert found is not None
    assert (found.number, found.position) == (1, NOW)
    assert entities(checkpoints, found) == {"a"}

    second = Checkpoint.after(found, SUBJECT, beginning(NOW + DAY))
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
    late = Checkpoint.after(found, SUBJECT, beginning(NOW + 31 * DAY))
    assert late.seen == {}


def test_an_audit_that_is_stopped_leaves_the_checkpoint_as_it_was(
    spark: SparkSession, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    first = Checkpoint.after(None, SUBJECT, beginning(NOW))
    checkpoints.write(first, spark.createDataFrame([("a",)], OPEN), None)
    (tmp_path / "checkpoint" / "open-2.parquet").mkdir()
    (tmp_path / "checkpoint" / ".unfinished-1").write_text("{")
    found = checkpoints.newest(SUBJECT)
    assert found is not None
    assert found.number == 1
    checkpoints.write(Checkpoint.after(found, SUBJECT, beginning(NOW)), spark.createDataFrame([], OPEN), None)
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == ["2.json", "open-2.parquet"]


def test_it_goes_back_by_the_longest_grace_so_that_nothing_is_passed_over() -> None:
    assert Checkpoint(SUBJECT, 1, NOW).since(JOB) == NOW - 3600 - 300


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
    checkpoints.write(Checkpoint.after(None, SUBJECT, beginning(NOW)), spark.createDataFrame([], OPEN), None)
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
