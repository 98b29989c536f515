"""Fixtures of all Spark tests: one session and one local Cosmos per run, one database per test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest
from azure.cosmos import CosmosClient, DatabaseProxy
from pyspark.sql import SparkSession

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from spark_jobs.job.configuration import Account
from spark_jobs.spark.frames import LITTLE
from spark_jobs.spark.session import local_session
from tests.spark.connector.double import load_into

PARTITIONS: Final = 3
"""Physical partitions of every container."""

BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for minutes on few cores: to compile what it runs any better takes longer than the tests."""

_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the socket of every `collect` to the garbage collector."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process, set for little data: its start takes seconds, so there is one."""
    session = local_session("tests", cores=2, attempts=2, java=BRIEF)
    for name, value in LITTLE.items():
        session.conf.set(name, value)
    yield session
    session.stop()


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
