"""The rule on frames is the rule of `strategies.truncation`, document by document; and what may not go is named apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from exactlyonce.protocols.steps.clean_companions import is_candidate, last_entry
from exactlyonce.records.channels import Channel
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outputs import Output
from exactlyonce.values.frozen_json import Json
from spark_jobs.cleaner.verdicts import GOES, JUDGED, judged
from spark_jobs.job.configuration import Job
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.application import beginning
from tests.spark.transforms.dumping import Stored, rows
from tests.spark.transforms.dumping import parsed as parse
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    NOW,
    PATHS,
    Planted,
    apart,
    channel,
    kept,
    numbered,
    outbox,
    parked,
    received,
    record,
    ref,
    requested,
    sealed,
    seconds,
    staged,
    stream_entry,
    told,
)

RETENTION = timedelta(days=30)
SOURCE = "shop/of%20nobody"
JOB = Job.read(
    {
        "database": "d",
        "entities": [{"type": "shop", "container": "shops", "partition_key": PATHS, "protocol": "outbox"}],
    }
)


def parsed(spark: SparkSession, planted: list[Planted]) -> DataFrame:
    """The documents as a clean-up reads them, of one container and the library's."""
    stored = [one for entity in planted for one in entity.stored()]
    found = ((LIBRARY if place == LIBRARY else "shop", raw) for place, raw in rows(stored))
    container = f.when(f.col("place") == LIBRARY, "exactlyonce").otherwise("shops")
    return parse(spark, found).withColumn("container", container)


def verdicts(spark: SparkSession, planted: list[Planted], job: Job = JOB) -> dict[tuple[str, str, str], str]:
    """By the last part of the entity's key, kind, and id."""
    found = judged(parsed(spark, planted), job, beginning(seconds())).select(*JUDGED).collect()
    return {(str(row.entity).split('"')[-2], row.kind, row.id): row.verdict for row in found}


def histories(random: Random, number: int) -> Iterator[Planted]:
    """Companions of every kind with random ages, in entities with random ledgers."""
    for which in range(number):
        entity, every = ref("shop", f"e{which}"), random.choice([None, 1, 2, 3, 5])
        following = random.randint(1, 9)
        ledger = Ledger(
            9,
            type="shop",
            protocol="stream",
            snapshot_every=every,
            event_sourced=random.random() < 0.5,
            receptions=(received("another", 9), received(SOURCE, following)) if random.random() < 0.8 else (),
        )
        ages = sorted(
            random.choice([29, 30, 31, 60]) * DAY + random.randint(-1, 1) * timedelta(seconds=1) for _ in range(8)
        )
        entries = [told(entity, version, age) for version, age in zip(range(8, 0, -1), ages, strict=True)]
        companions: list[Companion] = [stream_entry(entity, one) for one in entries if random.random() < 0.8]
        for one in random.sample(entries, 5):
            owed = (Output("o", "q", Json.of({})),) if random.random() < 0.5 else None
            companions.append(replace(record(entity, one), owed=owed, owing_since=one.at if owed else None))
            held = Json.of({"secret": 1}) if random.random() < 0.3 else None
            companions.append(numbered(entity, one.version, NOW - one.at, source=SOURCE, held=held))
        yield Planted(
            entity, ledger if random.random() < 0.9 else None, companions=[(one, NOW - one.at) for one in companions]
        )


def expected(planted: Planted) -> list[bool]:
    """What `is_candidate` says of each companion, in order."""
    ledger = planted.ledger or Ledger()
    old = [one.version for one, age in planted.companions if isinstance(one, StreamEntry) and age > RETENTION]
    last = last_entry(max(old, default=0), snapshot_every=ledger.snapshot_every, event_sourced=ledger.event_sourced)
    following = next((one.next for one in ledger.receptions if one.source == SOURCE), 1)

    def goes(one: Companion, age: timedelta) -> bool:
        match one:
            case ColocatedRecord():
                return is_candidate("processed", age, RETENTION, unfinished=one.owed is not None, place=0, last=0)
            case StreamEntry():
                return is_candidate("entry", age, RETENTION, unfinished=False, place=one.version, last=last)
            case NumberedMessage():
                unfinished, number = one.held is not None, one.number
                return is_candidate("numbered", age, RETENTION, unfinished=unfinished, place=number, last=following - 1)

    return [goes(one, age) for one, age in planted.companions]


def test_both_forms_of_the_rule_say_the_same_of_every_companion(spark: SparkSession) -> None:
    planted = list(histories(Random(7), 150))
    found = verdicts(spark, planted)
    seen: Counter[tuple[str, bool]] = Counter()
    for one in planted:
        documents = [stored.document for stored in one.stored()][1:]
        for document, goes in zip(documents, expected(one), strict=True):
            assert (found[one.entity.id, document["_kind"], document["id"]] == GOES) == goes, document
            seen[document["_kind"], goes] += 1
    assert min(seen.values()) > 30
    assert len(seen) == 6


