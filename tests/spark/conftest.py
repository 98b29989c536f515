"""Fixtures of all Spark tests: one session and one local Cosmos per run, one database per test.

With SPARK_REMOTE in the environment (`make test-spark4`) the session is one of Spark Connect, on a server that this process
starts. Tests of what only classic Spark has are left out then, and else those of `connect`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from azure.cosmos import CosmosClient, DatabaseProxy
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from spark_jobs.job.configuration import Account
from spark_jobs.spark.frames import LITTLE
from spark_jobs.spark.session import local_session, session
from tests.spark.connector.double import load_into

PARTITIONS: Final = 3
"""Physical partitions of every container."""

BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn256m"
"""Java for minutes on few cores: to compile what it runs any better takes longer than the tests."""

REMOTE: Final = "SPARK_REMOTE" in os.environ
"""Whether these tests are clients of Spark Connect: a whole process is one, or uses classic Spark."""

_ROOT: Final = Path(__file__).resolve().parents[2]
_SERVER: Final = {
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "spark_jobs.daemon",
    "spark.ui.enabled": "false",
}

_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the socket of every `collect` to the garbage collector, and compares versions by distutils."""
    items[:] = [item for item in items if not item.get_closest_marker("classic" if REMOTE else "connect")]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:.*distutils.*:DeprecationWarning"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process, set for little data: its start takes seconds, so there is one."""
    made = remote_session() if REMOTE else local_session("tests", cores=2, attempts=2, java=BRIEF)
    for name, value in LITTLE.items():
        made.conf.set(name, value)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def in_step(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves Java dead, or a reply that nobody took, is the last of this process."""
    yield
    if not REMOTE and not answers(SparkContext._gateway):
        capture: Any = request.config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print(
                f"Java is out of step after {request.node.nodeid}, so this process ends.", file=sys.stderr, flush=True
            )
        os._exit(1)


def answers(java: JavaGateway | None) -> bool:
    """Whether Java, if it was started, replies to what it is asked now, and not to a call that was interrupted."""
    number = next(_numbers)
    try:
        return java is None or java.jvm.java.lang.Math.abs(-number) == number
    except (Py4JError, OSError):
        return False


def persistent(spark: SparkSession) -> set[int]:
    """Numbers of what classic Spark holds."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def remote_session() -> SparkSession:
    """A session of Spark Connect, as jobs get it, on a server that SPARK_REMOTE starts."""
    # Its workers run the interpreter of these tests, and find the jobs where these do.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), os.environ["PYTHONPATH"]])
    builder = SparkSession.builder
    for name, value in _SERVER.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It says that what it gave to the server cannot be set in a session.
        builder.getOrCreate()
    return session("tests")


@pytest.fixture(scope="session")
def connector_jar(spark: SparkSession) -> str:
    """The file name of the double of azure-cosmos-spark, which the session has from now on."""
    return load_into(spark).name


@pytest.fixture(scope="session")
def shared_cosmos() -> Iterator[RunningEmulator]:
    """A local Cosmos whose containers have several physical partitions. Its clock starts at the true time."""
    with running_emulator(AccountSettings(partitions=PARTITIONS), clock=Clock()) as running:
        yield running


@pytest.fixture
def cosmos(shared_cosmos: RunningEmulator) -> Iterator[RunningEmulator]:
    """The local Cosmos; no test inherits another's trouble."""
    yield shared_cosmos
    shared_cosmos.clear_faults()


@pytest.fixture
def account(cosmos: RunningEmulator) -> Account:
    """How to reach it."""
    return Account(cosmos.endpoint, cosmos.key)


@pytest.fixture
def database(cosmos: RunningEmulator) -> Iterator[DatabaseProxy]:
    """A database of the test's own, through a client of the test's own."""
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        yield client.create_database(f"spark-{next(_numbers)}")
