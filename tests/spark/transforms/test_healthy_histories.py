"""Histories of weeks in which the library kept its promise, whatever happened: nothing is found in them, at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from exactlyonce.protocols.outbox import draft
from exactlyonce.records.ledger import read_entity
from spark_jobs.transforms.facts import SEEN, Facts, Thresholds, facts_in
from spark_jobs.transforms.rules import ALL
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.conftest import Kept, all_findings, as_findings
from tests.spark.transforms.dumping import moved, rows, stored_in
from tests.spark.transforms.pipelines import LIFETIMES, READERS, SENDERS, Pipeline
from tests.spark.transforms.planting import NOW, seconds

SNAPSHOTS = (16, 26)
"""After how many rounds each history is looked at."""


@dataclass
class Looked:
    """Looks at all histories, as of one time.

    Attributes:
        rows: of the documents.
        seen: what audits saw before.
        moving: of looks while documents are written, so that containers are of different moments.
        consumers: as thresholds have them.
        removed: how many documents clean-up took.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    seen: list[tuple[str, int, int]] = field(default_factory=list)
    moving: list[tuple[str, str]] = field(default_factory=list)
    consumers: dict[str, str] = field(default_factory=dict)
    removed: int = 0

    async def add(self, pipeline: Pipeline, last: int) -> None:
        """Play a history up to one of the snapshots, and look at it."""
        seen: list[tuple[str, int, datetime]] = []
        for number, rounds in enumerate(SNAPSHOTS[: last + 1]):
            seen += versions_of(pipeline)
            await pipeline.run(rounds - (SNAPSHOTS[number - 1] if number else 0))
        now = pipeline.clock.now()
        self.rows += moved(rows(stored_in(pipeline.world.store, pipeline.paths)), NOW - now)
        self.seen += [(key, version, seconds(now - at)) for key, version, at in seen]
        self.consumers[pipeline.queue_name] = pipeline.board_type
        self.removed += pipeline.removed
        self._look_while_it_moves(pipeline)

    def _look_while_it_moves(self, pipeline: Pipeline) -> None:
        """What a look sees that began some writes ago, and whose reads took a while."""
        store, random = pipeline.world.store, pipeline.random
        begun, middle = sorted(store._writes - random.randint(0, 12) for _ in range(2))
        until = dict(zip(random.sample([*pipeline.paths], 2), (begun, middle), strict=True))
        until[LIBRARY] = random.randint(middle, store._writes)
        written = (version for log in (*store.entities.values(), *store.library.values()) for version in log.log)
        start = max(version.timestamp for version in written if int(version.etag.strip('"')) <= begun)
        later = NOW - datetime.fromtimestamp(start, tz=NOW.tzinfo)
        self.moving += moved(rows(stored_in(store, pipeline.paths, until)), later)


def versions_of(pipeline: Pipeline) -> Iterator[tuple[str, int, datetime]]:
    """What an audit sees of the entities of a history now."""
    for type in (pipeline.senders[0], pipeline.board):
        for ref in map(type.ref, pipeline.names):
            newest = pipeline.world.store._entity(ref).newest(ref.id)
            if newest is not None and (ledger := read_entity(ref, newest.document).ledger) is not None:
                yield ref.key, ledger.version, pipeline.clock.now()


async def look() -> Looked:
    looked = Looked()
    kinds = ((senders, reader) for senders in SENDERS for reader in READERS)
    for seed, (senders, reader) in enumerate(kinds):
        for last in range(len(SNAPSHOTS)):
            name = f"_{senders}_{reader}_{last}"
            await looked.add(Pipeline(seed, name, senders, reader), last)
    return looked


@pytest.fixture(scope="module")
def looked() -> Looked:
    with patch.multiple(draft, MOST_MARKS=4, MARKS_STAY=2):  # So that pages are cut.
        return asyncio.run(look())


@pytest.fixture(scope="module")
def facts(looked: Looked, kept: Kept, spark: SparkSession) -> Facts:
    return facts_in(kept(looked.rows), spark.createDataFrame(looked.seen, SEEN))


def limits(looked: Looked) -> Thresholds:
    """As short as they may be: no time for a second look, none for what is on its way between two containers."""
    waiting = LIFETIMES.delivery_limit + timedelta(days=1)
    return Thresholds(
        retention=LIFETIMES.retention.current,
        arrival=LIFETIMES.delivery_limit,
        lost_after=waiting,
        gap_after=waiting,
        grace=timedelta(0),
        consumers=looked.consumers,
    )


def test_nothing_is_found_in_any_history_at_any_time(facts: Facts, looked: Looked) -> None:
    assert as_findings(all_findings(facts, limits(looked), seconds())) == []


def test_a_look_at_different_moments_accuses_nobody(looked: Looked, kept: Kept) -> None:
    thresholds = replace(limits(looked), grace=timedelta(minutes=5))
    assert as_findings(all_findings(facts_in(kept(looked.moving)), thresholds, seconds())) == []


def test_the_histories_are_eventful(facts: Facts, looked: Looked) -> None:
    assert looked.removed > 50
    # Had nothing been allowed to expire, what is missing would be found.
    early = replace(limits(looked), retention=timedelta(days=1000))
    rules = [rule for rule in ALL if rule.name in ("ledger_hole", "dedup_expired_early", "page_missing")]
    found = as_findings(all_findings(facts, early, seconds(), rules))
    senders = {
        rule.name: {str(item.entity).split("_")[-3] for item in found if item.rule == rule.name} for rule in rules
    }
    assert senders["ledger_hole"] >= {"colocated", "stream"}
    assert senders["page_missing"] >= {"outbox"}
