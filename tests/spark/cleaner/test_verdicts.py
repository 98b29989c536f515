"""The rules on frames: companions go as `clean_companions` says, pages when nothing that they know is judged any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import count
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from exactlyonce.protocols.steps.clean import is_candidate, last_entry
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, companion_document
from exactlyonce.records.ledger import LEDGER, KeptAnswer, Ledger, Mark, Page, entity_document, split, written
from exactlyonce.records.library import BOOKS, Book, LibraryRecord, ParkedMessage, RequestDocument, StagedOutputs
from exactlyonce.records.outbox import Answer, Kept, Output, Place, Reception
from exactlyonce.stores.cosmos.partition import to_library
from exactlyonce.values.envelope import EntityRef, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, Lifetimes, Retention
from spark_jobs.cleaner.verdicts import GOES
from spark_jobs.job.configuration import Job
from spark_jobs.source.account import Beginning
from tests.spark.application import beginning
from tests.spark.cleaner.asking import Stored, verdicts

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
RETENTION = timedelta(days=30)
OLD = 60 * DAY - HOUR
CHANNEL, SOURCE = "a-channel", "shop/of%20nobody"
JOB = Job.read(
    {
        "database": "d",
        "entities": [{"type": "shop", "container": "shops", "partition_key": ["/tenant"], "protocol": "outbox"}],
    }
)
_etags = count(1)


def ref(name: str, type: str = "shop") -> EntityRef:
    return EntityRef(type, ("t 1",), name)


def system(age: timedelta) -> dict[str, Any]:
    """What the service adds to a document that was written so long ago."""
    return {"_etag": f'"{next(_etags)}"', "_ts": int((NOW - age).timestamp())}


def owner(entity: EntityRef, **ledger: Any) -> dict[str, Any]:
    """The document of an entity."""
    body = Json.of({"id": entity.id, "tenant": "t 1", "until": "of the user"})
    made = Ledger(entity=entity.key, type=entity.type, **ledger)
    return {**entity_document(body, made).value, **system(OLD)}


def beside(entity: EntityRef, companion: Companion, age: timedelta) -> dict[str, Any]:
    """The document of a companion."""
    return {**companion_document(entity, companion), "tenant": "t 1", **system(age)}


def apart(entity: EntityRef, record: LibraryRecord, age: timedelta, **more: Any) -> dict[str, Any]:
    """A document of the library's container."""
    return {**to_library(entity, record), **system(age), **more}


def found(
    spark: SparkSession, shops: list[dict[str, Any]], library: list[dict[str, Any]], now: Beginning | None = None
) -> dict[str, str]:
    """The verdict on each document, by its ETag."""
    stored: Stored = {"shops": shops, JOB.library: library}
    rows = verdicts(spark, stored, JOB, now or beginning(NOW.timestamp())).select("etag", "verdict").collect()
    assert len(rows) == len({row.etag for row in rows})
    return {row.etag: row.verdict for row in rows}


def companions(random: Random, entity: EntityRef) -> Iterator[tuple[Companion, timedelta]]:
    """Companions of every kind of one entity, each with its age."""
    ages = sorted(random.choice([29, 30, 31, 60]) * DAY + random.randint(-1, 1) * SECOND for _ in range(8))
    for version, age in zip(range(8, 0, -1), ages, strict=True):
        message, tx, at = f"web/m-{version}", f"tx-{version}", NOW - age
        owed = (Output("o", "q", Json.of({})),) if random.random() < 0.3 else None
        since = None if owed is None else at
        if random.random() < 0.8:
            secret = Json.of({"secret": 1})
            entry = StreamEntry(entity.key, message, tx, version, at, secret, secret, True, (), "d")
            yield replace(entry, owed=owed, owing_since=since), age
        if random.random() < 0.5:
            yield ColocatedRecord(entity.key, message, tx, version, at, (), "d", owed, since), age
        if random.random() < 0.5:
            held = Json.of({"secret": 2}) if random.random() < 0.3 else None
            place = Place(CHANNEL, entity.source, version)
            yield NumberedMessage(entity.key, place, SOURCE, message, at, held), age


def goes(companion: Companion, age: timedelta, ledger: Ledger, last: int) -> bool:
    """What `is_candidate` says of a companion."""
    match companion:
        case ColocatedRecord():
            return is_candidate("processed", age, RETENTION, unfinished=companion.owed is not None, place=0, last=0)
        case StreamEntry():
            return is_candidate(
                "entry", age, RETENTION, unfinished=companion.owed is not None, place=companion.version, last=last
            )
        case NumberedMessage():
            passed = next((other.next - 1 for other in ledger.receptions if other.channel == CHANNEL), 0)
            held = companion.held is not None
            return is_candidate("numbered", age, RETENTION, unfinished=held, place=companion.number, last=passed)


