"""The screen: a pass that clears most entities, so that rules about one entity alone judge only the rest.

The screen goes through all facts once, with an exchange by entity, and compares counts and hashes. An entity with a possible
finding of any age is never cleared; a doubtful entity may well be in order. The exception: two hashes of 64 bits of an entity
are equal by chance.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.marks import hash_in, marks_in
from spark_jobs.transforms.rules.expiry import proven_young
from spark_jobs.transforms.rules.holes import RECORDING
from spark_jobs.transforms.rules.sightings import counted, unpaid

_COLUMNS: Final = {
    "stored": "bigint",
    "recording": "boolean",
    "commit": "struct<version: bigint, message: bigint, tx: bigint, content: bigint,"
    " outputs: array<struct<id: bigint, content: bigint, place: bigint>>>",
    "marks": "array<bigint>",
    "answers": "array<bigint>",
    "page": "bigint",
    "named": "bigint",
    "proven": "bigint",
    "young": "bigint",
    "doubt": "boolean",
}
"""What a row says of its entity; null where it says nothing.

    stored, recording: version of the ledger, and whether each version has a record.
    commit: what a record says: version, and hashes of its message, its transaction and its whole content; and of each output
        hashes of its id, its whole content and its number.
    marks, answers: hashes of messages that a ledger or a page has marks of, and answers to.
    page, named: number of a page that counts, and of one that has to be there.
    proven: a version that the ledger had.
    young: first version that is proven to be younger than the retention.
    doubt: true if the rules have to judge the entity in any case.
"""


def screened(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What the documents about each entity show. Arguments as of a rule.

    Returns:
        `entity, doubtful`: whether rules about one entity alone have to judge it.
    """
    said = reduce(
        DataFrame.unionByName,
        (
            *_of_outboxes(facts, thresholds, now),
            _of_entities(facts, thresholds, now),
            _of_transactions(facts, thresholds, now),
            _of_others(facts, thresholds, now),
            _row(proven_young(facts, thresholds, now), young="first"),
        ),
    )
    known = (
        said.where(F.col("entity").isNotNull())
        .groupBy("entity")
        .agg(
            *(F.max(name).alias(name) for name in ("stored", "proven")),
            *(F.bool_or(name).alias(name) for name in ("recording", "doubt")),
            F.min("young").alias("young"),
            F.min("commit.version").alias("oldest"),
            F.max("commit.version").alias("newest"),
            # One list, and not a set for each hash: to make more than a few sets Spark sorts all rows first.
            F.collect_list("commit").alias("commits"),
            *(F.flatten(F.collect_list(name)).alias(name) for name in ("marks", "answers")),
            F.collect_list("page").alias("pages"),
            F.collect_list("named").alias("named"),
        )
        .withColumns({"versions": _number_of("commits.version"), "outputs": F.flatten("commits.outputs")})
    )
    twice = [F.size(F.array_distinct(name)) < F.size(name) for name in ("marks", "answers")]
    gone = F.size(F.array_except("named", "pages")) > 0
    reasons = (
        F.col("doubt"),
        *twice,
        gone,
        _disagrees(),
        _outputs_share(),
        _lost(),
        F.col("recording") & _incomplete(),
    )
    doubt = reduce(or_, (F.coalesce(reason, F.lit(False)) for reason in reasons))
    return known.select("entity", doubt.alias("doubtful"))


def _of_outboxes(facts: Facts, thresholds: Thresholds, now: int) -> tuple[DataFrame, ...]:
    """What marks and pages say. A page of no history of its ledger is for the rules, and so is one whose ledger is gone."""
    oldest = before(now, thresholds.retention) * 1000
    pages = counted(facts)
    below = F.when((F.col("number") > 1) & (F.col("before") >= oldest), F.col("number") - 1)
    newest = F.when((F.col("cut") > 0) & (F.col("complete") >= oldest), F.col("cut"))
    hashes = F.transform(marks_in("marks"), lambda mark: F.xxhash64(hash_in(mark)))
    counts = F.coalesce(F.col("number") <= F.col("cut"), F.lit(False))
    answers = F.transform("answers", lambda item: F.xxhash64(item["cause"]))
    return (
        _row(facts.entities, marks=hashes, answers=answers, named=newest),
        _row(pages, marks=hashes, answers=answers, page="number", named=below),
        _row(facts.pages.where(~counts), proven="version", doubt=F.col("version") != F.col("stored")),
    )


