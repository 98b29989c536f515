"""The seam, through Spark: the end that runs everywhere, on a local Cosmos with several physical partitions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from exactlyonce import ConfigurationError
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import AccountError, Exit, ending
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import RAW, Made, Query, Spent, literal
from spark_jobs.source.tasks import translated
from tests.spark.conftest import PARTITIONS, persistent
from tests.spark.source.conftest import HASTE, Fault, Sent, SplitDuring, hits

ALL = Query("items", ("c.id", "c.pk", "c._etag"))
Documents = list[dict[str, Any]]


@pytest.fixture
def source(spark: SparkSession, account: Account, database: DatabaseProxy) -> FeedRanges:
    return FeedRanges(spark, account, database.id, page=4, patience=HASTE)


def ids(read: Made) -> list[str]:
    return sorted(json.loads(row.raw)["id"] for row in read.rows.collect())


def deletable(read: Made) -> DataFrame:
    """Rows of `ALL` as rows to delete."""
    row = f.from_json("raw", "id string, pk string, _etag string").alias("read")
    return read.rows.select(row).select(
        f.to_json(f.array("read.pk")).alias("partition"), "read.id", f.col("read._etag").alias("etag")
    )


def parts(read: Made) -> int:
    return read.held.select(f.spark_partition_id()).distinct().count()


def outcomes(deleted: Made) -> Counter[str]:
    return Counter(row.outcome for row in deleted.rows.collect())


def test_every_document_is_read_once_by_one_task_for_each_partition(source: FeedRanges, documents: Documents) -> None:
    read = source.read(ALL)
    assert read.rows.schema == RAW
    assert parts(read) == PARTITIONS
    assert ids(read) == sorted(document["id"] for document in documents)
    assert read.number == read.spent.rows == 60
    assert read.spent.requests >= 60 / 4
    assert (read.spent.units or 0) > 0


def test_rows_are_used_again_without_a_request_until_they_are_released(
    source: FeedRanges, documents: Documents, sent: Sent
) -> None:
    read, asked = source.read(ALL), sent()
    assert ids(read) == ids(read)
    assert sent() == asked
    read.release()
    assert read.rows.count() == 60
    assert sent()["query"] == 2 * asked["query"]


def test_the_source_sums_up_what_its_reads_and_deletes_cost(source: FeedRanges, documents: Documents) -> None:
    read = source.read(ALL)
    done = source.delete("items", deletable(read))
    assert source.spent == Spent(120, read.spent.requests + 20, (read.spent.units or 0) + (done.spent.units or 0))
    assert (done.number, done.spent.rows) == (60, 60)


def test_half_of_a_surrogate_pair_stays_as_json_writes_it(source: FeedRanges, container: ContainerProxy) -> None:
    container.create_item({"id": "half", "pk": "p", "text": "\ud83d!"})
    (row,) = source.read(Query("items", ("c.text",))).rows.collect()
    assert row.raw == '{"text":"\\ud83d!"}'


def test_conditions_and_columns_reach_the_service(
    source: FeedRanges, documents: Documents, fault: Fault, cosmos: RunningEmulator
) -> None:
    fault(operations=("query",), body_contains="SELECT c.n FROM c WHERE c.pk = ", times=0)
    rows = source.read(Query("items", ("c.n",), f"c.pk = {literal('p7')}"))
    assert sorted(row.raw for row in rows.rows.collect()) == ['{"n":27}', '{"n":47}', '{"n":7}']
    (counter,) = cosmos.faults()
    assert counter.matched >= PARTITIONS


def test_an_empty_container_is_an_empty_frame_of_the_same_shape(source: FeedRanges, container: ContainerProxy) -> None:
    read = source.read(ALL)
    assert read.rows.schema == RAW
    assert (read.number, read.rows.count()) == (0, 0)
    assert read.spent.requests == PARTITIONS


def test_a_split_in_the_middle_neither_misses_nor_repeats_a_document(
    source: FeedRanges,
    documents: Documents,
    split_during: SplitDuring,
    sent: Sent,
) -> None:
    assert split_during(lambda: ids(source.read(ALL))) == sorted(document["id"] for document in documents)
    # At least one task started over; a run that fails counts nothing.
    assert sent()["query"] > source.spent.requests + 1


def test_a_read_that_dies_in_the_middle_is_run_again_and_repeats_no_row(
    source: FeedRanges, documents: Documents, fault: Fault, cosmos: RunningEmulator
) -> None:
    fault(operations=("query",), when="before", action="status", status=400, skip=4, times=1)
    assert ids(source.read(ALL)) == sorted(document["id"] for document in documents)
    assert hits(cosmos) == 1


def test_a_document_that_changed_after_it_was_read_stays_however_often_the_delete_runs(
    source: FeedRanges, container: ContainerProxy, documents: Documents
) -> None:
    rows = deletable(source.read(ALL)).localCheckpoint()
    container.upsert_item({"id": "d21", "pk": "p1", "n": -1})
    container.delete_item("d2", "p2")
    assert outcomes(source.delete("items", rows)) == {"deleted": 58, "changed": 1, "gone": 1}
    assert outcomes(source.delete("items", rows)) == {"changed": 1, "gone": 59}
    assert ids(source.read(ALL)) == ["d21"]


def test_the_outcomes_may_be_used_twice(source: FeedRanges, documents: Documents) -> None:
    deleted = source.delete("items", deletable(source.read(ALL)).withColumn("age", f.lit(7)))
    assert deleted.rows.columns == ["partition", "id", "etag", "age", "outcome"]
    assert outcomes(deleted) == outcomes(deleted) == {"deleted": 60}


def test_a_delete_happens_at_once_and_in_one_request_for_each_logical_partition(
    source: FeedRanges, documents: Documents, sent: Sent
) -> None:
    source.delete("items", deletable(source.read(ALL)))
    assert (sent()["batch"], sent()["delete"]) == (20, 0)
    assert source.read(ALL).number == 0


def test_a_delete_that_dies_in_the_middle_deletes_nothing_else(
    source: FeedRanges,
    container: ContainerProxy,
    documents: Documents,
    fault: Fault,
    cosmos: RunningEmulator,
) -> None:
    rows = deletable(source.read(ALL)).localCheckpoint()
    container.upsert_item({"id": "d21", "pk": "p1", "n": -1})
    fault(operations=("batch",), when="before", action="status", status=400, skip=3, times=1)
    found = outcomes(source.delete("items", rows))
    assert hits(cosmos) == 1
    assert found["changed"] == 1
    assert found["deleted"] + found["gone"] == 59
    assert ids(source.read(ALL)) == ["d21"]


def test_rows_that_name_no_document_are_refused(source: FeedRanges, spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"lack the column\(s\) etag, partition; they have id"):
        source.delete("items", spark.createDataFrame([("a",)], "id string"))


def test_a_container_that_is_absent_is_named_before_anything_runs(source: FeedRanges) -> None:
    with pytest.raises(ConfigurationError, match="no such thing as the container 'absent' of database 'spark-"):
        source.read(Query("absent", ("c.id",)))


def test_an_error_that_ends_a_task_ends_the_job_with_its_sentence(
    source: FeedRanges, documents: Documents, fault: Fault, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(operations=("query",), when="before", action="status", status=403)
    assert ending(lambda: Exit(source.read(ALL).number)) is Exit.ACCOUNT
    assert capsys.readouterr().err.startswith("The account forbids the container 'items'")


@pytest.mark.classic
def test_a_read_that_fails_leaves_no_rows_behind(
    source: FeedRanges, documents: Documents, fault: Fault, spark: SparkSession
) -> None:
    fault(operations=("query",), when="before", action="status", status=403, skip=4)
    before = persistent(spark)
    with pytest.raises(AccountError), translated():
        source.read(ALL)
    assert persistent(spark) <= before


def test_a_query_for_nothing_and_one_too_long_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="names no column"):
        _ = Query("items", ()).text
    with pytest.raises(ConfigurationError, match="ask for fewer values"):
        _ = Query("items", ("c.id",), f"c.id = {literal('x' * 600_000)}").text


@pytest.mark.classic
def test_the_key_is_neither_in_sparks_configuration_nor_in_plans(
    source: FeedRanges, spark: SparkSession, account: Account, documents: Documents, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = source.read(ALL).rows
    rows.explain(extended=True)
    key = str(account.key)
    assert key not in str(spark.sparkContext.getConf().getAll())
    assert key not in str(rows.rdd.toDebugString())
    assert key not in capsys.readouterr().out


def test_a_rate_is_shared_by_the_tasks_that_run_at_a_time(
    spark: SparkSession, account: Account, database: DatabaseProxy
) -> None:
    source = FeedRanges(spark, account, database.id, rate=400)
    assert source._tasks(PARTITIONS) == 2  # Two cores.
    assert source._share(2) == 400 / 2
    assert source._share(1) == 400


def test_queries_that_are_read_together_have_one_rate(
    spark: SparkSession, account: Account, database: DatabaseProxy, documents: Documents
) -> None:
    source = FeedRanges(spark, account, database.id, rate=1e6)
    read = source.read(*(Query("items", ("c.id",), f"c.n {half} 30") for half in ("<", ">=")))
    assert ids(read) == sorted(document["id"] for document in documents)
    # No more tasks than have a part of the rate, though there are two queries of three partitions, and more cores might come.
    assert parts(read) == 2


def test_queries_of_several_containers_are_not_read_together(source: FeedRanges) -> None:
    with pytest.raises(ConfigurationError, match="One read has queries of several containers"):
        source.read(ALL, Query("others", ("c.id",)))
