"""An absent entity whose tombstone would share a unique key with another one: it has no fence, so what it left behind stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce.drivers.driver import AsyncDriver, Backoff
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Awaited
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import LoadStaged, Stage
from exactlyonce.records.blobs import Author, ListedBlob
from exactlyonce.records.library import StagedOutputs
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import InstantClock
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import RETENTION
from spark_jobs.cleaner.blobs import LostBlobs
from spark_jobs.cleaner.fence import cleaned
from spark_jobs.job.configuration import EntityPlace

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ANN, BOB = (EntityRef("person", ("acme",), id) for id in ("ann", "bob"))


def tombstone(entity: EntityRef) -> dict[str, object]:
    return {"id": entity.id, "company": "acme"}


@dataclass
class Anywhere:
    """The part of a `Place` that decides about one entity."""

    writes: bool = True

    def absent(self, entity: EntityRef) -> Mapping[str, object]:
        return tombstone(entity)


@pytest.fixture
def store() -> MemoryStore:
    """Ann has no email, so nobody else of her company can have none."""
    store = MemoryStore(InstantClock().now, unique_keys={"person": [["/email"]]})
    store.perform(SaveEntity(ANN, Json.of(tombstone(ANN)), None))
    return store


@pytest.fixture
def driver(store: MemoryStore) -> AsyncDriver:
    return AsyncDriver(Awaited(store), Publisher({}), Runtime(InstantClock()))


async def test_staged_outputs_stay(store: MemoryStore, driver: AsyncDriver) -> None:
    staged = StagedOutputs(BOB.key, "web/m-1", "tx-1", AT, ())
    store.perform(Stage(BOB, (staged,)))
    outcomes = await cleaned(driver, BOB, ("tx-1",), tombstone(BOB), Backoff(tries=1))
    assert outcomes == {"tx-1": "not decided"}
    found: Any = store.perform(LoadStaged(BOB, ("tx-1",), None))
    assert found.documents == (staged,)


async def test_blobs_stay(driver: AsyncDriver) -> None:
    place: Any = Anywhere()
    nothing: Any = None
    lost = LostBlobs(nothing, RETENTION, place, nothing, nothing, Backoff(tries=1))
    people = EntityPlace(type="person", container="people", partition_key=("/company",), protocol="outbox")
    blob = ListedBlob("person/bob/a", Author(BOB, "web/m-1", "tx-1", AT), timedelta(days=2))
    await lost._of_one(driver, {"person": people}, (blob,))
    assert {str(result): number for result, number in lost.results.items()} == {"not decided": 1}
    assert lost.names == []
