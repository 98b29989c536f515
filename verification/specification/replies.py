"""Every reply that an effect can have, by kind, with what is stored afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeVar

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
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    CloseNumbers,
    CloseRequest,
    DeleteBlobs,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FindPaid,
    FoundAbove,
    FoundParked,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadParked,
    LoadRequests,
    LoadStaged,
    OpenNumbers,
    OpenRequest,
    Park,
    Stage,
    Unpark,
    WriteOnce,
    WritePage,
)
from exactlyonce.records.ledger import LEDGER, Page
from exactlyonce.records.library import Opened, ParkedMessage, RequestDocument, StagedOutputs
from exactlyonce.values.frozen_json import Json
from verification.specification.companion_replies import seen_companions
from verification.specification.stored import NOW, PAGE, TOKEN, Stored, ledger_of, position_of

Record = TypeVar("Record", StagedOutputs, ParkedMessage)
LIMIT: Final = 60
"""Age in seconds from which a parked message is not sent again."""
SAVES: Final = (SaveEntity, SaveBatch)
UPSERTS: Final = (WritePage, Park, WriteOnce, KeepAnswers, CloseRequest)
"""What a second send changes nothing about."""
BEST_EFFORT: Final = (
    CloseNumbers,
    DeleteStaged,
    DeletePages,
    Unpark,
    ReplaceCompanions,
    DeleteCompanions,
    DeleteBlobs,
    DeleteRequests,
)
"""They have no answer, and may be in vain: a book is in memory."""
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
        case Begin() | OpenNumbers():
            yield from _begun(effect, stored)
        case FindPaid():
            yield from _paid(effect, stored)
        case LoadEntity() | LoadStaged() | LoadParked() | LoadRequests() | FindBlobs() | HasPages():
            yield from _read(effect, stored)
        case FindPages() | FindPagesAbove():
            yield from _pages(effect, stored)
            yield from _no_answer(stored)
        case LoadCompanions() | FindEntries() | FindNumbered() | FindOwing() | HasCompanions():
            for kind, reply in seen_companions(effect, stored):
                yield Option(kind, reply, stored)
            yield from _no_answer(stored)
        case _:
            yield from _written(effect, stored)


def usual(effect: Effect[Any], stored: Stored) -> Option:
    """What a world without trouble replies."""
    return next(options(effect, stored))


def _begun(effect: Begin | OpenNumbers, stored: Stored) -> Iterator[Option]:
    """Fresh transactions, and a later time: every transaction that reached the store is in one of these places."""
    used = len(stored.library) + len(stored.entity) + len(stored.companions_written) + len(stored.blobs)
    at, transactions = AT + timedelta(milliseconds=used), tuple(f"t{used}-{number}" for number in range(effect.count))
    if isinstance(effect, Begin):
        yield Option("begun", Begun(at, transactions), stored)
    else:
        yield Option("opened", Opened(at, transactions), stored)
        yield Option("unknown", UNKNOWN, stored)


def _paid(effect: FindPaid, stored: Stored) -> Iterator[Option]:
    """What books may prove: the newest ones, and those of a process that died before it wrote them."""
    asked = frozenset(effect.transactions)
    for paid in dict.fromkeys((asked & stored.paid, frozenset())):
        yield Option("all of them" if paid == asked else "not all of them", paid, stored)


def _pages(effect: FindPages | FindPagesAbove, stored: Stored) -> Iterator[Option]:
    """The pages that are asked for, in every view that a replica at or after the token may have."""
    positions = range(len(stored.library), position_of(effect.token) - 1, -1)
    views = (stored.records(position).values() for position in positions)
    for view in dict.fromkeys(tuple(one for one in view if isinstance(one, Page)) for view in views):
        if isinstance(effect, FindPages):
            found = effect.found(view)
            there = any(page.number == effect.newest for page in found.pages)
            yield Option("with the newest page" if there else "without the newest page", found, stored)
        else:
            above = tuple(
                (page, stored.library_etag(f"{PAGE}{page.number}")) for page in view if page.number > effect.number
            )
            yield Option("pages", FoundAbove(above), stored)
            read = tuple((page.number, etag) for page, etag in above)  # Another attempt deletes them.
            yield Option("none", FoundAbove(()), stored.apply(DeletePages(effect.entity, read))[1])


def _read(effect: Effect[Any], stored: Stored) -> Iterator[Option]:
    match effect:
        case LoadEntity(_, token):
            yield from _loaded(token, stored)
        case FindBlobs(_, transactions):
            pages = stored.library_documents(Page)
            found = frozenset(tx for page in pages for tx in page.blobs if tx in transactions)
            yield Option("all of them" if len(found) == len(transactions) else "not all of them", found, stored)
        case HasPages():
            if any(stored.library_documents(Page)):
                yield Option("yes", True, stored)
            yield Option("no", False, stored)
        case LoadStaged(_, transactions):
            staged = _of_kind(StagedOutputs, stored, (f"staged:{tx}" for tx in transactions))
            if len(staged) == len(transactions):
                yield Option("kept messages", FoundStaged(staged), stored)
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
    if isinstance(effect, BEST_EFFORT):
        yield Option("done", None, after)
        yield Option("done", None, stored)
        return
    if isinstance(effect, Publish):
        yield Option("published", reply, after)
    elif isinstance(reply, Conflict):
        yield Option("conflict", reply, stored)
    elif reply is OTHER:
        yield Option("another page", reply, stored)
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
