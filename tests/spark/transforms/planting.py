"""Small worlds made by hand, from the library's own shapes: entities in which everything is in order until a test breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, companion_document
from exactlyonce.records.ledger import (
    KEPT,
    Kind,
    Ledger,
    Mark,
    Page,
    destination_digit,
    entity_document,
    split,
    time_in,
    written,
)
from exactlyonce.records.library import (
    BOOKS,
    Book,
    LibraryRecord,
    ParkedMessage,
    RequestDocument,
    StagedOutputs,
    library_document,
)
from exactlyonce.records.outbox import Answer, OutboxEntry, OutputRef, Pending, Place, Reception, transaction
from exactlyonce.stores.cosmos.partition import book_id, to_library
from exactlyonce.values.envelope import EntityRef, Origin, derived_id, message_hash, message_key, milliseconds
from exactlyonce.values.frozen_json import Json
from spark_jobs.transforms.facts import Thresholds
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
PATHS = ("/tenant", "/owner/name")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
LIMITS = Thresholds(consumers={"reports": "reader", "mails": "mailer", "counts": "counter"})
BOOK = "b" * 20
OPEN, STUCK, USED = 7, 8, 1_000
"""Numbers of the book: the last one that was given out, and two that are open."""


def seconds(age: timedelta = timedelta()) -> int:
    """The second that is so long ago."""
    return int((NOW - age).timestamp())


def ref(type: str, name: str) -> EntityRef:
    """An entity whose partition key has two parts."""
    return EntityRef(type, ("t 1", name), name)


def book() -> Stored:
    """The book of all processes that commit here."""
    written = library_document(Book(BOOK, USED, (OPEN, STUCK), (STUCK,)))
    return Stored(LIBRARY, {**written, "id": book_id(BOOK), "pk": BOOKS, **_system(MINUTE, 0)})


class Told(NamedTuple):
    """A commit of an outbox.

    Attributes:
        message: key of the message.
        age: of the message, and of the commit.
        to: where the messages of the handler went; `KEPT` for one that is kept.
        kind, timed: of the message.
    """

    message: str
    age: timedelta
    to: tuple[str, ...] = ("else",)
    kind: Kind = "f"
    timed: bool = True


def mark(told: Told, destinations: list[str]) -> str:
    """The mark of a commit; its destinations are added to those of the ledger."""
    destinations += [fromkey for fromkey in dict.fromkeys(told.to) if fromkey not in (*destinations, KEPT)]
    digits = (item if item == KEPT else destination_digit(destinations.index(item)) for item in told.to)
    since = milliseconds(NOW - told.age)
    return Mark(since, message_hash(told.message), told.kind, told.timed, "AAAA", "".join(digits)).text


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

    def having(self, **changes: Any) -> Planted:
        """The same, with other properties of its ledger."""
        assert self.ledger is not None
        return replace(self, ledger=replace(self.ledger, **changes))

    def keeping(self, record: LibraryRecord, age: timedelta = DAY) -> Planted:
        """The same, with one more document in the library's container."""
        return replace(self, records=[*self.records, (record, age)])


def _system(age: timedelta, number: int) -> dict[str, Any]:
    return {"_etag": f'"{number}"', "_ts": seconds(age), "_rid": "r", "_self": "s", "_attachments": "a"}


def commits(versions: int) -> list[Told]:
    """Commits, a day apart; the newest is two days old."""
    return [Told(f"web/m-{number}", (versions - number + 2) * DAY) for number in range(1, versions + 1)]


