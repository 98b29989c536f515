"""Random histories under the fault model, cleaned up in between: who comes again finds its mark, or is refused as too old, and
an attempt that could still commit finds what it staged, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from exactlyonce import Envelope
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.companions import DeleteCompanions
from exactlyonce.effects.library import DeletePages, DeleteStaged
from exactlyonce.errors import DamagedDocument, DatabaseRestored, TooOldToJudge, TryAgainLater
from exactlyonce.stores.memory.store import NoTrouble
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import Process, SeededTrouble, World
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, stable_text
from exactlyonce.values.lifetimes import RETENTION
from spark_jobs.cleaner.fence import cleaned, entity_of
from spark_jobs.cleaner.verdicts import GOES
from tests.asking import sweep
from tests.samples import FATES
from tests.spark.application import beginning
from tests.spark.cleaner.asking import stored_in, verdicts
from tests.spark.cleaner.shop import DAY, RECEIPTS, TYPES, job, paid

ROUNDS = 4
BUSY, QUIET = (1, 100), (4, 9)
"""Shops of a type, and messages of each: so many that marks leave for pages, and few."""
JOB = job("in-memory", horizon=1)
Message = tuple[str, Envelope]


@dataclass
class History:
    """Shops of every type in one world. Each gets its messages over months, some of them again and again."""

    spark: SparkSession
    random: Random
    retention: timedelta = RETENTION
    fences: bool = True
    came: dict[tuple[str, ...], int] = field(default_factory=dict)
    refused: int = 0
    missing: int = 0
    gone: int = 0
    pages: int = 0

    def __post_init__(self) -> None:
        self.world = World([RECEIPTS], random=self.random, trouble=SeededTrouble(self.random, FATES, stale=0.2, lag=3))

    @property
    def now(self) -> int:
        return int(self.world.clock.now().timestamp())

    async def play(self) -> None:
        """Deliver, clean up while attempts are under way, let time pass; at last, deliver again whatever may come again."""
        messages = list(all_messages())
        for turn in range(ROUNDS):
            fresh = [message for message in messages if int(message[1].id.removeprefix("m-")) % ROUNDS == turn]
            copies = [message for message in messages if _name(message) in self.came]
            await self._deliver([*fresh, *self.random.sample(copies, len(copies) // 4)], cleans=turn > 1)
            self.world.clock.advance(self.random.randint(8, 20) * DAY)  # type: ignore[attr-defined]
        self.world.store._trouble = NoTrouble()
        await self.clean(until=None)
        await self._deliver(messages, cleans=False)
        await self._finish({TYPES[type].ref_of(envelope) for type, envelope in messages})

    async def _deliver(self, messages: list[Message], *, cleans: bool) -> None:
        self.random.shuffle(messages)
        half = len(messages) // 2
        while messages:
            some, messages = messages[:40], messages[40:]
            process = self.world.process(backoff=Backoff(tries=4))
            tasks = [asyncio.create_task(self._come(process, item)) for item in some]
            for _ in range(self.random.randint(0, 200)):
                await asyncio.sleep(0)
            if cleans and len(messages) <= half:
                await self.clean(until=self.random.randint(1, 10**6))
                cleans = False
            if self.random.random() < 0.2:
                await process.crash()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await process.close()
            self.world.store.land_delayed()
            for one, result in zip(some, results, strict=True):
                if isinstance(result, TooOldToJudge):
                    self.refused += 1
                elif isinstance(result, (DamagedDocument, DatabaseRestored)):
                    self.missing += 1
                elif isinstance(result, (asyncio.CancelledError, TryAgainLater)):
                    messages.append(one)  # Its queue delivers it again.
                elif result is not None:
                    raise result

    async def _come(self, process: Process, message: Message) -> None:
        type, envelope = message
        first = self.came.setdefault(_name(message), self.now)
        timed = ((STABLE_TIME, stable_text(first * 1000)),) if first % 2 else ()
        time = datetime.fromtimestamp(first, timezone.utc)
        dated = replace(envelope, time=time, extensions=tuple(sorted((*envelope.extensions, *timed))))
        await process.deliver(TYPES[type], dated)

    async def _finish(self, refs: set[EntityRef]) -> None:
        """Drop what was published from records and outboxes, as the sweeper does."""
        last = self.world.process()
        for ref in refs:
            protocol = TYPES[ref.type].strategy.name
            if protocol in ("outbox", "colocated"):
                await last.run(ref, partial(sweep, ref, by=protocol))
        await last.close()

    async def clean(self, until: int | None) -> None:
        """Clean up by a view that may be old: what was written up to a number of writes."""
        written = self.world.store._writes
        view = None if until is None else max(written - until % 50, 1)
        judged = verdicts(self.spark, stored_in(self.world.store, JOB, view), JOB, beginning(self.now, self.retention))
        # Chance would follow another order of rows to another history.
        found = judged.where((f.col("verdict") == GOES) & (f.col("kind") != "book")).orderBy("entity", "id").collect()
        driver = self.world.process()._driver
        for row in found:
            entity, store = entity_of(row.entity), self.world.store
            self.gone += 1
            if row.kind == "staged" and not self.fences:
                store.perform(DeleteStaged(entity, (row.tx,)))
            elif row.kind == "staged":
                await cleaned(driver, entity, (row.tx,), {"id": entity.id}, Backoff(tries=2))
            elif row.kind == "page":
                store.perform(DeletePages(entity, ((int(row.id.removeprefix("page:")), row.etag),)))
                self.pages += 1
            else:
                store.perform(DeleteCompanions(entity, ((row.id, row.etag),)))


def all_messages() -> Iterator[Message]:
    """The messages of all shops."""
    for type in TYPES:
        shops, messages = BUSY if type == "outbox" else QUIET
        yield from (paid(type, 1 + n, f"s{shop}") for shop in range(shops) for n in range(messages))


def _name(message: Message) -> tuple[str, ...]:
    type, envelope = message
    return type, envelope.data.value["shop"], envelope.id


@settings(
    max_examples=2,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32))
def test_after_clean_ups_copies_of_any_age_change_nothing_and_nothing_is_lost(spark: SparkSession, seed: int) -> None:
    history = History(spark, Random(seed))
    asyncio.run(history.play())
    assert violations(history.world.facts(), drained=True) == ()
    assert len(history.world.facts().acknowledged) == len(list(all_messages()))
    assert history.gone > 50
    assert history.pages > 0
    assert (history.refused > 50, history.missing) == (True, 0)


def test_a_clean_up_that_takes_too_much_would_be_noticed(spark: SparkSession) -> None:
    hasty = History(spark, Random(3), retention=timedelta(days=5))
    asyncio.run(hasty.play())
    assert {violation.property for violation in violations(hasty.world.facts(), drained=True)} >= {
        "at_most_one_state_change"
    }
    assert hasty.missing > 0  # An outbox misses its newest page, a stream its entries.
