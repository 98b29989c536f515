"""Both adapters on one container do the same: the connector's with the double of azure-cosmos-spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from pyspark.errors import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.connector import FORMAT, Connector, deleting, options, reading
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Query, Source, literal
from spark_jobs.work import source_of
from tests.spark.source.conftest import HASTE

ODD: list[dict[str, Any]] = [
    {"id": "text", "pk": 'it\'s "so"\\ \n', "text": "ö 😀 \u2028 \u0000"},
    {"id": "numbers", "pk": "b", "n": 2**60, "below": -(2**53), "half": 0.5},
    {"id": "nested", "pk": "c", "n": {"a": [1, {"b": None}], "c": {}}, "empty": []},
    {"id": "lacking", "pk": "d"},
    {"id": "flags", "pk": "e", "n": None, "yes": True, "no": False},
]
KEYS = Query("items", ("c.id", "c.pk", "c._etag"))
Documents = list[dict[str, Any]]


@dataclass(frozen=True)
class Both:
    own: FeedRanges
    connector: Connector

    def __iter__(self) -> Any:
        return iter((self.own, self.connector))


@pytest.fixture
def both(spark: SparkSession, account: Account, database: DatabaseProxy, connector_jar: str) -> Both:
    own = FeedRanges(spark, account, database.id, patience=HASTE)
    return Both(own, Connector(spark, account, database.id, {"items": ("/pk",)}, environment={}, jar=connector_jar))


def texts(rows: DataFrame) -> list[str]:
    return sorted(row.raw for row in rows.collect())


def ids(container: ContainerProxy) -> set[str]:
    return {item["id"] for item in container.read_all_items()}


def deletable(rows: DataFrame) -> DataFrame:
    """Rows of `KEYS` as rows to delete."""
    read = f.from_json("raw", "id string, pk string, _etag string").alias("read")
    partition = f.to_json(f.array("read.pk")).alias("partition")
    return rows.select(read).select(partition, "read.id", f.col("read._etag").alias("etag")).localCheckpoint()


def test_both_adapters_read_the_same_texts(both: Both, container: ContainerProxy) -> None:
    for item in ODD:
        container.create_item(item)
    columns = ("c.id", "c.n", "c.text", "c.n.a AS deep", "c.half", "c.yes")
    for query in (
        Query("items", ("*",)),
        Query("items", columns),
        Query("items", ("c.id",), f"c.pk = {literal(ODD[0]['pk'])}"),
        Query("items", ("c.id",), "IS_DEFINED(c.n) AND c.n != null"),
    ):
        own, through = (texts(source.read(query).rows) for source in both)
        assert own == through
        assert own


def test_a_read_of_several_queries_gives_the_rows_of_each(both: Both, documents: Documents) -> None:
    queries = [Query("items", ("c.id",), f"c.n {condition}") for condition in ("< 3", "= 2", "> 57")]
    own, through = (texts(source.read(*queries).rows) for source in both)
    assert own == through
    assert [json.loads(item)["id"] for item in own] == ["d0", "d1", "d2", "d2", "d58", "d59"]


def test_the_same_read_again_reads_again(both: Both, container: ContainerProxy, documents: Documents) -> None:
    for source in both:
        before = source.read(KEYS)
        container.create_item({"id": source.name, "pk": "p"})
        assert source.read(KEYS).number == before.number + 1


@pytest.mark.parametrize("name", ["own", "connector"])
def test_a_delete_takes_unchanged_documents_and_leaves_changed_ones(
    both: Both, container: ContainerProxy, documents: Documents, name: str
) -> None:
    source: Source = getattr(both, name)
    rows = deletable(both.own.read(Query("items", KEYS.columns, "c.n < 50")).rows)
    container.upsert_item({"id": "d21", "pk": "p1", "n": -1})
    container.delete_item("d2", "p2")
    outcomes = {row.id: row.outcome for row in source.delete("items", rows).rows.collect()}
    assert ids(container) == {"d21"} | {f"d{number}" for number in range(50, 60)}
    assert len(outcomes) == 50
    if name == "own":
        assert (outcomes["d21"], outcomes["d2"], outcomes["d0"]) == ("changed", "gone", "deleted")
    else:
        assert set(outcomes.values()) == {"unknown"}


def test_a_delete_knows_partition_keys_of_several_paths_and_of_every_kind_of_value(
    spark: SparkSession, account: Account, database: DatabaseProxy, connector_jar: str
) -> None:
    paths = ("/tenant", "/customer/id")
    container = database.create_container("deep", PartitionKey(list(paths), kind="MultiHash"))
    values: list[Any] = ["ö/\\#?", "", 7, -1.5, 2**53, True, False, None]
    made = [
        container.create_item({"id": "x", "tenant": "t", "customer": {"id": value}, "at": at})
        for at, value in enumerate(values)
    ]
    rows = [(json.dumps([item["tenant"], item["customer"]["id"]]), item["id"], item["_etag"]) for item in made[1:]]
    connector = Connector(spark, account, database.id, {"deep": paths}, environment={}, jar=connector_jar)
    connector.delete("deep", spark.createDataFrame(rows, "partition string, id string, etag string"))
    assert [item["at"] for item in container.read_all_items()] == [0]


def test_a_delete_of_no_rows_deletes_nothing(both: Both, container: ContainerProxy, documents: Documents) -> None:
    both.connector.delete("items", deletable(both.own.read(KEYS).rows).limit(0))
    assert len(ids(container)) == len(documents)


def test_the_double_is_chosen_as_the_connector_is(spark: SparkSession, account: Account, connector_jar: str) -> None:
    place = {"type": "item", "container": "items", "partition_key": ["/pk"], "protocol": "outbox"}
    job = Job.read({"database": "d", "entities": [place], "source": "connector"})
    assert source_of(spark, job, account).name == f"connector, {connector_jar}"


def test_the_double_takes_the_options_of_a_rate(
    spark: SparkSession,
    account: Account,
    container: ContainerProxy,
    documents: Documents,
    database: DatabaseProxy,
) -> None:
    rated = Connector(spark, account, database.id, {"items": ("/pk",)}, environment={}, rate=100_000)
    rated.delete("items", deletable(rated.read(KEYS).rows))
    assert ids(container) == set()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"spark.cosmos.read.query": "x"}, "There is no option spark.cosmos.read.query"),
        ({"spark.cosmos.useGatewayMode": "yes"}, "useGatewayMode cannot be yes"),
        ({"spark.cosmos.read.maxItemCount": "1.5"}, "maxItemCount cannot be 1.5"),
        ({"spark.cosmos.write.strategy": "ItemDeleteSilently"}, "strategy cannot be ItemDeleteSilently"),
        ({"spark.cosmos.throughputControl.targetThroughput": "0"}, "throughput should be greater than 0"),
    ],
    ids=["unknown", "boolean", "integer", "choice", "rate"],
)
def test_the_double_refuses_other_options(
    spark: SparkSession,
    account: Account,
    database: DatabaseProxy,
    container: ContainerProxy,
    *,
    wrong: dict[str, str],
    sentence: str,
    connector_jar: str,
) -> None:
    given = options(account, database.id, "items", {}, 400.0) | reading(KEYS) | wrong
    with pytest.raises(IllegalArgumentException, match=sentence) as caught:
        spark.read.format(FORMAT).options(**given).load().collect()
    assert account.key
    assert account.key not in str(caught.value)


@pytest.mark.parametrize("secret", [None, "hush"], ids=["managed", "principal"])
@pytest.mark.parametrize("use", [reading(KEYS), deleting()], ids=["read", "delete"])
def test_the_double_takes_the_options_of_identities_and_has_none(
    spark: SparkSession, account: Account, secret: str | None, use: dict[str, str], connector_jar: str
) -> None:
    identity = Account(account.endpoint, client_id="me", tenant_id="t", client_secret=secret)
    environment = {"AZURE_SUBSCRIPTION_ID": "s", "AZURE_RESOURCE_GROUP": "g"}
    given = options(identity, "d", "items", environment, 400.0) | use
    with pytest.raises(UnsupportedOperationException, match=r"auth\.type=MasterKey only"):
        spark.read.format(FORMAT).options(**given).load()