def outbox(
    case: str,
    *told: Told,
    type: str = "shop",
    cuts: tuple[int, ...] = (4,),
    age: timedelta | None = None,
    lost: int = 0,
) -> Planted:
    """An entity of an outbox.

    Args:
        case: its name.
        told: its commits, the oldest first; six of them if none is given.
        type: of the entity.
        cuts: numbers of commits after which a page was cut, from the ledger with the commit that follows the next one.
        age: of its document's last write; that of the newest commit if None.
        lost: commits whose marks expired.
    """
    told = told or tuple(commits(6))
    to: list[str] = []
    marks = [mark(item, to) for item in told]
    age = told[-1].age if age is None else age
    cuts = tuple(cut for cut in cuts if cut < len(told))
    pages: list[Page] = []
    for first, last in zip((0, *cuts), cuts, strict=False):
        pages.append(page(ref(type, case), marks[first:last], last + lost, pages[-1] if pages else None, to))
    newest = pages[-1] if pages else None
    stay = marks[cuts[-1] if cuts else 0 :]
    entry = OutboxEntry(message_hash(told[-1].message), transaction(BOOK, 1), NOW - told[-1].age, 0, ())
    ledger = Ledger(
        version=len(told) + lost,
        type=type,
        entity=ref(type, case).key,
        marks=written(stay),
        to=tuple(to),
        complete=-1 if newest is None else newest.until,
        left=len(told) + lost - len(stay),
        cut=0 if newest is None else newest.number,
        outbox=(entry,),
    )
    ages = [told[cut].age for cut in cuts]
    return Planted(ref(type, case), ledger, age, list(zip(pages, ages, strict=True)))


def page(entity: EntityRef, marks: list[str], version: int, before: Page | None, to: Iterable[str] = ("else",)) -> Page:
    """A page that follows another one."""
    times = [time_in(item) for item in marks]
    return Page(
        entity.key,
        1 if before is None else before.number + 1,
        version,
        min(times),
        max(times) if before is None else max(*times, before.until),
        written(marks),
        before=-1 if before is None else before.until,
        to=tuple(to),
    )


def owing(told: Told, number: int, outputs: int = 1) -> OutboxEntry:
    """The entry of a commit with this number in the book."""
    pending = tuple(Pending(Json.of({"secret": 2}), index) for index in range(outputs))
    return OutboxEntry(message_hash(told.message), transaction(BOOK, number), NOW - told.age, 0, pending)


def marks_of(planted: Planted) -> tuple[str, ...]:
    assert planted.ledger is not None
    return split(planted.ledger.marks)


def output_key(entity: EntityRef, message: str, index: int = 0) -> str:
    """Key of the message that an output of an outbox is."""
    return message_key(entity.source, derived_id(entity, message_hash(message), index))


def sent(
    entity: EntityRef, message: str, index: int = 0, destination: str = "else", place: Place | None = None
) -> OutputRef:
    return OutputRef(Origin(entity, message).output_id(index), destination, place)


class Recorded(NamedTuple):
    """A commit of which there is a record."""

    message: str
    tx: str
    version: int
    at: datetime
    outputs: tuple[OutputRef, ...]
    digest: str


def recorded(entity: EntityRef, version: int, age: timedelta, **more: Any) -> Recorded:
    """A commit, of the message that is numbered like its version, and which sent one output, as was published."""
    message = more.get("message", f"web/m-{version}")
    made = Recorded(message, f"tx-{version}", version, NOW - age, (sent(entity, message),), f"digest-{version}")
    return made._replace(**more)


def on_the_wire(entity: EntityRef, output: OutputRef) -> str:
    """Key of the message that an output is."""
    return message_key(entity.source, output.id)


def _recording(case: str, versions: int, protocol: str, type: str, **ledger: Any) -> Planted:
    entity = ref(type, case)
    known = Ledger(version=versions, type=type, protocol=protocol, entity=entity.key, **ledger)
    return Planted(entity, known, 2 * DAY)


def colocated(case: str, *made: Recorded, versions: int = 4, type: str = "shop") -> Planted:
    """An entity with records."""
    planted = _recording(case, len(made) or versions, "colocated", type)
    made = made or _made(planted.entity, versions)
    return replace(planted, companions=[(record(planted.entity, item), age_of(item.at)) for item in made])


def stream(case: str, *, versions: int = 4) -> Planted:
    """An entity with a version stream."""
    planted = _recording(case, versions, "stream", "shop", snapshot_every=2)
    made = _made(planted.entity, versions)
    return replace(planted, companions=[(stream_entry(planted.entity, item), age_of(item.at)) for item in made])


