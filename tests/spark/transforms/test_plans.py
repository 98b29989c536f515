"""What the rules ask of documents in files is asked of the files: no more columns, and no more rows, than they need."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.source.port import RAW
from spark_jobs.transforms.documents import unnamed
from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.rules.history import two_owners
from spark_jobs.transforms.rules.sightings import marked
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import documents
from tests.spark.transforms.planting import LIMITS, seconds


def scans(frame: DataFrame) -> list[tuple[str, str]]:
    """The conditions and the columns of each scan of files in the physical plan."""
    session = frame.sparkSession
    before = session.conf.get("spark.sql.maxMetadataStringLength") or "100"
    session.conf.set("spark.sql.maxMetadataStringLength", "100000")
    try:
        plan = frame._jdf.queryExecution().executedPlan().toString()
    finally:
        session.conf.set("spark.sql.maxMetadataStringLength", before)
    return re.findall(r"PushedFilters: \[(.*?)\], ReadSchema: (\S+)", plan)


def test_conditions_are_pushed_down_to_the_files(planted_documents: DataFrame) -> None:
    facts = Facts.of(planted_documents)
    expected = {
        "staged": "EqualTo(kind,staged)",
        "numbered": "EqualTo(kind,numbered)",
        "parked": "In(kind, [parked,unparked])",
        "entities": "EqualTo(kind,entity)",
        "books": "EqualTo(kind,book)",
        "unreadable": "IsNotNull(problem)",
    }
    for name, condition in expected.items():
        ((pushed, _),) = scans(getattr(facts, name))
        assert condition in pushed, name
    assert [("IsNull(problem)" in pushed) for pushed, _ in scans(facts.pages)] == [True, True]


def test_no_row_passes_through_python_unless_it_names_an_entity_itself(spark: SparkSession) -> None:
    raw = spark.createDataFrame([("{}",)], RAW)
    by_python = {
        name: "EvalPython" in frame._jdf.queryExecution().executedPlan().toString()
        for name, frame in {
            "of the library": documents(raw, LIBRARY),
            "of entities, plain": unnamed(raw, "shop"),
            "of entities": documents(raw, "shop"),
        }.items()
    }
    assert by_python == {"of the library": False, "of entities, plain": False, "of entities": True}


def test_only_the_columns_that_matter_are_read(planted_documents: DataFrame) -> None:
    facts = Facts.of(planted_documents)
    ((_, columns),) = scans(facts.staged)
    assert set(re.findall(r"(\w+):", columns)) == {"entity", "ts", "kind", "message", "tx", "at", "problem"}

    ((_, records),) = scans(two_owners(facts, LIMITS, seconds()))
    assert set(re.findall(r"(\w+):", records)) == {"entity", "version", "kind", "message", "tx", "at", "problem"}
    ((_, ledgers),) = scans(marked(facts).where(~F.col("paged")))
    assert not [item for item in ("receptions:", "outbox:", "answers:", "etag:", "parts:") if item in ledgers]
