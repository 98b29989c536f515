"""The Spark session of local runs, and Java, which it needs."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import JavaGateway
from pyspark.sql import SparkSession

from exactlyonce import ConfigurationError
from spark_jobs.spark.session import collector, parallelism, require_java, session
from tests.spark.conftest import answers


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """The folder of a Java that says what a test makes it say."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def test_workers_import_from_no_zip_file_and_collect_none_of_what_they_imported(spark: SparkSession) -> None:
    def seen(_: object) -> tuple[list[str], int]:
        return [place for place in sys.path if place.endswith(".zip")], gc.get_freeze_count()

    ((zips, frozen),) = spark.sparkContext.parallelize([0], 1).map(seen).collect()
    assert zips == []
    assert frozen > 50_000


def saying(home: Path, script: str) -> dict[str, str]:
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(home)}


def test_local_sessions_are_small_quiet_and_in_utc(spark: SparkSession) -> None:
    assert spark.version.startswith("3.5.")
    assert spark.sparkContext.master == "local[2,2]"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        ("-Xmx1g -XX:+UseSerialGC", {}),
        ("", {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}),
        ("", {"JDK_JAVA_OPTIONS": "-XX:+UseZGC"}),
    ],
)
def test_a_collector_of_garbage_that_was_chosen_is_left(given: str, environment: dict[str, str]) -> None:
    assert collector(given, environment) == ""
    assert collector("-Xmx1g", {"JAVA_TOOL_OPTIONS": "-Xms1g"}) == "-XX:+UseParallelGC"


def test_a_session_that_is_there_is_taken(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Athens")
    taken = session("another")
    assert taken.sparkContext is spark.sparkContext
    assert taken.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize("configured", ["7", None])
def test_as_many_tasks_run_at_a_time_as_spark_is_told_or_has_cores(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, configured: str | None
) -> None:
    monkeypatch.setattr(type(spark.conf), "get", lambda *_: configured)
    assert parallelism(spark) == int(configured or 2)


def test_without_java_the_advice_is_to_install_one() -> None:
    with pytest.raises(ConfigurationError, match=r"there is none on the PATH\. Install Java 17"):
        require_java({"PATH": ""})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, r"bin/java does not start\. Install Java 17"),
        ("exit 1", "does not start"),
        *(
            (
                f"echo 'openjdk version \"{version}\" 2026-01-01' >&2",
                f"Spark 3.5 needs Java 17; .* 'openjdk version \"{version}",
            )
            for version in ("1.8.0_412", "11.0.23", "25")
        ),
    ],
)
def test_a_java_that_does_not_start_or_is_another_one_is_named(java: Path, script: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        require_java({"JAVA_HOME": str(java)} if script is None else saying(java, script))


def test_the_first_number_of_a_version_counts(java: Path) -> None:
    assert require_java(saying(java, "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")) == 17


class Interrupted(BaseException):
    """What a signal raises. It is no `Exception`, after which Py4J closes the connection; nor are failures of pytest."""


@pytest.fixture
def another(spark: SparkSession) -> Iterator[JavaGateway]:
    """A second client of the same Java, which a test may leave out of step."""
    first: Any = spark.sparkContext._gateway
    there = first.gateway_parameters
    java = JavaParameters(address=there.address, port=there.port, auth_token=there.auth_token)
    opened = ClientServer(java_parameters=java, python_parameters=PythonParameters(port=0, eager_load=False))
    yield opened
    opened.close()


@pytest.mark.classic
def test_java_whose_call_was_interrupted_is_out_of_step_from_then_on(another: JavaGateway) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    assert answers(another)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(Interrupted) as held:  # As pytest holds the frames of a test that failed, and so the connection.
        another.jvm.java.lang.Thread.sleep(1_000)
    signal.signal(signal.SIGALRM, before)
    assert not answers(another)
    assert held.tb is not None


def test_java_that_has_ended_is_out_of_step_and_java_that_was_not_started_is_not() -> None:
    nobody = ClientServer(JavaParameters(port=1), PythonParameters(port=0, eager_load=False))
    assert not answers(nobody)
    assert answers(None)
