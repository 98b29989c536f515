"""A local Cosmos of their own for clean-ups, since they move its clock; and shops in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import Row, SparkSession

from exactlyonce import Envelope
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.library import Stage
from exactlyonce.records.application import KIND
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.library import StagedOutputs
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.values.lifetimes import CLOCK_TOLERANCE, RETENTION
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.faults import FaultRule
from spark_jobs.cleaner.cleaner import Cleaner, Options
from spark_jobs.cleaner.summary import TABLE, Summary
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Source
from spark_jobs.work import Work
from tests.spark.application import beginning
from tests.spark.cleaner import shop
from tests.spark.cleaner.shop import DAY, HOUR, App, create, everywhere, job, ref, within
from tests.spark.source.conftest import HASTE

Name = tuple[str, str, str]
"""Of a document: container, entity and id."""

PARTS = "spark.sql.shuffle.partitions"

_numbers = count(1)
_WRITES = frozenset({"create", "replace", "upsert", "patch", "delete", "batch"})


@dataclass
class Lines:
    """What a job reported while it ran, and into how many parts the session cut data then."""

    spark: SparkSession
    reported: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)

    def begin(self, what: str) -> None:
        self.reported.append(what)
        self.parts[what] = str(self.spark.conf.get(PARTS))

    def done(self, result: str) -> None:
        self.reported[-1] += f": {result}"


@dataclass
class Shops:
    """A database with shops of every type, and clean-ups of it."""

    spark: SparkSession
    cosmos: RunningEmulator
    folder: Path
    database: str = field(default_factory=lambda: f"cleanup-{next(_numbers)}")

    def __post_init__(self) -> None:
        self.lines = Lines(self.spark)

    def process(self, messages: Sequence[tuple[str, Envelope]], blobs: AsyncBlobs | None = None) -> list[Any]:
        """Process messages in an application that starts now; returns what was published."""

        async def process(app: App) -> list[Any]:
            await app.process(messages)
            return app.transport.queues["receipts"]

        found: list[Any] = within(self.cosmos, self.database, process, blobs)
        return found

    def stage(self, type: str, tx: str, name: str = "s") -> None:
        """Leave what an attempt staged that is lost."""
        entity = ref(type, name)
        staged = StagedOutputs(entity.key, "web/lost", tx, datetime.now(timezone.utc), ())
        within(self.cosmos, self.database, lambda app: app.store.perform(Stage(entity, (staged,))))

    def source(self, **more: Any) -> FeedRanges:
        return FeedRanges(self.spark, self.account, self.database, patience=HASTE, **more)

    @property
    def account(self) -> Account:
        return Account(self.cosmos.endpoint, self.cosmos.key)

    def clean(
        self,
        *,
        source: Source | None = None,
        limits: dict[str, Any] | None = None,
        retention: timedelta = RETENTION,
        pages: bool = True,
        **options: Any,
    ) -> Summary:
        """Clean up; a dry run, or with `delete=True`."""
        self.lines = Lines(self.spark)
        source = source or self.source()
        given: Job = job(self.database, **(limits or {}))
        backoff = Backoff(base=0.0, cap=0.0)
        now = beginning(self.cosmos.now(), retention)
        cleanup = Cleaner(Work(self.spark, given, self.account, source, now, self.lines), None, pages, backoff)
        return cleanup.run(Options(str(self.folder / "out"), **options))

    @property
    def listed(self) -> list[Row]:
        """What the last clean-up wrote down of documents that were to go."""
        return self.spark.read.parquet(str(self.folder / "out" / TABLE)).collect()

    def names(self, result: str) -> set[Name]:
        """Documents of the list that have a result."""
        return {(row.container, row.entity, row.id) for row in self.listed if row.result == result}

    def documents(self) -> dict[Name, dict[str, Any]]:
        """All documents of the library, entities left out, by container, entity and id."""
        return {
            (container, item.get("entity") or item["pk"], item["id"]): item
            for container, item in self.everything()
            if "_kind" in item or item.get("pk", KIND) != KIND
        }

    def everything(self) -> list[tuple[str, dict[str, Any]]]:
        """All documents, each with its container."""
        containers = dict.fromkeys([*(kind.container for kind in shop.TYPES.values()), "exactlyonce"])
        with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            database = client.get_database_client(self.database)
            return [
                (name, dict(item))
                for name in containers
                for item in database.get_container_client(name).read_all_items()
            ]

    def put(self, container: str, document: dict[str, Any]) -> None:
        """Write a document by hand."""
        with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            client.get_database_client(self.database).get_container_client(container).upsert_item(document)

    def remove(self, name: Name) -> None:
        """Delete a document by hand."""
        container, entity, id = name
        with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            there = client.get_database_client(self.database).get_container_client(container)
            there.delete_item(id, entity if container == "exactlyonce" else json.loads(entity)[1])

    def writes_after(self, number: int) -> list[str]:
        """Writes that the service was asked for."""
        asked = self.cosmos.requests(number)
        return [item.operation for item in asked if item.database == self.database and item.operation in _WRITES]

    def fault(self, **rule: Any) -> int:
        return self.cosmos.add_fault(FaultRule(self.database, **rule))


@pytest.fixture(scope="session")
def shared_cosmos() -> Iterator[RunningEmulator]:
    """A local Cosmos whose clock may be moved; its containers have several physical partitions."""
    with running_emulator(AccountSettings(partitions=3), clock=Clock()) as running:
        yield running


@pytest.fixture
def empty(spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path) -> Shops:
    """A database without any shop."""
    made = Shops(spark, cosmos, tmp_path)
    create(cosmos, made.database)
    return made


@pytest.fixture
def shops(empty: Shops) -> Shops:
    """Shops with old payments, forty days before young ones, and what lost attempts staged."""
    fill(empty)
    return empty


OLD, YOUNG = range(1, 6), range(6, 9)
BUSY = range(101, 135)
"""As many payments as one page and a ledger hold: outboxes get them, too."""
LOST = ("lost-long-ago", "lost-with-its-entity", "lost-today")


def fill(
    shops: Shops, names: Sequence[str] = ("s", "t"), *, retention: float = 40 * DAY, horizon: float = 2 * HOUR
) -> None:
    """Fill a database: each shop gets old payments, and so many seconds later young ones."""
    shops.process([item for name in names for item in (*busy(name, 0), *everywhere(OLD, name))])
    shops.stage("outbox", LOST[0])
    shops.stage("keeper", LOST[1], "nobody")
    shops.cosmos.advance_clock(retention)
    shops.process([item for name in names for item in (*busy(name, 100), *everywhere(YOUNG, name))])
    shops.stage("keeper", LOST[2])
    shops.cosmos.advance_clock(horizon)
    shops.stage("outbox", "under-way")


def busy(name: str, after: int) -> Sequence[tuple[str, Envelope]]:
    """Payments in an outbox, with these numbers and so many more."""
    return everywhere((number + after for number in BUSY), name, ["outbox"])


def to_go(shops: Shops, retention: float, horizon: float = HOUR) -> set[Name]:
    """What has to go, found without the job. An attempt that met a conflict may have staged what nothing names: it goes too."""
    ledgers = [item[LEDGER] for _, item in shops.everything() if LEDGER in item]
    named = {kept["tx"] for ledger in ledgers for kept in ledger.get("kept", ())}
    now = shops.cosmos.now()

    def goes(name: Name, item: dict[str, Any]) -> bool:
        match item.get("kind"):
            case "staged":
                return item["tx"] not in named and int(item["_ts"]) < now - horizon
            case "page":
                return int(item["until"]) / 1000 < now - retention - CLOCK_TOLERANCE.total_seconds()
            case "book":
                return int(item["_ts"]) < now - 60 * DAY
        needed = '"events"' in name[1] and int(item["version"]) > 3  # Of an interval of three that is not full.
        return int(item["_ts"]) < now - retention and not needed

    return {name for name, item in shops.documents().items() if goes(name, item)}
