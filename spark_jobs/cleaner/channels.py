"""Forgetting channels: `forget_channels` for each entity that has old ones, behind its fence.

Entities of types with `forget_after` are looked at if a document of a channel says that it is old and has no gap. Which they
are is a matter of usefulness: the protocol judges every channel itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import LongType, StringType, StructField, StructType

from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.retry import Backoff
from exactlyonce.protocols.outbox.clean_channels import forget_channels
from exactlyonce.records.channels import earliest_after
from spark_jobs.cleaner.fence import decided, entity_of, through
from spark_jobs.cleaner.store import Place
from spark_jobs.cleaner.verdicts import GOES, Reason
from spark_jobs.source.port import Made, Meter, Query, literal
from spark_jobs.source.tasks import made, together
from spark_jobs.spark.frames import kept
from spark_jobs.spark.head import capped
from spark_jobs.spark.session import parallelism
from spark_jobs.transforms.facts import type_of
from spark_jobs.work import Work

FORGOTTEN: Final = "forgotten"
_COLUMNS: Final = ('c["entity"]', 'c["channel"]["id"] AS channel')
_ROW: Final = "entity string, channel string"
_RESULTS: Final = StructType([StructField("result", StringType()), StructField("number", LongType())])


@dataclass(frozen=True)
class Forgetting:
    """Forgets channels of entities; Spark ships it to each task.

    Attributes:
        place: the containers.
        meter: counts RU.
        until: by entity type the latest beginning of a channel that may be forgotten, in milliseconds since 1970.
        backoff: between attempts on an entity.
    """

    place: Place
    meter: Meter = field(repr=False)
    until: Mapping[str, int]
    backoff: Backoff = field(default_factory=Backoff)

    def __call__(self, rows: Iterable[Any]) -> Iterator[tuple[str, int]]:
        """Forget the channels of entities that may go; yields a result for each entity, and how many channels have it.

        Args:
            rows: with `entity` and `channels`, the number of channels that seem to be old and without a gap.

        Raises:
            ConfigurationError: the account refuses, a container is absent, or an entity belongs to another protocol.
        """
        return through(self.place, self.meter, ((row["entity"], row["channels"]) for row in rows), self._of_one)

    async def _of_one(self, driver: AsyncDriver, given: tuple[str, int]) -> tuple[str, int]:
        key, channels = given
        entity = entity_of(key)
        until = self.until[entity.type]
        result = await decided(driver, entity, lambda memory: forget_channels(entity, until, memory), self.backoff)
        if isinstance(result, Reason):
            return result.value, channels
        return FORGOTTEN if self.place.writes else GOES, len(result.channels)


def forget(work: Work, backoff: Backoff, *, writes: bool) -> dict[str, int] | None:
    """Forget old channels.

    Args:
        work: the session, the job, the account.
        backoff: between attempts on an entity.
        writes: whether to forget; if not, only what would be forgotten is counted.

    Returns:
        How many channels have each result; None if no entity type of the job forgets any.
    """
    now = work.beginning.now
    until = {type: int((now - age.total_seconds()) * 1000) for type, age in work.job.forgetting.items()}
    if not until:
        return None
    work.progress.begin("channels")
    tasks = parallelism(work.spark)
    rate = None if work.job.rate is None else work.job.rate / tasks
    place = Place.of(work.job, work.account, rate=rate, writes=writes)
    forgetting = partial(Forgetting, place, until=until, backoff=backoff)
    with _read(work, until) as read:
        rows = _entities(read.rows, until).repartition(tasks, "entity")
        # Kept, and not only held: making them again would fence every entity again.
        ended = made(rows, lambda meter: lambda given: together(forgetting(meter)(given)), _RESULTS, kept)
    work.source.spent.add(ended.spent)
    counted, _ = capped(ended.rows.groupBy("result").agg(F.sum("number").alias("number")), len(Reason) + 1)
    found = {row.result: row.number for row in counted if row.number}
    work.progress.done(f"{found.get(FORGOTTEN if writes else GOES, 0):,} are old")
    return found


def _read(work: Work, until: Mapping[str, int]) -> Made:
    """Read the documents of channels that may be old and have no gap."""
    received = 'c["channel"]["received"]'
    query = Query.of(
        work.job.library,
        _COLUMNS,
        'c["kind"] = "channel"',
        f'c["channel"]["id"] < {literal(earliest_after(max(until.values())))}',
        f"ARRAY_LENGTH({received}) = 1 AND {received}[0][0] = 1",
    )
    return work.source.read(query)


def _entities(raw: DataFrame, until: Mapping[str, int]) -> DataFrame:
    """The entities that seem to have channels to forget: `entity, channels`, how many."""
    found = raw.select(F.from_json("raw", _ROW).alias("row")).select("row.*")
    old = ((type_of("entity") == type) & (F.col("channel") < earliest_after(latest)) for type, latest in until.items())
    return found.where(reduce(or_, old)).groupBy("entity").agg(F.count_distinct("channel").alias("channels"))
