"""The connector's adapter while the account refuses, or answers late: with the double of azure-cosmos-spark."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy
from pyspark.sql import DataFrame, SparkSession

from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import Exit, ending
from spark_jobs.source.connector import Connector
from spark_jobs.source.port import Query
from spark_jobs.source.tasks import translated
from tests.spark.source.conftest import Fault, SplitDuring, hits

ALL = Query("items", ("c.id",))
OPERATIONS = {"read": ("query",), "delete": ("batch",)}
Documents = list[dict[str, Any]]
Use = Callable[[], object]


@pytest.fixture
def connector(spark: SparkSession, account: Account, database: DatabaseProxy, connector_jar: str) -> Connector:
    paths = {"items": ("/pk",), "absent": ("/pk",)}
    return Connector(spark, account, database.id, paths, environment={}, jar=connector_jar)


@pytest.fixture
def pages(spark: SparkSession) -> Iterator[None]:
    """The connector reads four rows at a time."""
    settings: Any = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.cosmos.read.maxItemCount", "4")
    yield
    settings.remove("spark.cosmos.read.maxItemCount")


def ids(rows: DataFrame) -> list[str]:
    return sorted(json.loads(row.raw)["id"] for row in rows.collect())


def every(documents: Documents) -> list[str]:
    return sorted(document["id"] for document in documents)


@pytest.fixture
def some(container: ContainerProxy) -> Documents:
    """Thirty documents, three in each of ten logical partitions, as the service has them."""
    made = []
    for key in map(str, range(10)):
        three = [("create", ({"id": f"{key}-{number}", "pk": key},)) for number in range(3)]
        made += [item["resourceBody"] for item in container.execute_item_batch(three, key)]
    return made


@pytest.fixture
def rows(spark: SparkSession, some: Documents) -> DataFrame:
    """The documents as rows to delete."""
    named = [(json.dumps([item["pk"]]), item["id"], item["_etag"]) for item in some]
    return spark.createDataFrame(named, "partition string, id string, etag string")


@pytest.fixture
def uses(connector: Connector, rows: DataFrame) -> dict[str, Use]:
    return {"read": lambda: connector.read(ALL), "delete": lambda: connector.delete("items", rows)}


@pytest.mark.parametrize(
    "trouble",
    [
        {"action": "status", "status": 429, "retry_after_ms": 1, "times": 5},
        {"action": "status", "status": 503, "times": 2},
        {"action": "status", "status": 410, "substatus": 1002, "times": 2},
        {"action": "close", "times": 1},
    ],
    ids=["429", "503", "split", "close"],
)
def test_a_read_in_trouble_that_passes_gives_every_row_once(
    connector: Connector,
    some: Documents,
    fault: Fault,
    cosmos: RunningEmulator,
    *,
    trouble: dict[str, Any],
    pages: None,
) -> None:
    fault(operations=("query",), when="before", skip=4, **trouble)
    assert ids(connector.read(ALL).rows) == every(some)
    assert hits(cosmos) == trouble["times"]


def test_a_partition_that_splits_while_it_is_read_gives_every_row_once(
    connector: Connector,
    some: Documents,
    cosmos: RunningEmulator,
    split_during: SplitDuring,
    *,
    database: DatabaseProxy,
    pages: None,
) -> None:
    assert split_during(lambda: ids(connector.read(ALL).rows)) == every(some)
    asked = [request for request in cosmos.requests() if request.database == database.id]
    assert (410, 1002) in {(item.status, item.substatus) for item in asked}


@pytest.mark.parametrize(
    "trouble",
    [
        {"when": "before", "action": "status", "status": 429, "retry_after_ms": 1, "times": 4},
        {"when": "before", "action": "status", "status": 503, "times": 2},
        {"when": "after", "action": "status", "status": 408, "times": 1},
        {"when": "after", "action": "close", "times": 1},
    ],
    ids=["429", "503", "408 when it is done", "close when it is done"],
)
def test_a_delete_in_trouble_that_passes_takes_every_document(
    uses: dict[str, Use],
    container: ContainerProxy,
    fault: Fault,
    cosmos: RunningEmulator,
    *,
    trouble: dict[str, Any],
) -> None:
    fault(operations=("batch",), **trouble)
    uses["delete"]()
    assert hits(cosmos) == trouble["times"]
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize(
    ("use", "status", "substatus", "code", "sentence"),
    [
        ("read", 401, 0, Exit.ACCOUNT, "The account refuses the key or identity"),
        ("read", 403, 5300, Exit.ACCOUNT, "The account forbids"),
        ("read", 404, 0, Exit.CONFIGURATION, "There is no such thing"),
        ("read", 429, 3200, Exit.ACCOUNT, "The account answered 429/3200"),
        ("read", 503, 0, Exit.ACCOUNT, "The account answered 503/"),
        ("delete", 403, 5300, Exit.ACCOUNT, "The account forbids"),
        ("delete", 429, 3200, Exit.ACCOUNT, "The account answered 429/3200"),
        ("delete", 503, 0, Exit.ACCOUNT, "The account answered 503/"),
    ],
)
def test_trouble_that_stays_ends_the_job_with_a_sentence(
    uses: dict[str, Use], fault: Fault, use: str, status: int, substatus: int, *, code: Exit, sentence: str
) -> None:
    fault(
        operations=OPERATIONS[use],
        when="before",
        action="status",
        status=status,
        substatus=substatus,
        retry_after_ms=1,
    )
    ended, message = end(uses[use])
    assert ended is code
    assert message.startswith(sentence)
    assert message.count("\n") == 1


def test_an_absent_container_ends_the_job_as_a_wrong_configuration(connector: Connector, rows: DataFrame) -> None:
    for use in (
        lambda: connector.read(Query("absent", ("c.id",))),
        lambda: connector.delete("absent", rows),
    ):
        ended, message = end(use)
        assert ended is Exit.CONFIGURATION
        assert message.startswith("There is no such thing as the container of the connector's request (404/")


def test_an_option_in_the_configuration_of_the_pool_that_is_none_of_the_connectors_is_a_failure(
    spark: SparkSession, connector: Connector
) -> None:
    settings: Any = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.cosmos.endpoint", "x")
    try:
        ended, message = end(lambda: connector.read(ALL))
    finally:
        settings.remove("spark.cosmos.endpoint")
    assert ended is Exit.INTERNAL
    assert "There is no option spark.cosmos.endpoint" in message


def end(use: Use) -> tuple[Exit, str]:
    """How a job ends that does this, and what it prints."""

    def job() -> Exit:
        with translated():
            use()
        return Exit.DONE

    errors = io.StringIO()
    return ending(job, errors), errors.getvalue()
