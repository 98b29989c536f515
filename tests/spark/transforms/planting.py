"""Small worlds made by hand, from the library's own shapes: entities in which everything is in order until a test breaks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from exactlyonce.records.answers import Answer
from exactlyonce.records.channels import Channel
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, companion_document
from exactlyonce.records.ledger import Entry, Ledger, entity_document
from exactlyonce.records.library import (
    ChannelDocument,
    LibraryRecord,
    ParkedMessage,
    ProcessedRecord,
    RequestDocument,
    Seal,
    StagedOutputs,
    processed_record,
)
from exactlyonce.records.outputs import OutputRef
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequence
from exactlyonce.stores.cosmos.layout import to_library
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, Origin, message_key
from spark_jobs.transforms.facts import Thresholds
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
PATHS = ("/tenant", "/owner/name")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
LIMITS = Thresholds(consumers={"reports": "reader", "mails": "mailer"})


def seconds(age: timedelta = timedelta()) -> int:
    """The second that is so long ago."""
    return int((NOW - age).timestamp())


def ref(type: str, name: str) -> EntityRef:
    """An entity whose partition key has two parts."""
    return EntityRef(type, ("t 1", name), name)


def sent(
    entity: EntityRef, message: str, index: int = 0, destination: str = "else", place: Place | None = None
) -> OutputRef:
    return OutputRef(Origin(entity, message).output_id(index), destination, place)


def told(entity: EntityRef, version: int, age: timedelta, **more: Any) -> Entry:
    """A commit, of the message that is numbered like its version, and which sent one output, as was published."""
    message = more.get("message", f"web/m-{version}")
    entry = Entry(message, f"tx-{version}", version, NOW - age, (sent(entity, message),), f"digest-{version}")
    return replace(entry, **more)


def on_the_wire(entity: EntityRef, output: OutputRef) -> str:
    """Key of the message that an output is."""
    return message_key(entity.source, output.id)


@dataclass
class Planted:
    """An entity with its documents; `case` is in its name, so that findings can be told apart.

    Attributes:
        entity: which.
        ledger: of its document; None if the document has none.
        age: of its document's last write.
        records: in the library's container, each with its age.
        companions: each with its age.
        more: other documents.
        gone: whether its document was deleted.
    """

    entity: EntityRef
    ledger: Ledger | None
    age: timedelta = DAY
    records: list[tuple[LibraryRecord, timedelta]] = field(default_factory=list)
    companions: list[tuple[Companion, timedelta]] = field(default_factory=list)
    more: list[Stored] = field(default_factory=list)
    gone: bool = False

    def stored(self) -> Iterable[Stored]:
        name = self.entity.id
        keys = {"tenant": "t 1", "owner": {"name": name}}
        body = Json.of({"id": name, **keys, "message": "of the user", "version": "too"})
        document = body if self.ledger is None else entity_document(body, self.ledger)
        if not self.gone:
            yield Stored(self.entity.type, {**document.value, **_system(self.age, 0)}, PATHS)
        for number, (companion, age) in enumerate(self.companions, 1):
            yield Stored(
                self.entity.type, {**companion_document(self.entity, companion), **keys, **_system(age, number)}, PATHS
            )
        for number, (record, age) in enumerate(self.records, 1):
            yield Stored(LIBRARY, {**to_library(self.entity, record), **_system(age, number)})
        yield from self.more


def _system(age: timedelta, number: int) -> dict[str, Any]:
    return {"_etag": f'"{number}"', "_ts": seconds(age), "_rid": "r", "_self": "s", "_attachments": "a"}


def outbox(case: str, *, type: str = "shop", versions: int = 6, left: int = 4) -> Planted:
    """An entity of an outbox: the first versions have left, a day apart each; the newest is two days old."""
    entity = ref(type, case)
    commits = [told(entity, number, (versions - number + 2) * DAY) for number in range(1, versions + 1)]
    ledger = Ledger(version=versions, entries=tuple(commits[left:]), type=type)
    gone = [(processed_record(entity, entry), age_of(entry.at)) for entry in commits[:left]]
    return Planted(entity, ledger, 2 * DAY, list(gone))


def receiver(case: str, *channels: Channel, version: int, age: timedelta = 2 * DAY, **ledger: Any) -> Planted:
    """An outbox that is sent numbered messages."""
    entity = ref("shop", f"{case}:receiver")
    return Planted(entity, Ledger(version=version, type="shop", channels=channels, **ledger), age)


def channel(source: str, *received: tuple[int, int]) -> Channel:
    """What an outbox received through the channel of a source."""
    return Channel(channel_of(source), source, received)


def sender(case: str, last: int, *, age: timedelta = 2 * DAY) -> Planted:
    """An outbox that has sent numbered messages to the `receiver` of the case."""
    planted = outbox(case)
    assert planted.ledger is not None
    sequence = Sequence("else", ref("shop", f"{case}:receiver").source, channel_of(planted.entity.source), last)
    return replace(planted, ledger=replace(planted.ledger, sequences=(sequence,)), age=age)


def apart(entity: EntityRef, version: int, one: Channel) -> ChannelDocument:
    """A channel that left the ledger at a version."""
    return ChannelDocument(entity.key, one, version)


def sealed(entity: EntityRef) -> Seal:
    return Seal(entity.key)


def colocated(case: str, *, versions: int = 4) -> Planted:
    """An entity with companions."""
    entity = ref("shop", case)
    commits = [told(entity, number, (versions - number + 2) * DAY) for number in range(1, versions + 1)]
    return Planted(
        entity,
        Ledger(version=versions, type="shop", protocol="colocated"),
        2 * DAY,
        companions=[(record(entity, entry), age_of(entry.at)) for entry in commits],
    )


def stream(case: str, *, versions: int = 4) -> Planted:
    """An entity with a version stream."""
    entity = ref("shop", case)
    commits = [told(entity, number, (versions - number + 2) * DAY) for number in range(1, versions + 1)]
    return Planted(
        entity,
        Ledger(version=versions, type="shop", protocol="stream", snapshot_every=2),
        2 * DAY,
        companions=[(stream_entry(entity, entry), age_of(entry.at)) for entry in commits],
    )


def reader(case: str, *, taken: int = 4, source: str = "shop/of%20nobody") -> Planted:
    """A read model that has taken some messages of one source."""
    entity = ref("reader", case)
    numbers = [numbered(entity, number, (taken - number + 2) * DAY, source=source) for number in range(1, taken + 1)]
    ledger = Ledger(version=taken, type="reader", protocol="resequencer", receptions=(received(source, taken + 1),))
    return Planted(entity, ledger, 2 * DAY, companions=[(one, age_of(one.at)) for one in numbers])


def numbered(entity: EntityRef, number: int, age: timedelta, *, source: str, **more: Any) -> NumberedMessage:
    message = message_key(source, f"n-{number}")
    made = NumberedMessage(
        entity.key, Place(channel_of(source), entity.source, number), source, message, NOW - age, held=None
    )
    return replace(made, **more)


def channel_of(source: str) -> str:
    """The channel in which a source sends to a read model."""
    return "".join(filter(str.isalnum, source))


def received(source: str, next: int, **more: Any) -> Reception:
    """How far the channel of a source is received."""
    return Reception(channel_of(source), source, next, **more)


def placed(source: str, receiver: EntityRef, number: int) -> Place:
    """The place of a message in the channel of a source to a read model."""
    return Place(channel_of(source), receiver.source, number)


def record(entity: EntityRef, entry: Entry) -> ColocatedRecord:
    """What the co-located protocol keeps of a commit, once it was published."""
    return ColocatedRecord(
        entity.key, entry.message, entry.tx, entry.version, entry.at, entry.outputs, entry.digest, None, None
    )


def stream_entry(entity: EntityRef, entry: Entry) -> StreamEntry:
    """What a version stream keeps of a commit."""
    way = Json.of({"body": {"secret": 1}})
    envelope = Json.of({"secret": 2})
    return StreamEntry(
        entity.key, entry.message, entry.tx, entry.version, entry.at, envelope, way, True, entry.outputs, entry.digest
    )


def staged(entity: EntityRef, entry: Entry) -> StagedOutputs:
    return StagedOutputs(entity.key, entry.message, entry.tx, entry.at, ())


def requested(entity: EntityRef, request: str, *, answered: bool) -> RequestDocument:
    """The document of a request that its caller opened."""
    answer = Answer(200, (), "{}", request) if answered else None
    return RequestDocument(entity.key, request, NOW - 40 * DAY, None if answered else Json.of({"secret": 3}), answer)


def keeps(entity: EntityRef, tx: str) -> StagedOutputs:
    """The document of kept messages."""
    return StagedOutputs(entity.key, "web/m-5", tx, NOW - 40 * DAY, ())


def parked(entity: EntityRef, message: str) -> ParkedMessage:
    return ParkedMessage(entity.key, message, "because", NOW - DAY, Json.of({"secret": 3}))


def kept(entity: EntityRef, entry: Entry) -> ProcessedRecord:
    return processed_record(entity, entry)


def age_of(at: datetime) -> timedelta:
    return NOW - at


def with_entries(planted: Planted, *entries: Entry) -> Planted:
    """The same with these entries in its ledger."""
    assert planted.ledger is not None
    planted.ledger = replace(planted.ledger, entries=entries)
    return planted


def with_calls(planted: Planted, *calls: str) -> Planted:
    """The same, awaiting the replies to these calls."""
    assert planted.ledger is not None
    return replace(planted, ledger=replace(planted.ledger, calls=calls))
