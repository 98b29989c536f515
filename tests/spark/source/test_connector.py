"""The connector's end, as far as it goes without a connector: its options as data, what it is handed, when it is chosen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from exactlyonce import ConfigurationError
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.connector import Connector, Options, bodies, deleting, jar_of, options, reading
from spark_jobs.source.factory import source_of
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Query, Source, placed, shown_units

DOCUMENTED: dict[str, Any] = json.loads(Path(__file__).with_name("documented_options.json").read_text())["options"]
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


def offences(given: Options) -> list[str]:
    """Options that the connector's documentation does not have, or not with this value."""
    found = []
    for name, value in given.items():
        match DOCUMENTED.get(name):
            case None:
                found.append(f"{name} is not documented")
            case "boolean" if value not in ("true", "false"):
                found.append(f"{name} is no boolean")
            case "integer" if not value.isdecimal():
                found.append(f"{name} is no integer")
            case list(values) if value not in values:
                found.append(f"{name} cannot be {value}")
    return found


class TestOptions:
    @pytest.mark.parametrize("account", [BY_KEY, MANAGED, PRINCIPAL], ids=["key", "managed", "principal"])
    @pytest.mark.parametrize("environment", [{}, {"AZURE_SUBSCRIPTION_ID": "s", "AZURE_RESOURCE_GROUP": "g"}])
    @pytest.mark.parametrize("rate", [None, 400.0])
    @pytest.mark.parametrize("use", [reading(QUERY), deleting()], ids=["read", "delete"])
    def test_all_are_documented_with_these_values(
        self, account: Account, environment: dict[str, str], rate: float | None, *, use: Options
    ) -> None:
        assert offences(Options(options(account, "d", "games", environment, rate) | use)) == []

    def test_what_is_not_documented_is_noticed(self) -> None:
        wrong = {
            "spark.cosmos.read.query": "x",
            "spark.cosmos.useGatewayMode": "yes",
            "spark.cosmos.read.maxItemCount": "1.5",
            "spark.cosmos.write.strategy": "ItemDeleteSilently",
        }
        assert len(offences(Options(wrong))) == 4

    def test_both_ends_send_the_same_query(self) -> None:
        assert reading(QUERY)["spark.cosmos.read.customQuery"] == QUERY.text
        assert QUERY.text == 'SELECT c.id, c["_ts"] FROM c WHERE c["kind"] = "staged"'

    def test_a_delete_is_on_condition_of_the_etag(self) -> None:
        assert deleting()["spark.cosmos.write.strategy"] == "ItemDeleteIfNotModified"

    def test_schemas_are_never_guessed_from_documents(self) -> None:
        assert reading(QUERY)["spark.cosmos.read.inferSchema.enabled"] == "false"

    def test_a_rate_is_the_connectors_throughput_control(self) -> None:
        given = options(BY_KEY, "d", "games", {}, 400.9)
        assert given["spark.cosmos.throughputControl.targetThroughput"] == "400"
        assert not any("throughputControl" in name for name in options(BY_KEY, "d", "games", {}))

    @pytest.mark.parametrize(
        ("rate", "executors", "target"), [(0.5, 1, "1"), (3.0, 4, "4"), (4.0, 4, "4"), (9.9, 4, "9")]
    )
    def test_every_executor_has_a_part_of_a_rate(self, rate: float, executors: int, target: str) -> None:
        given = options(BY_KEY, "d", "games", {}, rate, executors=executors)
        assert given["spark.cosmos.throughputControl.targetThroughput"] == target

    @pytest.mark.parametrize(
        ("account", "type"), [(BY_KEY, "MasterKey"), (MANAGED, "ManagedIdentity"), (PRINCIPAL, "ServicePrincipal")]
    )
    def test_the_user_agent_is_the_configured_one(self, account: Account, type: str) -> None:
        given = options(account, "d", "games", {})
        assert given["spark.cosmos.auth.type"] == type
        assert given.get("spark.cosmos.accountKey") == account.key
        assert given.get("spark.cosmos.auth.aad.clientId") == account.client_id
        assert given.get("spark.cosmos.auth.aad.clientSecret") == account.client_secret

    def test_who_asks_has_to_be_said(self) -> None:
        with pytest.raises(ConfigurationError, match="set AZURE_TENANT_ID for a managed identity"):
            options(Account(ENDPOINT), "d", "games", {})

    @pytest.mark.parametrize("show", [repr, str, "{}".format])
    def test_secrets_are_never_shown(self, show: Any) -> None:
        assert KEY not in show(options(BY_KEY, "d", "games", {}))
        assert "hush" not in show(options(PRINCIPAL, "d", "games", {}))
        assert ENDPOINT in show(options(BY_KEY, "d", "games", {}))