def _cases() -> dict[str, tuple[Planted, str]]:
    """A document of the library by case, with the verdict on it."""
    commit, old = told(ref("shop", "x"), 1, 60 * DAY), 60 * DAY
    named = told(ref("shop", "named"), 9, old, staged=True, owed="staged")

    def lone(case: str, what: Any, age: timedelta, **ledger: Any) -> Planted:
        entity = ref(ledger.pop("type", "shop"), case)
        return Planted(entity, Ledger(9, type=entity.type, **ledger), records=[(what(entity), age)])

    def changed(planted: Planted, **properties: Any) -> Planted:
        (document,) = (one.document for one in planted.stored() if one.place == LIBRARY)
        return replace(planted, records=[], more=[Stored(LIBRARY, {**document, **properties})])

    return {
        "old": (lone("old", lambda entity: kept(entity, commit), old), GOES),
        "young": (lone("young", lambda entity: kept(entity, commit), RETENTION), "too young"),
        "newer": (changed(lone("newer", lambda entity: kept(entity, commit), old), schema=2), "unreadable"),
        "unheard": (changed(lone("unheard", lambda entity: kept(entity, commit), old), kind="of"), "unreadable"),
        "parked": (lone("parked", lambda entity: parked(entity, "web/m"), old), "parked"),
        "foreign": (
            lone("foreign", lambda entity: kept(entity, commit), old, type="else"),
            "of no entity of the job file",
        ),
        "lost": (lone("lost", lambda entity: staged(entity, commit), 2 * HOUR), GOES),
        "alive": (lone("alive", lambda entity: staged(entity, commit), HOUR), "too young"),
        "sealed": (lone("sealed", sealed, old), "needed by younger ones"),
        "open": (lone("open", lambda entity: requested(entity, "r", answered=False), old), GOES),
        "opened": (lone("opened", lambda entity: requested(entity, "r", answered=False), RETENTION), "too young"),
        "answered": (lone("answered", lambda entity: requested(entity, "r", answered=True), old), "answered"),
        "named": (lone("named", lambda entity: staged(entity, named), old, entries=(named,)), "named by its entity"),
    }


def test_each_document_of_the_library_is_judged_by_its_kind(spark: SparkSession) -> None:
    cases = _cases()
    found = {case: verdict for (case, _, _), verdict in verdicts(spark, [one for one, _ in cases.values()]).items()}
    assert found == {case: verdict for case, (_, verdict) in cases.items()}


CHANNELS: dict[str, tuple[Channel | None, dict[int, Channel], set[int]]] = {
    "in the ledger": (
        channel(SOURCE, (1, 3), (5, 9)),
        {3: channel(SOURCE, (1, 2), (5, 6)), 4: channel(SOURCE, (1, 4)), 5: channel(SOURCE, (9, 10))},
        {3},
    ),
    "of its version": (channel(SOURCE, (1, 9)), {8: channel(SOURCE, (1, 9)), 9: channel(SOURCE, (1, 9))}, {8}),
    "of another channel": (channel("shop/of%20somebody", (1, 9)), {3: channel(SOURCE, (1, 2))}, set()),
    "in a document": (
        None,
        {3: channel(SOURCE, (1, 2)), 4: channel(SOURCE, (9, 9)), 5: channel(SOURCE, (1, 8)), 6: channel("s/o", (1, 9))},
        {3},
    ),
    "in its equal": (None, {5: channel(SOURCE, (1, 8)), 6: channel(SOURCE, (1, 8))}, {5}),
}
"""By case the channel in a ledger of version 9, documents of channels by their versions, and those that go."""


def test_a_document_of_a_channel_goes_when_something_younger_knows_all_that_it_says(spark: SparkSession) -> None:
    planted = []
    for case, (known, documents, _) in CHANNELS.items():
        entity = ref("shop", case)
        ledger = Ledger(9, type="shop", channels=() if known is None else (known,))
        written = [(apart(entity, version, one), 60 * DAY) for version, one in documents.items()]
        planted.append(Planted(entity, ledger, records=list(written)))
    found = {(case, int(id.split(":")[2])): verdict for (case, _, id), verdict in verdicts(spark, planted).items()}
    assert found == {
        (case, version): GOES if version in gone else "needed by younger ones"
        for case, (_, documents, gone) in CHANNELS.items()
        for version in documents
    }


def test_no_key_of_an_entity_that_makes_no_sense_stops_the_rest(spark: SparkSession) -> None:
    nonsense = ['["shop"]', '["shop","t"]', "no JSON", '{"shop":1}', "[]", '["shop","t","s","i","more"]']
    made = StagedOutputs("", "web/m", "tx", NOW - 60 * DAY, ())
    more = []
    for number, key in enumerate(nonsense):
        (document,) = (
            one.document
            for one in Planted(ref("shop", "x"), None, records=[(made, 60 * DAY)]).stored()
            if one.place == LIBRARY
        )
        more.append(Stored(LIBRARY, {**document, "id": f"staged:{number}", "pk": key, "entity": key}))
    odd = numbered(ref("shop", "odd"), 1, 60 * DAY, source=SOURCE)
    planted = Planted(ref("shop", "odd"), None, companions=[(replace(odd, entity="no JSON"), 60 * DAY)], more=more)
    found = judged(parsed(spark, [planted, outbox("well")]), JOB, beginning(seconds())).collect()
    assert Counter(row.verdict for row in found) == {"of no entity of the job file": 7, "too young": 4}
