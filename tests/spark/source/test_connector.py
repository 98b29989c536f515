"""The connector's adapter, as far as it goes without a connector: its options as data, and when it is chosen.

That the connector takes these options, and what it does with them, is tested with its double: `test_both_adapters`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from exactlyonce import ConfigurationError
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.connector import Connector, deleting, jar_of, options, reading
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Query, placed, shown_units
from spark_jobs.work import source_of

KEY = "c2VjcmV0IGtleQ=="
JAR = "azure-cosmos-spark_3-5_2-12-4.49.2.jar"
BROUGHT = "azure-cosmos-analytics-spark_3-5_2-12_synapse-2.2.5.jar"
ENDPOINT = "https://a.example.org/"
QUERY = Query("games", ("c.id", 'c["_ts"]'), 'c["kind"] = "staged"')
BY_KEY = Account(ENDPOINT, KEY)
MANAGED = Account(ENDPOINT, client_id="mine", tenant_id="t")
PRINCIPAL = Account(ENDPOINT, client_id="me", tenant_id="t", client_secret="hush")
JOB = {
    "database": "d",
    "entities": [{"type": "range", "container": "games", "partition_key": ["/gameId"], "protocol": "outbox"}],
}
TARGET = "spark.cosmos.throughputControl.targetThroughput"


@pytest.fixture
def connector(spark: SparkSession) -> Connector:
    return Connector(spark, BY_KEY, "d", {"games": ("/gameId",)}, environment={})


def test_a_read_guesses_no_schema_and_a_delete_is_on_condition_of_the_etag() -> None:
    assert reading(QUERY)["spark.cosmos.read.inferSchema.enabled"] == "false"
    assert deleting()["spark.cosmos.write.strategy"] == "ItemDeleteIfNotModified"


@pytest.mark.parametrize(
    ("rate", "executors", "target"),
    [(None, 1, None), (400.9, 1, "400"), (0.5, 1, "1"), (3.0, 4, "4"), (4.0, 4, "4"), (9.9, 4, "9")],
)
def test_every_executor_has_a_part_of_a_rate(rate: float | None, executors: int, target: str | None) -> None:
    given = options(BY_KEY, "d", "games", {}, rate, executors=executors)
    assert given.get(TARGET) == target
    assert any("throughputControl" in name for name in given) is (rate is not None)


@pytest.mark.parametrize(
    ("account", "type"), [(BY_KEY, "MasterKey"), (MANAGED, "ManagedIdentity"), (PRINCIPAL, "ServicePrincipal")]
)
def test_the_identity_is_the_accounts_and_its_secrets_are_never_shown(account: Account, type: str) -> None:
    given = options(account, "d", "games", {})
    assert given["spark.cosmos.auth.type"] == type
    assert given.get("spark.cosmos.accountKey") == account.key
    assert given.get("spark.cosmos.auth.aad.clientId") == account.client_id
    assert given.get("spark.cosmos.auth.aad.clientSecret") == account.client_secret
    for shown in (repr(given), str(given), f"{given}"):
        assert KEY not in shown
        assert "hush" not in shown
        assert ENDPOINT in shown


def test_an_account_without_an_identity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="set AZURE_TENANT_ID for a managed identity"):
        options(Account(ENDPOINT), "d", "games", {})


def test_a_partition_key_has_a_value_for_each_path_and_paths_may_share_their_beginning() -> None:
    assert placed(("/a/b", "/a/c", "/d"), [1, True, "x"]) == {"a": {"b": 1, "c": True}, "d": "x"}
    with pytest.raises(ValueError, match="shorter"):
        placed(("/a", "/b"), [1])


def test_rows_that_name_no_document_are_refused(connector: Connector, spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"lack the column\(s\) etag"):
        connector.delete("games", spark.createDataFrame([("[]", "a")], "partition string, id string"))


def test_costs_of_the_connector_are_not_known_whatever_else_was_counted(connector: Connector) -> None:
    connector.spent.count(3, 46.0)
    assert (connector.spent.units, connector.spent.rows) == (None, 3)
    assert [shown_units(units) for units in (0.0, 1234.5, None)] == ["0 RU", "1,234 RU", "RU not known"]


def test_a_class_that_is_there_names_its_jar_and_one_that_is_not_there_none(spark: SparkSession) -> None:
    assert jar_of(spark, "com.azure.cosmos.spark.Absent") is None
    assert re.fullmatch(r"spark-sql_\S+-3\.5\.\d+\.jar", jar_of(spark, "org.apache.spark.sql.SparkSession") or "")


def test_without_the_connector_spark_says_so_and_shows_no_key(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.source.connector.FORMAT", "cosmos.absent")
    with pytest.raises(Py4JJavaError, match=r"cosmos\.absent") as caught:
        connector.read(QUERY)
    assert KEY not in str(caught.value)


def test_a_container_that_the_job_does_not_name_is_refused(connector: Connector) -> None:
    with pytest.raises(ConfigurationError, match="names no container 'absent'"):
        connector.read(Query("absent", ("c.id",)))


def test_plans_hide_the_options_that_are_secret(connector: Connector, spark: SparkSession) -> None:
    java: Any = spark._jvm
    pattern = java.java.util.regex.Pattern.compile(spark.conf.get("spark.sql.redaction.options.regex"))
    for name in ("spark.cosmos.accountKey", "spark.cosmos.auth.aad.clientSecret"):
        assert pattern.matcher(name).find()


@pytest.mark.parametrize(
    ("source", "jar", "chosen", "name"),
    [
        ({}, JAR, FeedRanges, "feed_ranges"),
        ({}, None, FeedRanges, "feed_ranges"),
        ({"source": "feed_ranges"}, JAR, FeedRanges, "feed_ranges"),
        ({"source": "connector"}, JAR, Connector, f"connector, {JAR}"),
    ],
)
def test_the_connector_is_chosen_only_if_the_file_asks_for_it(
    spark: SparkSession, source: dict[str, str], jar: str | None, chosen: type, name: str
) -> None:
    found = source_of(spark, Job.read({**JOB, **source, "rate": 100}), BY_KEY, lambda _: jar)
    assert (type(found), found.name) == (chosen, name)


@pytest.mark.parametrize(
    ("jar", "words"),
    [(None, "azure-cosmos-spark is not on the class path"), (BROUGHT, f'{BROUGHT}.* say "feed_ranges"')],
    ids=["absent", "that Synapse brings"],
)
def test_a_connector_that_cannot_be_used_is_refused(spark: SparkSession, jar: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        source_of(spark, Job.read({**JOB, "source": "connector"}), BY_KEY, lambda _: jar)


def test_the_file_has_no_other_choice() -> None:
    with pytest.raises(ConfigurationError, match="source: Input should be 'feed_ranges' or 'connector'"):
        Job.read({**JOB, "source": "jdbc"})