class TestWhatIsDeleted:
    def test_is_handed_over_as_json_with_id_etag_and_partition_key(self, spark: SparkSession) -> None:
        rows = spark.createDataFrame(
            [('["t",7]', "a", '"e1"', "x")], "partition string, id string, etag string, kind string"
        )
        (row,) = bodies(rows, ("/tenant", "/customer/id")).collect()
        assert row.asDict().keys() == {"_rawBody"}
        assert json.loads(row["_rawBody"]) == {"id": "a", "_etag": '"e1"', "tenant": "t", "customer": {"id": 7}}

    def test_paths_may_share_their_beginning(self) -> None:
        assert placed(("/a/b", "/a/c", "/d"), [1, True, "x"]) == {"a": {"b": 1, "c": True}, "d": "x"}

    def test_values_and_paths_have_to_match(self) -> None:
        with pytest.raises(ValueError, match="shorter"):
            placed(("/a", "/b"), [1])

    def test_rows_that_name_no_document_are_refused(self, connector: Connector, spark: SparkSession) -> None:
        with pytest.raises(ConfigurationError, match=r"lack the column\(s\) etag"):
            connector.delete("games", spark.createDataFrame([("[]", "a")], "partition string, id string"))


@pytest.fixture
def connector(spark: SparkSession) -> Connector:
    return Connector(spark, BY_KEY, "d", {"games": ("/gameId",)}, environment={})


class TestCosts:
    def test_are_not_known_of_the_connector_whatever_else_was_counted(self, connector: Connector) -> None:
        connector.spent.count(3, 46.0)
        assert connector.spent.units is None
        assert connector.spent.rows == 3

    @pytest.mark.parametrize(("units", "text"), [(0.0, "0 RU"), (1234.5, "1,234 RU"), (None, "RU not known")])
    def test_are_shown_in_request_units(self, units: float | None, text: str) -> None:
        assert shown_units(units) == text


