"""The whole audit on the local Cosmos: what is damaged is found, what is not is not.

Games of all strategies lie in one database: an audit of all takes as long as an audit of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demo import copies
from demo.damage import DAMAGES, Database, damaged
from exactlyonce import Colocated, Outbox, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.records.library import BOOKS
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from spark_jobs.job.exits import AccountError
from spark_jobs.report.contents import Contents
from spark_jobs.transforms.rules import ALL
from tests.spark.auditor.app import shot
from tests.spark.auditor.conftest import Audits, Games, found
from tests.spark.conftest import persistent

SHOTS = 60
STRATEGIES: dict[str, Strategy] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
}
"""By what the names of their games begin with."""


@dataclass(frozen=True)
class Audited:
    """Audits of all games before and after they were damaged.

    Attributes:
        clean, damaged: what the audits found.
        lines: what each wrote, one finding a line.
        expected: by strategy rules and entities that have to be found in its damaged games.
        again: audits of the damaged games, through one of the adapters.
    """

    clean: Contents
    damaged: Contents
    lines: tuple[list[str], list[str]]
    expected: dict[str, set[tuple[str, str]]]
    again: Callable[[str], Audits]


@pytest.fixture(scope="module")
def audited(spark: SparkSession, shared_cosmos: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    games = Games(spark, shared_cosmos, tmp_path_factory.mktemp("games"))
    database = games.played(())
    for place, (name, strategy) in enumerate(STRATEGIES.items()):
        games.play(database, (shot(place * SHOTS + number, prefix=f"{name}-") for number in range(SHOTS)), strategy)
    live = datetime.fromtimestamp(shared_cosmos.now(), timezone.utc)
    clean, before = games.audits(database, live_since=live)(), lines(games.folder)

    copy = copies.read(shared_cosmos, database)
    parts = {name: part_of(copy, f"{name}-") for name in STRATEGIES}
    expected = {name: damaged(part) for name, part in parts.items()}
    copies.write(shared_cosmos, f"{database}-copy", joined([*parts.values(), part_of(copy, "books")]))
    ages: dict[str, Any] = dict.fromkeys(("garbage_after", "awaited_after", "left_after"), "PT1H")

    def of_damaged(source: str) -> Audits:
        return games.audits(f"{database}-copy", live_since=live, source=source, **ages)

    found = of_damaged("feed_ranges")()
    return Audited(clean, found, (before, lines(games.folder)), expected, of_damaged)


def lines(folder: Path) -> list[str]:
    return (folder / "out" / "findings.jsonl").read_text().splitlines()


def part_of(database: Database, prefix: str) -> Database:
    """The documents of some games."""
    part = Database()
    for (_, target), (_, container) in zip(part.containers(), database.containers(), strict=True):
        of = {name: item for name, item in container.items() if game_of(item).startswith(prefix)}
        target.update(of)
    return part


def game_of(document: dict[str, object]) -> str:
    pk = str(document.get("pk"))
    return str(document.get("gameId") or (pk if pk == BOOKS else json.loads(pk)[-1]))


def joined(parts: Iterable[Database]) -> Database:
    """The documents of all."""
    whole = Database()
    for part in parts:
        for (_, target), (_, container) in zip(whole.containers(), part.containers(), strict=True):
            target.update(container)
    return whole


def test_games_in_which_all_went_well_have_no_findings(audited: Audited) -> None:
    assert found(audited.clean) == set()
    assert audited.clean.messages == SHOTS * len(STRATEGIES)
    assert audited.lines[0] == []


def test_the_damage_of_all_strategies_is_found_and_nothing_else_and_every_finding_is_a_line(audited: Audited) -> None:
    everything = set().union(*audited.expected.values())
    assert found(audited.damaged) == everything
    assert len(audited.lines[1]) == audited.damaged.total == len(audited.damaged.findings)
    assert {(item["rule"], item["entity"]) for item in map(json.loads, audited.lines[1])} == everything


def test_documents_of_messages_that_nobody_keeps_are_counted_for_clean_up(audited: Audited) -> None:
    assert audited.clean.garbage == 0
    assert audited.damaged.garbage == len(STRATEGIES)


@pytest.mark.classic
def test_the_connector_gives_an_audit_the_same_findings(audited: Audited, connector_jar: str, tmp_path: Path) -> None:
    through = replace(audited.again("connector"), out=tmp_path / "out")()
    assert sorted(lines(tmp_path)) == sorted(audited.lines[1])
    assert (through.entities, through.messages) == (audited.damaged.entities, audited.damaged.messages)


def test_every_rule_has_its_damage(audited: Audited) -> None:
    assert {rule for found in audited.expected.values() for rule, _ in found} == {rule.name for rule in ALL}
    assert len(DAMAGES) == 8


@pytest.mark.classic
def test_an_audit_that_ends_half_read_leaves_no_rows_behind(
    games: Games, spark: SparkSession, cosmos: RunningEmulator
) -> None:
    database = games.played(shot(number, 1) for number in range(2))
    cosmos.add_fault(FaultRule(database, "exactlyonce", ("query",), when="before", action="status", status=403))
    before = persistent(spark)
    with pytest.raises(AccountError):
        games.audits(database)()
    assert persistent(spark) <= before
