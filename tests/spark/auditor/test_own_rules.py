"""Rules of an application's own are judged and reported with the rest."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import DataFrame, SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.own_rules import OwnRules
from spark_jobs.job.configuration import Job
from spark_jobs.report.contents import Severity
from spark_jobs.rules import rules_of
from spark_jobs.source.port import RAW, Made, Query, Spent
from tests.spark.auditor import audit_rules
from tests.spark.auditor.app import shot
from tests.spark.auditor.conftest import Games, Silence, found

MODULE = audit_rules.__name__
JOB = Job.read({"database": "d", "entities": [{"type": "board", "container": "boards", "protocol": "resequencer"}]})
WORK: Any = SimpleNamespace(job=JOB)


def test_own_rules_find_twice_and_report_in_their_words(games: Games) -> None:
    database = games.played(shot(number, 3) for number in range(6))
    with CosmosClient(games.cosmos.endpoint, games.cosmos.key) as client:
        boards = client.get_database_client(database).get_container_client("boards")
        board = next(item for item in boards.read_all_items() if item["id"] == "game-1")
        boards.upsert_item({**board, "best": board["hits"] + 1})
    contents = games.audits(database, rules=MODULE)()
    ((rule, entity),) = found(contents)
    assert (rule, entity) == ("streak_beyond_hits", '["board","game-1","game-1"]')
    (finding,) = contents.findings
    assert finding.detail == f"The best streak is {board['hits'] + 1}, of {board['hits']} hits."
    assert finding.advice == "Rebuild the board under a new key."
    results = {item.name: (item.severity, item.suspects, item.findings) for item in contents.rules[-2:]}
    assert results == {"streak_beyond_hits": (Severity.WRONG, 1, 1), "counted_beyond_fired": (Severity.WATCH, 0, 0)}
    purposes = {(read.container, read.purpose, read.rows) for read in contents.reads}
    assert ("boards", "streak_beyond_hits, second look", 3) in purposes
    assert ("games", "counted_beyond_fired, first look", 3) in purposes
    assert all(read.charge for read in contents.reads)


def test_without_a_module_there_are_none() -> None:
    assert rules_of(None) == ()
    assert [rule.name for rule in rules_of(MODULE)] == ["streak_beyond_hits", "counted_beyond_fired"]


def test_a_module_that_is_absent_or_has_no_rules_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"no\.such of `rules` cannot be imported: No module named 'no'"):
        rules_of("no.such")
    with pytest.raises(ConfigurationError, match=r"json of `rules` has no rules"):
        rules_of("json")


def test_a_rule_that_reads_an_unknown_type_is_refused_before_anything_is_read() -> None:
    rule = replace(audit_rules.streak_beyond_hits, reads={"account": "balance bigint"})
    with pytest.raises(ConfigurationError, match="reads entities of type 'account': add it to the job file"):
        OwnRules(WORK, [rule])


def test_two_rules_with_one_name_are_refused() -> None:
    def two_owners(boards: DataFrame) -> DataFrame:
        return boards

    rule = audit_rules.streak_beyond_hits
    for rules in ([rule, rule], [replace(rule, judge=two_owners)]):
        with pytest.raises(ConfigurationError, match="There are two rules with the name"):
            OwnRules(WORK, rules)


class Empty:
    """A source without documents."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def read(self, *_: Query) -> Made:
        rows = self._spark.createDataFrame([], RAW)
        return Made(rows, 0, Spent(), rows)


def test_frames_and_properties_that_are_not_as_they_have_to_be_are_named(spark: SparkSession) -> None:
    work: Any = SimpleNamespace(spark=spark, job=JOB, source=Empty(spark), clock=lambda: 0.0, progress=Silence())
    rule = audit_rules.streak_beyond_hits
    with pytest.raises(ConfigurationError, match="The frame of rule <lambda> lacks the column 'detail'"):
        OwnRules(work, [replace(rule, judge=lambda boards: boards)]).findings()
    with pytest.raises(ConfigurationError, match="The properties that rule streak_beyond_hits reads of 'board'"):
        OwnRules(work, [replace(rule, reads={"board": "hits of"})]).findings()