def _made(entity: EntityRef, versions: int) -> tuple[Recorded, ...]:
    return tuple(recorded(entity, number, (versions - number + 2) * DAY) for number in range(1, versions + 1))


def reader(case: str, *, taken: int = 4, source: str = "shop/of%20nobody") -> Planted:
    """A read model that has taken some messages of one source."""
    entity = ref("reader", case)
    numbers = [numbered(entity, number, (taken - number + 2) * DAY, source=source) for number in range(1, taken + 1)]
    ledger = Ledger(version=taken, type="reader", protocol="resequencer", receptions=(reception(source, taken + 1),))
    return Planted(entity, ledger, 2 * DAY, companions=[(item, age_of(item.at)) for item in numbers])


def numbered(entity: EntityRef, number: int, age: timedelta, *, source: str, **more: Any) -> NumberedMessage:
    message = message_key(source, f"n-{number}")
    made = NumberedMessage(
        entity.key, Place(channel_of(source), entity.source, number), source, message, NOW - age, held=None
    )
    return replace(made, **more)


def channel_of(source: str) -> str:
    """The channel in which a source sends to a read model."""
    return "".join(filter(str.isalnum, source))


def reception(source: str, next: int, **more: Any) -> Reception:
    """How far the channel of a source is received."""
    return Reception(channel_of(source), source, next, **more)


def placed(source: str, receiver: EntityRef, number: int) -> Place:
    """The place of a message in the channel of a source to a read model."""
    return Place(channel_of(source), receiver.source, number)


def record(entity: EntityRef, made: Recorded) -> ColocatedRecord:
    """What the co-located protocol keeps of a commit, once it was published."""
    return ColocatedRecord(
        entity.key, made.message, made.tx, made.version, made.at, made.outputs, made.digest, None, None
    )


def stream_entry(entity: EntityRef, made: Recorded) -> StreamEntry:
    """What a version stream keeps of a commit."""
    way, envelope = Json.of({"body": {"secret": 1}}), Json.of({"secret": 2})
    return StreamEntry(
        entity.key, made.message, made.tx, made.version, made.at, envelope, way, True, made.outputs, made.digest
    )


def staged(entity: EntityRef, tx: str, age: timedelta = 40 * DAY) -> StagedOutputs:
    """The document of kept messages."""
    return StagedOutputs(entity.key, "web/m-5", tx, NOW - age, ())


def requested(entity: EntityRef, request: str, *, answered: bool) -> RequestDocument:
    """The document of a request that its caller opened."""
    answer = Answer(200, (), "{}", request) if answered else None
    return RequestDocument(entity.key, request, NOW - 40 * DAY, None if answered else Json.of({"secret": 3}), answer)


def parked(entity: EntityRef, message: str, **more: Any) -> ParkedMessage:
    return replace(ParkedMessage(entity.key, message, "because", NOW - DAY, Json.of({"secret": 3})), **more)


def unparked(entity: EntityRef, message: str, sent: str | None, age: timedelta) -> Stored:
    """What is left of a message that was parked."""
    note = {"kind": "unparked", "schema": 1, "entity": entity.key, "message": message}
    document = {"id": f"parked:{message_hash(message)}", "pk": entity.key, **note, **({"sent": sent} if sent else {})}
    return Stored(LIBRARY, {**document, **_system(age, 1)})


def age_of(at: datetime) -> timedelta:
    return NOW - at


Plant = Callable[[str], list[Planted]]
Named = tuple[str, str | None, tuple[int, ...], str | None]
"""Rule, message, versions and subject of a finding."""
Expected = Callable[[str], set[Named]]
Cases = dict[str, tuple[Plant, Expected]]
"""By name of the case what plants it, and what has to be found of it."""


def damage(cases: Cases, expected: Expected) -> Callable[[Plant], Plant]:
    """Adds a case, which has the name of its function."""

    def add(plant: Plant) -> Plant:
        cases[plant.__name__.replace("_", " ")] = (plant, expected)
        return plant

    return add