def test_both_forms_of_the_rule_say_the_same_of_every_companion(spark: SparkSession) -> None:
    random, documents, expected = Random(7), [], {}
    for which in range(150):
        entity = ref(f"e{which}")
        receptions = (Reception("another", "s", 9), Reception(CHANNEL, SOURCE, random.randint(1, 9)))
        ledger = Ledger(
            version=9,
            type="shop",
            protocol="stream",
            snapshot_every=random.choice([None, 1, 2, 3, 5]),
            event_sourced=random.random() < 0.5,
            receptions=receptions if random.random() < 0.8 else (),
        )
        if random.random() < 0.9:
            documents.append(
                {
                    **owner(entity),
                    LEDGER: entity_document(Json.of({}), replace(ledger, entity=entity.key)).value[LEDGER],
                }
            )
        else:
            ledger = Ledger()
        made = list(companions(random, entity))
        old = [item.version for item, age in made if isinstance(item, StreamEntry) and age > RETENTION]
        last = last_entry(max(old, default=0), snapshot_every=ledger.snapshot_every, event_sourced=ledger.event_sourced)
        for one, age in made:
            document = beside(entity, one, age)
            documents.append(document)
            expected[document["_etag"]] = (document["_kind"], goes(one, age, ledger, last))
    said = found(spark, documents, [])
    assert {etag for etag, (_, gone) in expected.items() if gone} == {
        etag for etag, item in said.items() if item == GOES
    }
    seen = Counter(expected.values())
    assert len(seen) == 6
    assert min(seen.values()) > 30


def test_the_ledger_in_a_copy_of_a_document_decides_about_nothing_of_the_original(spark: SparkSession) -> None:
    entity, copy = ref("x"), ref("copy")
    numbered = beside(
        entity, NumberedMessage(entity.key, Place(CHANNEL, entity.source, 1), SOURCE, "m", NOW, None), OLD
    )
    original = owner(entity, protocol="resequencer", receptions=(Reception(CHANNEL, SOURCE, 9),))
    assert found(spark, [original, numbered], []) == {numbered["_etag"]: GOES}
    assert found(spark, [{**original, "id": copy.id}, numbered], []) == {numbered["_etag"]: "needed by younger ones"}


def page(entity: EntityRef, until: datetime, **more: Any) -> Page:
    mark = Mark(milliseconds(until), message_hash("web/m"), "f", True, "abcd").text
    return Page(entity.key, 1, 33, milliseconds(until), milliseconds(until), mark, **more)


def library_cases() -> Iterator[tuple[dict[str, Any], str | None]]:
    """Documents of the library, each with the verdict on it; None if it is not even read."""
    gone = NOW - RETENTION - CLOCK_TOLERANCE
    answer = Answer(200, (), "{}", "print")

    def paged(case: str, until: datetime, age: timedelta, type: str = "shop", **more: Any) -> dict[str, Any]:
        kept = {name: more.pop(name) for name in ("answers", "blobs") if name in more}
        return apart(ref(case, type), page(ref(case, type), until, **kept), age, **more)

    def staged(case: str, age: timedelta, **more: Any) -> dict[str, Any]:
        return apart(ref(case), StagedOutputs(ref(case).key, "web/m", "tx", NOW, ()), age, **more)

    def opened(case: str, age: timedelta, answer: Answer | None = None) -> dict[str, Any]:
        return apart(ref(case), RequestDocument(ref(case).key, "r", NOW, None if answer else Json.of({}), answer), age)

    def book(case: str, age: timedelta, pk: str = BOOKS) -> dict[str, Any]:
        return apart(ref(case), Book(case, 9, ended=True), age, pk=pk)

    answers = (KeptAnswer("hash", answer),)
    parked = ParkedMessage(ref("parked").key, "web/m", "why", NOW, Json.of({}))
    yield paged("old page", gone - SECOND, HOUR), GOES
    yield paged("page to be judged", gone, OLD), None
    yield paged("young answers", gone - SECOND, RETENTION, answers=answers), None
    yield paged("old answers", gone - SECOND, OLD, answers=answers), GOES
    yield paged("young blobs", gone - SECOND, RETENTION, blobs=("tx",)), None
    yield paged("newer page", gone - DAY, OLD, schema=99), "unreadable"
    yield paged("page of nobody", gone - DAY, OLD, "else"), "of no entity of the job file"
    yield paged("moved page", gone - DAY, OLD, pk=ref("y").key), "unreadable"
    yield staged("unheard of", OLD, kind="of"), "unreadable"
    yield apart(ref("parked"), parked, OLD), "parked"
    yield staged("note", RETENTION + 2 * DAY + SECOND, kind="unparked"), GOES
    yield staged("young note", RETENTION + 2 * DAY, kind="unparked"), "too young"
    yield staged("lost", 2 * HOUR), GOES
    yield staged("under way", HOUR), None
    yield staged("keeper", OLD), "named by its entity"
    yield opened("open", OLD), GOES
    yield opened("lately opened", RETENTION), None
    yield opened("answered", OLD, answer), "answered"
    yield book("young book", RETENTION), None
    yield book("silent book", OLD), "proves what was sent"
    yield book("old book", 61 * DAY), GOES
    yield book("book of an entity", 61 * DAY, pk=ref("y").key), "unreadable"


