"""The whole audit on the local Cosmos: what is damaged is found, what is not is not."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from devtools.demo import copies
from devtools.demo.damage import DAMAGES, damaged
from exactlyonce import Outbox, VersionStream
from exactlyonce.handling.attempts import Strategy
from spark_jobs.transforms.rules import ALL
from tests.spark.audit.app import shot
from tests.spark.audit.conftest import Games, found

SHOTS = 60
STRATEGIES: dict[str, Strategy] = {
    "outbox": Outbox(window=2),
    "stream": VersionStream(),
}
LIVE = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_game_in_which_all_went_well_has_no_findings_and_damage_of_every_kind_is_found(
    games: Games, strategy: Strategy
) -> None:
    database = games.played((shot(number) for number in range(SHOTS)), strategy)
    live = datetime.fromtimestamp(games.cosmos.now(), timezone.utc)
    clean = games.audits(database, strategy, live_since=live)()
    assert found(clean) == set()
    assert clean.transactions == SHOTS
    assert (games.folder / "out" / "findings.jsonl").read_text() == ""

    copy = copies.read(games.cosmos, database)
    expected = damaged(copy)
    copies.write(games.cosmos, f"{database}-copy", copy)
    audit = games.audits(f"{database}-copy", strategy, live_since=live)()
    assert found(audit) == expected
    lines = (games.folder / "out" / "findings.jsonl").read_text().splitlines()
    assert len(lines) == audit.total == len(audit.findings)
    assert {(one["rule"], one["entity"]) for one in map(json.loads, lines)} == expected


def test_every_rule_has_its_damage(games: Games) -> None:
    database = games.played(shot(number) for number in range(SHOTS))
    rules = {rule for rule, _ in damaged(copies.read(games.cosmos, database))}
    assert rules == {rule.name for rule in ALL}
    assert len(DAMAGES) == 8