def _of_entities(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What ledgers say. An awaited reply and a kept message are for the rules; in a read model a held number, a gap, or one
    that no document may tell of.
    """
    live = thresholds.live_since
    all_kept = live is not None and live.timestamp() >= thresholds.kept_since(now)
    waits = F.exists("receptions", lambda item: (F.size(item["held"]) > 0) | item["gap_since"].isNotNull())
    passed = F.lit(all_kept) & F.exists("receptions", lambda item: item["next"] > 1)
    return _row(
        facts.entities,
        stored="version",
        recording=F.col("protocol").isin(*RECORDING),
        doubt=waits | passed | (F.size("calls") > 0) | (F.size("kept") > 0),
    )


def _of_transactions(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What records say. One that owes outputs is for the rules as soon as it is as old as one of them asks."""
    owing = F.col("owes") & (second("at") <= before(now, thresholds.owed_after))
    outputs = F.transform(
        "outputs",
        lambda item: F.struct(
            F.xxhash64(item["id"]).alias("id"),
            F.xxhash64("message", item["id"], item["place"]["channel"], item["place"]["number"]).alias("content"),
            F.when(item["place"].isNotNull(), F.xxhash64(item["place"]["channel"], item["place"]["number"])).alias(
                "place"
            ),
        ),
    )
    commit = F.struct(
        "version",
        F.xxhash64("message").alias("message"),
        F.xxhash64("tx").alias("tx"),
        F.xxhash64("version", "message", "tx", "digest", "outputs", "answer").alias("content"),
        outputs.alias("outputs"),
    )
    ids = F.transform("outputs", lambda item: item["id"])
    return _row(
        facts.transactions,
        commit=commit,
        proven="version",
        doubt=owing | (F.size(F.array_distinct(ids)) < F.size(ids)),
    )


def _of_others(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What other documents say. Entries that owe, numbers of read models, documents of kept messages, requests and
    unreadable documents are for the rules."""
    old = unpaid(facts).where(second("at") <= before(now, min(thresholds.owed_after, thresholds.grace)))
    frames = (old, facts.numbered, facts.staged, facts.requests, facts.unreadable)
    proofs = [_row(frame, doubt=F.lit(True)) for frame in frames]
    if facts.seen is not None:
        proofs.append(_row(facts.seen, proven="version"))
    return reduce(DataFrame.unionByName, proofs)


def _row(frame: DataFrame, **said: Column | str) -> DataFrame:
    columns = {name: said.get(name, F.lit(None)) for name in _COLUMNS}
    made = (
        (F.col(item) if isinstance(item, str) else item).cast(_COLUMNS[name]).alias(name)
        for name, item in columns.items()
    )
    return frame.select("entity", *made)


def _number_of(values: str | Column) -> Column:
    """How many different values there are, but for equal hashes. Of numbers: of other types Spark compares each with each."""
    return F.size(F.array_distinct(values))


def _disagrees() -> Column:
    """Whether a message, a transaction or a version is in two commits, or documents of one commit differ."""
    others = (_number_of(f"commits.{name}") for name in ("message", "tx", "content"))
    return reduce(or_, (F.col("versions") != other for other in others))


def _outputs_share() -> Column:
    """Whether two outputs have one id, or one number of a channel."""
    placed = F.filter("outputs", lambda item: item["place"].isNotNull())
    fewer_ids = _number_of("outputs.id") < _number_of("outputs.content")
    return fewer_ids | (_number_of(_of_each(placed, "place")) < _number_of(_of_each(placed, "content")))


def _of_each(outputs: Column, name: str) -> Column:
    return F.transform(outputs, lambda item: item[name])


def _lost() -> Column:
    """Whether the ledger is gone, or older than a version that it had."""
    return F.col("stored").isNull() | (F.col("stored") < F.col("proven"))


def _incomplete() -> Column:
    """Whether a version has no record: between two, above the newest, or, where it is young, below the oldest."""
    between = F.col("newest") - F.col("oldest") + 1 > F.col("versions")
    above = F.col("newest") < F.col("stored")
    below = F.col("young") < F.coalesce(F.col("oldest"), F.col("stored") + 1)
    return reduce(or_, (F.coalesce(item, F.lit(False)) for item in (between, above, below)))
