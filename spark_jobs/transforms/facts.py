"""The facts that rules judge: the contents of documents, sorted by subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import LongType, StringType, StructField, StructType

from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, RETENTION
from spark_jobs.job import limits
from spark_jobs.spark.frames import capped, kept, none, packed
from spark_jobs.transforms.names import plain_source, prefix, source_of
from spark_jobs.transforms.schemas import DOCUMENT

SEEN: Final = StructType(
    [StructField("entity", StringType()), StructField("version", LongType()), StructField("seen_at", LongType())]
)
"""Entities that an earlier audit saw, the version of the ledger that it read, and when (seconds)."""

BY_ENTITY: Final = ("entities", "pages", "owing", "transactions", "staged", "requests", "numbered")
"""The frames of `Facts` of which each row is about a known entity."""
FRAMES: Final = (*BY_ENTITY, "parked", "books", "unreadable")
"""All frames of what documents say now."""

UNREADABLE: Final = "unreadable"
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "entities": ("entity",),
    "pages": ("page",),
    "owing": ("entity",),
    "transactions": ("processed", "entry"),
    "staged": ("staged",),
    "requests": ("request",),
    "numbered": ("numbered",),
    "parked": ("parked", "unparked"),
    "books": ("book",),
    "unreadable": (UNREADABLE,),
}
"""The kinds of documents that the rows of each frame come from; those with a problem, of whatever kind, are `UNREADABLE`."""

_COMMIT: Final = ("entity", "version", "message", "tx", "at", "digest", "outputs", "answer", "owes")
_OF_LEDGER: Final = ("version", "protocol", "marks", "to", "cut", "complete", "answers", "receptions", "calls", "kept")
_OF_PAGE: Final = ("entity", "number", "version", "before", "begin", "until", "marks", "to", "answers", "ts")
_PAGE: Final = (*_OF_PAGE, "cut", "stored")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Ages from which on rules judge.

    Attributes:
        retention: age from which records of a commit may be gone.
        arrival: longest time from a commit until a consumer processes its outputs, if it refuses older ones.
        horizon: longest life of an attempt and its requests.
        owed_after, lost_after, gap_after: age from which an output owed, an output unknown to its consumer, and a gap are
            findings. An output that is sent with a delay is unknown to its consumer until the delay is over.
        awaited_after: age from which a call whose reply did not come is a finding.
        garbage_after: age from which staged outputs that belong to no commit are a finding.
        left_after: age from which a request that its caller opened and did not close is a finding.
        grace: age below which rules do not compare containers.
        live_since: when the application went live: there was no commit before. None if that is not known.
        consumers: by destination the entity type of this job that consumes it.
        types: the entity types whose containers are read; None for all types with documents.
        all_types: whether these are all entity types of the application.
    """

    retention: timedelta = RETENTION
    arrival: timedelta = RETENTION - AHEAD - CLOCK_TOLERANCE
    horizon: timedelta = limits.HORIZON
    owed_after: timedelta = limits.OWED_AFTER
    lost_after: timedelta = limits.LOST_AFTER
    gap_after: timedelta = limits.GAP_AFTER
    awaited_after: timedelta = limits.AWAITED_AFTER
    garbage_after: timedelta = limits.GARBAGE_AFTER
    left_after: timedelta = limits.LEFT_AFTER
    grace: timedelta = limits.GRACE
    live_since: datetime | None = None
    consumers: Mapping[str, str] = field(default_factory=dict)
    types: frozenset[str] | None = None
    all_types: bool = True

    def kept_since(self, now: int) -> int:
        """Second since which no record can have expired, with the life of an attempt as a margin."""
        return before(now, self.retention - self.horizon)

    def certain_since(self, now: int) -> int:
        """Second of a commit since which the message that caused the commit, and what the commit sent, are not forgotten.

        They are remembered by a time that may be as much earlier as a message is judged.
        """
        return before(now, self.retention - self.arrival)