def test_each_document_of_the_library_is_judged_by_its_kind(spark: SparkSession) -> None:
    cases = list(library_cases())
    keeper = owner(ref("keeper"), kept=(Kept("o", NOW + DAY, "tx"),))
    said = found(spark, [keeper], [document for document, _ in cases])
    assert [(item, said.get(item["_etag"])) for item, _ in cases] == cases


RETENTIONS = (
    Retention(RETENTION),
    Retention(20 * DAY, RETENTION, NOW - 12 * HOUR),
    Retention(20 * DAY, RETENTION, NOW - 2 * DAY),
    Retention(40 * DAY, RETENTION, NOW - 12 * HOUR),
    Retention(40 * DAY, RETENTION, NOW - 5 * DAY),
)
"""One that never changed, and shorter and longer ones, before they are in force and after."""


@pytest.mark.parametrize("retention", RETENTIONS, ids=("same", "shorter soon", "shorter", "longer soon", "longer"))
def test_a_page_that_goes_knows_no_message_that_would_still_be_judged(
    spark: SparkSession, retention: Retention
) -> None:
    random, kept, lifetimes = Random(3), retention.kept(NOW), Lifetimes(retention)
    times: dict[str, list[datetime]] = {}
    documents, ripe = [], set()
    for which in range(300):
        marks, latest = [], []
        edge = NOW - kept + random.choice([-1, 0, 1]) * CLOCK_TOLERANCE + random.randint(-3, 3) * DAY / 3
        for number in range(random.randint(1, 4)):
            processed, timed = edge - random.random() * DAY, random.random() < 0.5
            since = processed + AHEAD * random.random() if timed else processed
            marks.append(Mark(milliseconds(since), message_hash(f"{which}/{number}"), "f", timed, "abcd").text)
            latest.append(since if timed else processed + AHEAD)
        read = [Mark.read(part).since for part in split(written(marks))]
        one = Page(ref(f"e{which}").key, 1, 33, read[0], read[-1], written(marks))
        document = apart(ref(f"e{which}"), one, HOUR)
        documents.append(document)
        times[document["_etag"]] = latest
        if read[-1] < milliseconds(NOW - kept - 2 * CLOCK_TOLERANCE):
            ripe.add(document["_etag"])
    said = found(spark, [], documents, Beginning.of(NOW.timestamp(), retention))
    going = {etag for etag, item in said.items() if item == GOES}
    # A process may read a time that is as far behind the job's as two replies may differ.
    known = {etag: [lifetimes.refusal(time, NOW - CLOCK_TOLERANCE) for time in times[etag]] for etag in going}
    assert [etag for etag, refusals in known.items() if None in refusals] == []
    assert ripe <= going
    assert 50 < len(going) < 250


def test_no_key_of_an_entity_that_makes_no_sense_stops_the_rest(spark: SparkSession) -> None:
    nonsense = ['["shop"]', '["shop","t"]', "no JSON", '{"shop":1}', "[]", '["shop","t","s","i","more"]']
    staged = [apart(ref("x"), StagedOutputs(key, "web/m", "tx", NOW, ()), OLD, pk=key) for key in nonsense]
    odd = NumberedMessage("no JSON", Place(CHANNEL, "s", 1), SOURCE, "m", NOW, None)
    said = found(spark, [beside(ref("odd"), odd, OLD)], [*staged, apart(ref("x"), page(ref("x"), NOW - OLD), OLD)])
    assert Counter(said.values()) == {"of no entity of the job file": 7, GOES: 1}
