"""Samples for the store contract: entities and documents of the library, fresh at every call."""

# ruff: noqa: S101  # Part of a suite.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final, TypeVar
from uuid import uuid4

from exactlyonce.effects.companions import FindEntries, FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    FindPages,
    FoundPages,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    WritePage,
    Written,
)
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, companion_document
from exactlyonce.records.ledger import Mark, Page, written
from exactlyonce.records.library import Book, ParkedMessage, RequestDocument, StagedOutputs
from exactlyonce.records.outbox import LARGEST_NUMBER, Answer, Output, OutputRef, Place
from exactlyonce.stores.port import AsyncStore
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json

Reply = TypeVar("Reply")
PLAIN: Final = "contract-plain"
OWNED: Final = "contract-owned"
LEVELS: Final = "contract-levels"
UNIQUE: Final = "contract-unique"
ENTITY_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    PLAIN: ("/id",),
    OWNED: ("/owner",),
    LEVELS: ("/tenant", "/place/region", "/ordinal"),
    UNIQUE: ("/owner",),
}
"""The entity types of the suite, each with the partition key paths of its container."""

UNIQUE_KEYS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {UNIQUE: (("/email",), ("/name/first", "/name/last"))}
"""The unique keys of containers of the suite, each with its paths."""

AWKWARD: Final = (
    "web/m-42",
    "web/m%2F42",
    "web/%",
    "web/ÄÖÜ €",
    "web/消息 🎯",
    "web/a\\b?c#d",
    "web/trailing space ",
    "web/" + "x" * 1000,
    "UPPER",
    "upper",
    "web/'quoted\" \n line",
)
"""Keys of messages that may not be valid as ids in a store."""

MEGABYTE: Final = 1_000_000
DAY: Final = 86_400
"""Seconds."""
AT: Final = datetime(2026, 11, 21, 10, 0, 2, 250_000, tzinfo=timezone.utc)
_PLACE: Final = Place("0193a7b2c4d18c1f00aa11bb22cc0001", "board/b-1", LARGEST_NUMBER)


def unique() -> str:
    """A fresh name."""
    return uuid4().hex


def plain_entity() -> EntityRef:
    """An entity whose id is its partition key."""
    id = unique()
    return EntityRef(PLAIN, (id,), id)


def owned_entity(owner: str | None = None, type: str = OWNED) -> EntityRef:
    """An entity whose partition other documents can share, in an owner's partition or a fresh one."""
    owner = owner or unique()
    return EntityRef(type, (owner, "north", 7) if type == LEVELS else (owner,), unique())


def entity_document(entity: EntityRef, /, **properties: Any) -> Json:
    """A document with id and partition key at the container's paths."""
    document: dict[str, Any] = {"id": entity.id}
    for path, value in zip(ENTITY_TYPES[entity.type], entity.partition, strict=True):
        _put(document, path.split("/")[1:], value)
    return Json.of({**document, **properties})


def _put(document: dict[str, Any], names: list[str], value: PartitionValue) -> None:
    for name in names[:-1]:
        document = document.setdefault(name, {})
    document[names[-1]] = value


async def reply_to(store: AsyncStore, effect: Effect[Any], kind: type[Reply]) -> Reply:
    """The reply to an effect, which must be of this kind."""
    reply = await store.perform(effect)
    assert isinstance(reply, kind)
    return reply


async def save(store: AsyncStore, entity: EntityRef, etag: str | None = None, /, **properties: Any) -> Saved:
    """Save an entity; the save must succeed."""
    return await reply_to(store, SaveEntity(entity, entity_document(entity, **properties), etag), Saved)


async def load(store: AsyncStore, entity: EntityRef, token: str | None) -> Loaded:
    """Load an entity at or after a token."""
    return await reply_to(store, LoadEntity(entity, token), Loaded)


async def write(store: AsyncStore, entity: EntityRef, page: Page | None = None) -> str:
    """Write a page, by default page 1. Returns the token of the write."""
    return (await reply_to(store, WritePage(entity, page or a_page(entity), DAY), Written)).token


async def find(
    store: AsyncStore, entity: EntityRef, *hashes: str, times: tuple[int, ...] = (), newest: int = -1, token: str | None
) -> list[int]:
    """The numbers of the pages in the reply, in order."""
    reply = await reply_to(store, FindPages(entity, times, hashes, newest, token), FoundPages)
    return sorted(page.number for page in reply.pages)


async def now(store: AsyncStore, entity: EntityRef) -> str:
    """A token that covers all earlier writes in the library's partition. Deleting gives no token, so a later write does."""
    return await park(store, entity, a_parked(entity, f"web/{unique()}"))


async def staged_now(store: AsyncStore, entity: EntityRef, *transactions: str) -> tuple[StagedOutputs, ...]:
    """The present staged documents."""
    return (await reply_to(store, LoadStaged(entity, transactions, await now(store, entity)), FoundStaged)).documents


async def park(store: AsyncStore, entity: EntityRef, message: ParkedMessage) -> str:
    """Park a message. Returns the token of the write."""
    return (await reply_to(store, Park(entity, message), Written)).token


async def parked(store: AsyncStore, entity: EntityRef, message: str, token: str | None) -> FoundParked:
    """Look for a parked message, at or after a token."""
    return await reply_to(store, LoadParked(entity, message, token), FoundParked)


async def parked_now(store: AsyncStore, entity: EntityRef, message: str) -> FoundParked:
    """A parked message at present."""
    return await parked(store, entity, message, await now(store, entity))


def a_parked(entity: EntityRef, message: str, reason: str = "its handler raised ValueError") -> ParkedMessage:
    """A parked message."""
    envelope = Json.of({"id": "m-1", "data": {"text": "ÄÖÜ 🎯", "large": 2**53 + 1, "whole": 1.0}})
    return ParkedMessage(entity.key, message, reason, AT, envelope)