class TestWithoutTheConnector:
    def test_it_is_found_absent(self, spark: SparkSession) -> None:
        assert jar_of(spark, "com.azure.cosmos.spark.Absent") is None

    def test_a_class_that_is_there_names_its_jar(self, spark: SparkSession) -> None:
        jar = jar_of(spark, "org.apache.spark.sql.SparkSession")
        assert jar is not None
        assert re.fullmatch(r"spark-sql_\S+-3\.5\.\d+\.jar", jar)

    def test_spark_says_so_and_shows_no_key(self, connector: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("spark_jobs.source.connector.FORMAT", "cosmos.absent")
        with pytest.raises(Py4JJavaError, match=r"cosmos\.absent") as caught:
            connector.read(QUERY)
        assert KEY not in str(caught.value)

    def test_a_container_that_the_job_does_not_name_is_refused(self, connector: Connector) -> None:
        with pytest.raises(ConfigurationError, match="names no container 'absent'"):
            connector.read(Query("absent", ("c.id",)))

    def test_plans_hide_the_options_that_are_secret(self, connector: Connector, spark: SparkSession) -> None:
        pattern = spark._jvm.java.util.regex.Pattern.compile(  # type: ignore[union-attr]
            spark.conf.get("spark.sql.redaction.options.regex")
        )
        for name in ("spark.cosmos.accountKey", "spark.cosmos.auth.aad.clientSecret"):
            assert pattern.matcher(name).find()


class TestTheChoice:
    @staticmethod
    def chosen(spark: SparkSession, source: str | None, *, jar: str | None) -> Source:
        named = {"source": source} if source else {}
        job = Job.read({**JOB, **named, "rate": 100})
        return source_of(spark, job, BY_KEY, lambda _: jar)

    @pytest.mark.parametrize(
        ("source", "jar", "chosen", "name"),
        [
            (None, JAR, FeedRanges, "feed_ranges"),
            (None, None, FeedRanges, "feed_ranges"),
            ("feed_ranges", JAR, FeedRanges, "feed_ranges"),
            ("feed_ranges", None, FeedRanges, "feed_ranges"),
            ("connector", JAR, Connector, f"connector, {JAR}"),
        ],
    )
    def test_is_the_connector_only_if_the_file_asks_for_it(
        self, spark: SparkSession, source: str | None, jar: str | None, chosen: type, name: str
    ) -> None:
        found = self.chosen(spark, source, jar=jar)
        assert type(found) is chosen
        assert found.name == name

    def test_a_connector_that_is_asked_for_and_absent_is_refused(self, spark: SparkSession) -> None:
        with pytest.raises(ConfigurationError, match="azure-cosmos-spark is not on the class path"):
            self.chosen(spark, "connector", jar=None)

    def test_the_connector_that_synapse_brings_is_refused_by_the_name_of_its_jar(self, spark: SparkSession) -> None:
        with pytest.raises(ConfigurationError, match=f'{BROUGHT}.* say "feed_ranges"'):
            self.chosen(spark, "connector", jar=BROUGHT)

    def test_the_file_has_no_other_choice(self) -> None:
        with pytest.raises(ConfigurationError, match="source: Input should be 'feed_ranges' or 'connector'"):
            Job.read({**JOB, "source": "jdbc"})


class Recorded:
    """In the place of Spark's reader and writer: remembers what it was given."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows
        self.given: dict[str, Any] = {}
        self.handed: DataFrame | None = None

    def schema(self, schema: Any) -> Recorded:
        self.given["schema"] = schema.simpleString()
        return self

    def format(self, name: str) -> Recorded:
        self.given["format"] = name
        return self

    def options(self, **given: str) -> Recorded:
        self.given |= given
        return self

    def mode(self, mode: str) -> Recorded:
        self.given["mode"] = mode
        return self

    def load(self) -> DataFrame:
        return self.rows

    def save(self) -> None:
        self.given["saved"] = True


class TestWhatSparkIsAskedFor:
    def test_a_read_gives_one_column_of_json(
        self, connector: Connector, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorded = Recorded(spark.createDataFrame([('{"id":"a"}',)], "_rawBody string"))
        monkeypatch.setattr(SparkSession, "read", recorded)
        read = connector.read(QUERY)
        assert (read.number, read.spent.units) == (1, None)
        assert [row.asDict() for row in read.rows.collect()] == [{"raw": '{"id":"a"}'}]
        assert recorded.given["schema"] == "struct<_rawBody:string>"
        assert recorded.given["format"] == "cosmos.oltp"
        assert recorded.given["spark.cosmos.container"] == "games"
        assert recorded.given["spark.cosmos.read.customQuery"] == QUERY.text

    def test_a_delete_is_written_once_and_returns_nothing(
        self, connector: Connector, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = spark.createDataFrame([('["g"]', "a", "e", 7)], "partition string, id string, etag string, age int")
        recorded = Recorded(rows)
        monkeypatch.setattr(DataFrame, "write", recorded)
        deleted = connector.delete("games", rows)
        assert recorded.given["mode"] == "append"
        assert recorded.given["saved"]
        assert recorded.given["spark.cosmos.write.strategy"] == "ItemDeleteIfNotModified"
        assert [row.asDict() for row in deleted.rows.collect()] == [
            {"partition": '["g"]', "id": "a", "etag": "e", "age": 7, "outcome": "unknown"}
        ]
