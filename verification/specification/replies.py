"""Every reply that an effect can have, by kind, with what is stored afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeVar

from exactlyonce.effects.blobs import DeleteBlobs, WriteOnce
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Begun, Effect, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteChannels,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindChannels,
    FindProcessed,
    Found,
    FoundChannels,
    FoundParked,
    FoundRecords,
    FoundStaged,
    HasRecords,
    LoadParked,
    LoadProcessed,
    LoadStaged,
    Park,
    Stage,
    WriteRecords,
)
from exactlyonce.effects.publish import Publish
from exactlyonce.effects.requests import (
    CloseRequest,
    DeleteRequests,
    FoundRequests,
    KeepAnswers,
    LoadRequests,
    OpenRequest,
)
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.library import ChannelDocument, ParkedMessage, ProcessedRecord, RequestDocument, StagedOutputs
from exactlyonce.values.frozen_json import Json
from verification.specification.companion_replies import seen_companions
from verification.specification.stored import NOW, PROVE, TOKEN, Stored, ledger_of, position_of

Record = TypeVar("Record", StagedOutputs, ParkedMessage)
LIMIT: Final = 60
"""Age in seconds from which a parked message is not sent again."""
SAVES: Final = (SaveEntity, SaveBatch)
UPSERTS: Final = (WriteRecords, Park, WriteOnce, KeepAnswers, CloseRequest)
"""What a second send changes nothing about."""
DELETES: Final = (
    DeleteStaged,
    DeleteChannels,
    DeleteProcessed,
    DeleteParked,
    ReplaceCompanions,
    DeleteCompanions,
    DeleteBlobs,
    DeleteRequests,
)
"""Best effort, without an answer."""
AT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Option:
    """One reply.

    Attributes:
        kind: which of the effect's replies it is: a key of `words.REPLIES`; joined by ` + ` for requests side by side.
        reply: to the strategy.
        stored: afterwards.
    """

    kind: str
    reply: Any
    stored: Stored


def options(effect: Effect[Any], stored: Stored) -> Iterator[Option]:
    """Every reply to an effect; the usual one first."""
    match effect:
        case Together(first, second):
            for one in options(first, stored):
                for other in options(second, one.stored):
                    kind = f"{one.kind} + {other.kind}"
                    yield Option(kind, (one.reply, other.reply), other.stored)
        case Begin():
            # Fresh, and later, whatever began before: every transaction that reached the store is in one of these places.
            used = len(stored.library) + len(stored.entity) + len(stored.companions_written) + len(stored.blobs)
            at = AT + timedelta(microseconds=used)
            yield Option("begun", Begun(at, tuple(f"t{used}-{number}" for number in range(effect.count))), stored)
        case (
            LoadEntity()
            | FindProcessed()
            | FindChannels()
            | LoadProcessed()
            | LoadStaged()
            | HasRecords()
            | LoadParked()
            | LoadRequests()
        ):
            yield from _read(effect, stored)
        case LoadCompanions() | FindEntries() | FindNumbered() | FindOwing() | HasCompanions():
            for kind, reply in seen_companions(effect, stored):
                yield Option(kind, reply, stored)
            yield from _no_answer(stored)
        case _:
            yield from _written(effect, stored)


def usual(effect: Effect[Any], stored: Stored) -> Option:
    """What a world without trouble replies."""
    return next(options(effect, stored))


def _read(effect: Effect[Any], stored: Stored) -> Iterator[Option]:  # noqa: C901  # One row for each effect.
    match effect:
        case LoadEntity(_, token):
            yield from _loaded(token, stored)
        case FindProcessed(_, messages, token):
            yield from _found(messages, token, stored)
        case LoadProcessed(_, messages, token):
            yield from _reported(messages, token, stored)
        case FindChannels():
            yield from _of_channels(effect, stored)
        case HasRecords():
            if any(id.startswith(PROVE) for id in stored.records()):
                yield Option("yes", True, stored)
            yield Option("no", False, stored)
        case LoadStaged(_, transactions):
            staged = _of_kind(StagedOutputs, stored, (f"staged:{tx}" for tx in transactions))
            if len(staged) == len(transactions):
                yield Option("staged outputs", FoundStaged(staged), stored)
            yield Option("gone", FoundStaged(()), stored)
        case LoadParked():
            yield from _parked(effect, stored)
        case LoadRequests():
            yield from _requests(effect, stored)
    yield from _no_answer(stored)


def _parked(effect: LoadParked, stored: Stored) -> Iterator[Option]:
    """What a look for a parked message may see. With the token of a write made just now no view is stale."""
    id = f"parked:{effect.message}"
    there = tuple(_of_kind(ParkedMessage, stored, (id,)))
    for parked in there:
        etag = stored.library_etag(id)
        yield Option("parked message", FoundParked(parked, etag, AT), stored)
        yield Option("old parked message", FoundParked(parked, etag, AT + timedelta(seconds=LIMIT + 1)), stored)
    if effect.token is None or not there:
        yield Option("not parked", FoundParked(None, None, None), stored)


def _no_answer(stored: Stored) -> Iterator[Option]:
    """What any read may get."""
    yield Option("behind", BEHIND, stored)
    yield Option("unknown", UNKNOWN, stored)


def _loaded(token: str | None, stored: Stored) -> Iterator[Option]:
    """Every version that a replica at or after the token may have."""
    for position in range(len(stored.entity), position_of(token) - 1, -1):
        document = stored.entity[position - 1] if position else None
        etag, timestamp = (str(position), NOW) if position else (None, 0)
        yield Option(_kind(document), Loaded(document, etag, timestamp, f"{TOKEN}{position}"), stored)


def _found(messages: tuple[str, ...], token: str | None, stored: Stored) -> Iterator[Option]:
    """Every view that a replica at or after the token may have; of those that show the same the newest and the oldest."""
    views: dict[frozenset[str], list[int]] = {}
    for position in range(len(stored.library), position_of(token) - 1, -1):
        view = stored.records(position)
        views.setdefault(frozenset(one for one in messages if f"processed:{one}" in view), []).append(position)
    for found, positions in views.items():
        kind = "records of all" if len(found) == len(messages) else "not records of all"
        for position in dict.fromkeys((positions[0], positions[-1])):
            yield Option(kind, Found(found, f"{TOKEN}{position}"), stored)


def _reported(messages: tuple[str, ...], token: str | None, stored: Stored) -> Iterator[Option]:
    """The same with the records themselves."""
    positions = range(len(stored.library), position_of(token) - 1, -1)
    views = ([stored.records(position).get(f"processed:{one}") for one in messages] for position in positions)
    for records in dict.fromkeys(tuple(one for one in view if isinstance(one, ProcessedRecord)) for view in views):
        kind = "records of all" if len(records) == len(messages) else "not records of all"
        yield Option(kind, FoundRecords(records), stored)


def _of_channels(effect: FindChannels, stored: Stored) -> Iterator[Option]:
    """The documents of channels, in every view that a replica at or after the token may have."""
    positions = range(len(stored.library), position_of(effect.token) - 1, -1)
    views = (tuple(stored.records(position).values()) for position in positions)
    documents = (tuple(one for one in view if isinstance(one, ChannelDocument)) for view in views)
    for found in dict.fromkeys(tuple(filter(effect.asks_for, view)) for view in documents):
        wanted = {*effect.channels} if effect.channels is not None else {one.channel.id for one in found}
        kind = "documents of all" if {one.channel.id for one in found} == wanted else "not documents of all"
        yield Option(kind, FoundChannels(found), stored)


def _requests(effect: LoadRequests, stored: Stored) -> Iterator[Option]:
    """The documents of requests, in every view that a replica at or after the token may have; the newest and oldest of each."""
    views: dict[tuple[RequestDocument, ...], list[int]] = {}
    for position in range(len(stored.library), position_of(effect.token) - 1, -1):
        view = stored.records(position)
        records = (view.get(f"request:{request}") for request in effect.requests)
        views.setdefault(tuple(one for one in records if isinstance(one, RequestDocument)), []).append(position)
    for found, positions in views.items():
        there = len(found) == len(effect.requests)
        kind = "gone" if not there else "answered" if all(one.answer for one in found) else "open"
        for position in dict.fromkeys((positions[0], positions[-1])):
            yield Option(kind, FoundRequests(found, f"{TOKEN}{position}"), stored)


def _of_kind(kind: type[Record], stored: Stored, ids: Iterable[str]) -> tuple[Record, ...]:
    """The documents with these ids that exist."""
    found = stored.records()
    return tuple(record for id in ids if isinstance(record := found.get(id), kind))


def _written(effect: Effect[Any], stored: Stored) -> Iterator[Option]:
    reply, after = stored.apply(effect)
    if isinstance(effect, DELETES):
        yield Option("done", None, after)
        yield Option("done", None, stored)
        return
    if isinstance(effect, Publish):
        yield Option("published", reply, after)
    elif isinstance(reply, Conflict):
        yield Option("conflict", reply, stored)
    else:
        kind = "saved" if isinstance(effect, SAVES) else "closed" if isinstance(effect, CloseRequest) else "written"
        yield Option(kind, reply, after)
        if not isinstance(effect, UPSERTS):
            yield Option("conflict", _of_second_send(effect, after), after)  # Its own first send won.
    if isinstance(effect, SAVES):
        yield Option("conflict", Conflict(stored.entity_token), stored)  # Somebody else's came first.
    if isinstance(effect, Stage | OpenRequest):
        yield Option("conflict without a token", Conflict(None), after)
    yield Option("unknown", UNKNOWN, after)
    yield Option("unknown", UNKNOWN, stored)


def _of_second_send(effect: Effect[Any], stored: Stored) -> Conflict:
    """What the second send of a write gets."""
    return Conflict(stored.entity_token if isinstance(effect, SAVES) else stored.library_token)


def _kind(document: Json | None) -> str:
    if document is None:
        return "absent"
    if ledger_of(document) is not None:
        return "document"
    return "damaged document" if LEDGER in document.value else "document without a ledger"
