"""What is different for a client of Spark Connect. The tests of audit, clean-up and source run on it as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from demo.stack import create_containers
from exactlyonce import ConfigurationError, Outbox
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Account, Job
from spark_jobs.spark.folder import Folder
from spark_jobs.spark.frames import LITTLE, suited
from spark_jobs.spark.session import is_connect, parallelism, session
from spark_jobs.work import source_of
from tests.spark.application import own
from tests.spark.auditor.app import App, job

pytestmark = pytest.mark.connect

ROOT = Path(__file__).resolve().parents[3]


def test_a_session_that_is_there_is_taken_and_one_that_the_environment_names(spark: SparkSession) -> None:
    assert is_connect()
    taken = session("another")
    assert taken is spark
    assert taken.conf.get("spark.sql.session.timeZone") == "UTC"
    assert taken.conf.get("spark.sql.ansi.enabled") == "false"


def test_neither_the_jvm_nor_rdds_are_there(spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        _ = spark.sparkContext
    with pytest.raises(PySparkException):
        _ = spark.range(1).rdd


@pytest.mark.parametrize("configured", ["7", None])
def test_as_many_tasks_run_at_a_time_as_the_server_is_told_or_has_cores(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, configured: str | None
) -> None:
    get = type(spark.conf).get
    others = {"spark.default.parallelism": configured}
    monkeypatch.setattr(
        type(spark.conf), "get", lambda conf, name, *rest: others[name] if name in others else get(conf, name, *rest)
    )
    assert parallelism(spark) == int(configured or 2)


def test_a_setting_that_nobody_may_set_is_left_as_it_is(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LITTLE, "spark.sql.warehouse.dir", "elsewhere")  # It is static.
    before = spark.conf.get("spark.sql.warehouse.dir")
    with suited(spark, 1):
        assert spark.conf.get("spark.sql.warehouse.dir") == before
        assert spark.conf.get("spark.sql.shuffle.partitions") == "1"


def test_the_connector_is_refused(spark: SparkSession) -> None:
    entity = {"type": "a", "container": "a", "partition_key": ["/a"], "protocol": "outbox"}
    file = {"database": "d", "entities": [entity], "source": "connector"}
    with pytest.raises(ConfigurationError, match=r'a session of Spark Connect, .* say "feed_ranges"'):
        source_of(spark, Job.read(file), Account("https://a.example.org/", "k"))


def test_results_go_to_folders_of_the_client(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path / "a"))
    folder.write("text", "")
    assert (tmp_path / "a" / "text").exists()
    with pytest.raises(ConfigurationError, match="no folder that a client of Spark Connect can write to"):
        Folder(spark, "abfss://reports@a.dfs.core.windows.net/audit")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit", "Nothing was found in a full audit of 0 entities"),
        ("cleanup", "dry run of connect-cleanup: 0 documents would go"),
    ],
    ids=["audit", "cleanup"],
)
def test_a_command_is_a_client_of_the_server_that_its_environment_names(
    spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path, command: str, said: str
) -> None:
    database = f"connect-{command}"
    create_containers(cosmos, database)
    written = job(App(cosmos, database, Outbox()), database, endpoint=cosmos.endpoint)
    own(cosmos, written)
    (tmp_path / "job.json").write_text(written.text())
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            f"spark_jobs.{command}",
            "--config",
            str(tmp_path / "job.json"),
            "--out",
            str(tmp_path / "out"),
        ],
        cwd=ROOT,
        env={**os.environ, "SPARK_REMOTE": "sc://localhost", "COSMOS__accountKey": cosmos.key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, said in ended.stdout) == (0, True), ended.stdout + ended.stderr
    assert (tmp_path / "out" / "summary.json").exists()
