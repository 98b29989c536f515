"""One audit of a healthy history, one of a damaged, and one clean-up: what every change runs. The others have verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demo import copies
from demo.damage import damaged
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from tests.spark.auditor.app import shot
from tests.spark.auditor.conftest import Games, found
from tests.spark.cleaner.conftest import Shops, fill, to_go
from tests.spark.cleaner.shop import DAY, create

SHOTS = 60
"""Enough for damage of every kind."""


@pytest.fixture(scope="module")
def cosmos() -> Iterator[RunningEmulator]:
    """A local Cosmos whose clock may be moved."""
    with running_emulator(AccountSettings(partitions=3), clock=Clock()) as running:
        yield running


def test_an_audit_finds_damage_of_every_kind_and_nothing_else(
    spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path
) -> None:
    games = Games(spark, cosmos, tmp_path)
    database = games.played(shot(number) for number in range(SHOTS))
    live = datetime.fromtimestamp(cosmos.now(), timezone.utc)
    assert found(games.audits(database, live_since=live)()) == set()

    copy = copies.read(cosmos, database)
    expected = damaged(copy)
    copies.write(cosmos, f"{database}-copy", copy)
    ages: dict[str, Any] = dict.fromkeys(("garbage_after", "awaited_after", "left_after"), "PT1H")
    assert found(games.audits(f"{database}-copy", live_since=live, **ages)()) == expected


def test_a_clean_up_deletes_what_is_too_old_and_nothing_else(
    spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path
) -> None:
    shops = Shops(spark, cosmos, tmp_path)
    create(cosmos, shops.database)
    fill(shops)
    before, going = set(shops.documents()), to_go(shops, 30 * DAY)
    shops.clean(delete=True)
    assert shops.names("removed") == going != set()
    assert set(shops.documents()) == before - going