@dataclass(frozen=True, slots=True)
class Facts:
    """Frames of the documents' contents. Unreadable documents are in `unreadable` only.

    Attributes:
        entities: one row per entity that has a ledger: `entity, id, type, ts, source` (CloudEvents source of its outputs),
            `prefix` (that source as message keys begin with it), and `version, protocol, marks, to, cut, complete, answers,
            receptions, calls, kept` of its ledger.
        pages: `entity, number, version, before, begin, until, marks, to, answers, ts`; and `cut, stored`, of the ledger: the
            number of its newest page, and its version. Pages above `cut` do not count: the ledger was read before.
        owing: entries of ledgers that were not known to be paid: `entity, cause, tx, at, outputs` (how many), `ts` of
            the ledger.
        transactions: records and stream entries in the entity's partition: `entity, version, message, tx, at, digest, outputs,
            answer, owes, origin` ("companion" or "stream"), `ts` of the document, and `after`: second before which no later
            version was committed.
        staged: documents of kept messages: `entity, message, tx, at, ts`.
        requests: that callers opened and have not closed: `entity, id` (of the document), `answered, at, ts`.
        numbered: `entity, channel, number, source, message, held, at, ts`.
        parked: messages that are parked, or were: `entity, message, at, ts, renewed` (time of the new message that it was
            made), `gone` (whether it was discarded or sent again), `sent` (key under which it was sent again).
        books: `book, used, open, stuck, ts`.
        unreadable: `place, id, entity, message, ts, problem`.
        seen: `SEEN`: the versions that earlier audits saw; None if there was none.
        shared: frames that several rules read, by name: see `once`.
    """

    entities: DataFrame
    pages: DataFrame
    owing: DataFrame
    transactions: DataFrame
    staged: DataFrame
    requests: DataFrame
    numbered: DataFrame
    parked: DataFrame
    books: DataFrame
    unreadable: DataFrame
    seen: DataFrame | None = None
    shared: dict[str, DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: DataFrame, seen: DataFrame | None = None, *, plain: bool = False) -> Facts:
        """The facts in documents.

        Args:
            documents: `schemas.DOCUMENT`, of all places. They are read more than once: cache or write them first.
            seen: `SEEN`.
            plain: whether it is known that the source of every entity is; see `names`.
        """
        known = documents.where(F.col("problem").isNull())
        ledgers = known.where((F.col("kind") == "entity") & F.col("ledger").isNotNull())
        entities = _entities(ledgers, plain)
        return cls(
            entities,
            _pages(known, entities),
            _owing(ledgers),
            _transactions(known),
            known.where(F.col("kind") == "staged").select("entity", "message", "tx", "at", "ts"),
            known.where(F.col("kind") == "request").select(
                "entity", "id", F.col("answer").isNotNull().alias("answered"), "at", "ts"
            ),
            known.where(F.col("kind") == "numbered").select(
                "entity", "order.channel", "order.number", "source", "message", "held", "at", "ts"
            ),
            known.where(F.col("kind").isin("parked", "unparked")).select(
                "entity", "message", "at", "ts", "renewed", (F.col("kind") == "unparked").alias("gone"), "sent"
            ),
            known.where(F.col("kind") == "book").select(
                F.substring_index("id", ":", -1).alias("book"), "used", "open", "stuck", "ts"
            ),
            documents.where(F.col("problem").isNotNull()).select("place", "id", "entity", "message", "ts", "problem"),
            seen,
        )

    def made(self, sizes: Mapping[str, int]) -> Facts:
        """The same facts, each frame made now: a dozen rules read it.

        Args:
            sizes: of each frame that has rows, how many they are, or how many documents they come from. The others are empty.
        """

        def one(name: str) -> DataFrame:
            frame: DataFrame = getattr(self, name)
            if not sizes.get(name):
                return none(frame.sparkSession, frame.schema)
            return kept(packed(frame, sizes[name]))

        frames: dict[str, Any] = {name: one(name) for name in FRAMES}
        return replace(self, **frames, shared={})

    def packed(self, rows: int) -> Facts:
        """The same facts, of so many rows in all, in no more parts than are worth a task."""
        frames: dict[str, Any] = {name: packed(getattr(self, name), rows) for name in FRAMES}
        return replace(self, **frames, shared={})

    def without_unreadable(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame without those of entities that have unreadable documents.

        Rules about absence skip these entities: the missing fact may be in the unreadable document.
        """
        return frame.join(self.unreadable.select("entity").distinct(), "entity", "left_anti")

    def of_entities(self, entities: DataFrame) -> Facts:
        """The facts about some entities, and all unreadable documents and parked messages.

        Args:
            entities: with a column `entity`.
        """
        chosen = {name: getattr(self, name).join(entities, "entity", "left_semi") for name in BY_ENTITY}
        seen = None if self.seen is None else self.seen.join(entities, "entity", "left_semi")
        return replace(self, **chosen, seen=seen, shared={})

    def once(self, make: Callable[[Facts, Thresholds, int], DataFrame], thresholds: Thresholds, now: int) -> DataFrame:
        """A frame of these facts that several rules read: made, and kept on the executors, when the first asks for it."""
        name = f"{make.__name__}, {thresholds}, {now}"
        if name not in self.shared:
            self.shared[name] = kept(make(self, thresholds, now))
        return self.shared[name]


def facts_in(documents: DataFrame, seen: DataFrame | None = None) -> Facts:
    """The facts in documents, made now. `documents, seen` as of `Facts.of`."""
    known = {item for kinds in KINDS.values() for item in kinds}
    kind = F.when(F.col("problem").isNull(), F.col("kind")).otherwise(UNREADABLE)
    not_plain = F.count(F.when((F.col("kind") == "entity") & plain_source("entity").isNull(), 1))
    counted = documents.groupBy(kind.alias("kind")).agg(F.count(F.lit(1)).alias("rows"), not_plain.alias("not_plain"))
    rows, _ = capped(counted.where(F.col("kind").isin(*known)), len(known))
    counts = {row["kind"]: row["rows"] for row in rows}
    facts = Facts.of(documents, seen, plain=not any(row["not_plain"] for row in rows))
    return facts.made({name: sum(counts.get(kind, 0) for kind in KINDS[name]) for name in FRAMES})


def kept_messages(facts: Facts) -> DataFrame:
    """Messages that entities keep until they are due: `entity, ts, id, due, tx`."""
    return facts.entities.select("entity", "ts", F.explode("kept").alias("one")).select("entity", "ts", "one.*")


def before(now: int, age: timedelta) -> int:
    """The second this long ago."""
    return now - int(age.total_seconds())


def second(column: Column | str) -> Column:
    """A timestamp in seconds."""
    return F.unix_seconds(column) if isinstance(column, Column) else F.unix_seconds(F.col(column))


def type_of(entity: Column | str) -> Column:
    """The type in the key of an entity."""
    return F.get_json_object(entity, "$[0]")


def _entities(ledgers: DataFrame, plain: bool) -> DataFrame:
    source = plain_source("entity")
    if not plain:
        source = F.coalesce(source, source_of(F.when(source.isNull(), F.col("entity"))))
    return ledgers.withColumn("source", source).select(
        "entity",
        "id",
        type_of("entity").alias("type"),
        "ts",
        "source",
        prefix("source").alias("prefix"),
        *(F.col(f"ledger.{name}").alias(name) for name in _OF_LEDGER),
    )


def _pages(known: DataFrame, entities: DataFrame) -> DataFrame:
    pages = (
        known.where(F.col("kind") == "page")
        .select(*_OF_PAGE)
        .withColumns(
            {
                "before": F.coalesce("before", F.lit(-1)),
                "to": F.coalesce("to", F.array().cast("array<string>")),
                "answers": F.coalesce("answers", F.array().cast(DOCUMENT["answers"].dataType)),
            }
        )
    )
    ledgers = entities.select("entity", "cut", F.col("version").alias("stored"))
    return pages.join(ledgers, "entity", "left").select(*_PAGE)


def _owing(ledgers: DataFrame) -> DataFrame:
    """Entries of ledgers, which may owe."""
    rows = ledgers.select("entity", "ts", F.explode("ledger.outbox").alias("entry"))
    number = F.coalesce(F.array_size("entry.outputs"), F.lit(0))
    return rows.select(
        "entity", "entry.cause", "entry.tx", F.timestamp_micros("entry.at").alias("at"), number.alias("outputs"), "ts"
    )


def _transactions(known: DataFrame) -> DataFrame:
    rows = known.where(F.col("kind").isin("processed", "entry"))
    origin = F.when(F.col("kind") == "entry", "stream").otherwise("companion")
    # Companion records are written again when their outputs are published, perhaps long after a later commit.
    rewritten = (origin == "companion") & (F.size("outputs") > 0)
    after = F.when(rewritten, F.least("ts", second("at"))).otherwise(F.col("ts"))
    return rows.select(*_COMMIT, origin.alias("origin"), "ts", after.alias("after"))
