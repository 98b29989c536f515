"""Between full audits only what changed and what is open is judged, and that as a full audit would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import SparkSession

from demo.copies import read
from demo.damage import History, owed, twice
from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from tests.spark.auditor.app import shot
from tests.spark.auditor.conftest import LATER, Games, found

GAMES = 100


@pytest.fixture
def games(spark: SparkSession, tmp_path: Path) -> Iterator[Games]:
    """On an account of the test's own, whose clock it moves on."""
    with running_emulator(AccountSettings(partitions=3), clock=Clock()) as cosmos:
        yield Games(spark, cosmos, tmp_path)


def test_changed_and_open_entities_are_judged_and_no_others(games: Games) -> None:
    database = games.played(shot(number, GAMES) for number in range(3 * GAMES))
    games.cosmos.advance_clock(LATER)
    audit = games.audits(database)
    checkpoint = str(games.folder / "checkpoint")
    owing = History(read(games.cosmos, database), "game-1")
    owed(owing)
    owing.ledger["outbox"][-1]["at"] = int(games.cosmos.now() * 1_000_000)
    write(games, database, owing)
    full = audit(later=0, checkpoint=checkpoint)
    assert (full.mode, full.total, full.open) == ("full", 0, 1)  # What game-1 owes is in its grace.

    games.cosmos.advance_clock(2 * LATER)
    changed = History(read(games.cosmos, database), "game-7")
    twice(changed)
    write(games, database, changed)
    second = audit(later=0, checkpoint=checkpoint)
    assert second.mode == "incremental"
    assert found(second) == {("at_most_one_state_change", changed.key), ("owing_too_long", owing.key)}
    assert second.entities == 4  # Both games, and their lines on the board.
    assert second.rows < full.rows / 5
    assert {rule.name for rule in second.rules if rule.skipped} >= {"ledger_hole", "output_lost"}

    third = audit(later=0, checkpoint=checkpoint)  # Nothing changed; both are still so.
    assert found(third) == found(second)


def write(games: Games, database: str, history: History) -> None:
    """Write the documents of a game, as somebody with an editor would."""
    with CosmosClient(games.cosmos.endpoint, games.cosmos.key) as client:
        for name, container in history.database.containers():
            for document in container.values():
                if history.game in (document.get("gameId"), *document.get("pk", "").split('"')):
                    client.get_database_client(database).get_container_client(name).upsert_item(document)