def a_request(entity: EntityRef, request: str) -> RequestDocument:
    """The document of an open request."""
    envelope = Json.of({"id": request, "data": {"text": "ÄÖÜ 🎯", "large": 2**53 + 1, "whole": 1.0}})
    return RequestDocument(entity.key, request, AT, envelope, None)


def an_answered(entity: EntityRef, request: str) -> RequestDocument:
    """The document of an answered request."""
    answer = Answer(201, (("X-Kind", "ÄÖÜ"),), '{"whole":1.0}', request)
    return RequestDocument(entity.key, request, AT, None, answer)


def a_page(entity: EntityRef, number: int = 1, *, hashes: tuple[str, ...] = (), blobs: tuple[str, ...] = ()) -> Page:
    """The page of a number, from 1. Page 1 has the marks of 10 to 19 s since 1970, and was cut from version 10; and so on."""
    begin, until = number * 10_000, number * 10_000 + 9_000
    marks = [Mark(at, f"m-{number:013}{end}", "f", True, "c0de", "-") for at, end in ((begin, "a"), (until, "b"))]
    return Page(
        entity=entity.key,
        number=number,
        version=number * 10,
        begin=begin,
        until=until,
        marks=written(mark.text for mark in marks),
        to=("receipts",),
        hashes=hashes,
        blobs=blobs,
    )


def a_book(id: str, used: int = 812) -> Book:
    """The book of a process."""
    return Book(id, used, (807, 811), (807,))


def a_staged(
    entity: EntityRef, *, tx: str | None = None, size: int = 10, outputs: tuple[Output, ...] | None = None
) -> StagedOutputs:
    """Staged outputs of a transaction, by default of a fresh one, with an output of about `size` bytes."""
    envelope = Json.of({"id": "o-1", "data": {"padding": "x" * size, "text": "ÄÖÜ 🎯", "none": None}})
    output = Output("o-1", "receipts", envelope, 1.5)
    return StagedOutputs(entity.key, "web/m-1", tx or unique(), AT, (output,) if outputs is None else outputs)


def a_colocated(entity: EntityRef, message: str, version: int = 1, *, owes: bool = False) -> ColocatedRecord:
    """A co-located record of a message; the same for the same arguments."""
    output = Output("o-1", "receipts", Json.of({"id": "o-1", "text": "ÄÖÜ 🎯"}), 1.5, _PLACE)
    return ColocatedRecord(
        entity=entity.key,
        message=message,
        tx="5f",
        version=version,
        at=AT,
        outputs=(output.ref,),
        digest="digest",
        owed=(output,) if owes else None,
        owing_since=AT if owes else None,
    )


def an_entry(entity: EntityRef, version: int, message: str | None = None, *, padding: str = "") -> StreamEntry:
    """An entry of the version stream."""
    return StreamEntry(
        entity=entity.key,
        message=message or f"web/{unique()}",
        tx="5f",
        version=version,
        at=AT,
        envelope=Json.of({"id": "m-1", "data": {"text": "ÄÖÜ 🎯", "large": 2**53 + 1, "whole": 1.0}}),
        before=Json.of({"padding": padding}),
        whole=True,
        outputs=(OutputRef("o-1", "receipts"),),
        digest="digest",
    )


def an_owing_entry(entity: EntityRef, version: int) -> StreamEntry:
    """An entry of a request that owes its output."""
    owed = a_colocated(entity, "web/1", owes=True).owed
    answer = Answer(201, (("X-Kind", "ÄÖÜ"),), '{"whole":1.0}', "f")
    return replace(an_entry(entity, version), owed=owed, owing_since=AT, answer=answer)


def a_numbered(entity: EntityRef, number: int = LARGEST_NUMBER) -> NumberedMessage:
    """A held message."""
    return NumberedMessage(
        entity.key,
        Place("c1", entity.source, number),
        "/game/ÄÖÜ",
        "game/m-1",
        AT,
        Json.of({"id": "m-1", "data": {"whole": 1.0}}),
    )


async def together(
    store: AsyncStore, entity: EntityRef, *create: Companion, etag: str | None = None, **properties: Any
) -> Saved:
    """Save an entity and create companions; the batch must succeed."""
    return await reply_to(store, SaveBatch(entity, entity_document(entity, **properties), etag, create), Saved)


async def companions_of(
    store: AsyncStore, entity: EntityRef, *ids: str, token: str | None = None
) -> tuple[tuple[Companion, str], ...]:
    """Companions by id, each with its ETag."""
    return (await reply_to(store, LoadCompanions(entity, ids, token), FoundCompanions)).companions


async def companions_now(store: AsyncStore, entity: EntityRef, *ids: str) -> tuple[Companion, ...]:
    """Companions at present. Replacing and deleting give no token, so the token of a later write to the partition is used."""
    later = await save(store, EntityRef(entity.type, entity.partition, unique()))
    return tuple(companion for companion, _ in await companions_of(store, entity, *ids, token=later.token))


async def entries(store: AsyncStore, entity: EntityRef, *ranges: tuple[int, int], token: str | None) -> list[int]:
    """The versions of the entries in the reply."""
    reply = await reply_to(store, FindEntries(entity, ranges, token), FoundCompanions)
    return [companion_document(entity, companion)["version"] for companion, _ in reply.companions]


async def put(store: AsyncStore, entity: EntityRef, companion: Companion, **properties: Any) -> None:
    """Write a copy of a companion's document with properties that no store would write."""
    document = companion_document(entity, companion)
    place = EntityRef(entity.type, entity.partition, document["id"])
    await store.perform(SaveEntity(place, entity_document(place, **{**document, **properties}), None))
