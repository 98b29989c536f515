"""Every request a strategy may make of a store, on an entity of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from exactlyonce.effects import library
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
from exactlyonce.effects.entity import Loaded, LoadEntity, SaveEntity
from exactlyonce.records.companions import entry_id
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import (
    DAY,
    OWNED,
    a_book,
    a_page,
    a_parked,
    a_request,
    a_staged,
    an_answered,
    an_entry,
    entity_document,
)
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

Request = Callable[[CosmosStore, EntityRef], Awaitable[Any]]


async def create(store: CosmosStore, entity: EntityRef, total: int = 1) -> Any:
    return await store.perform(SaveEntity(entity, Json.of({"id": entity.id, "total": total}), None))


async def replace(store: CosmosStore, entity: EntityRef, etag: str, total: int = 2) -> Any:
    return await store.perform(SaveEntity(entity, Json.of({"id": entity.id, "total": total}), etag))


async def total(store: CosmosStore, entity: EntityRef) -> int | None:
    loaded = await store.perform(LoadEntity(entity))
    assert isinstance(loaded, Loaded)
    return None if loaded.document is None else int(loaded.document.value["total"])


def owned(entity: EntityRef) -> EntityRef:
    """An entity of the same name in a container that has companions."""
    return EntityRef(OWNED, entity.partition, entity.id)


async def save_batch(store: CosmosStore, entity: EntityRef, companions: int = 1) -> Any:
    entity = owned(entity)
    create = tuple(an_entry(entity, number, f"web/{number}") for number in range(1, companions + 1))
    return await store.perform(SaveBatch(entity, entity_document(entity), None, create))


async def load_companions(store: CosmosStore, entity: EntityRef, *numbers: int) -> Any:
    ids = (entry_id(owned(entity), f"web/{number}") for number in numbers)
    return await store.perform(LoadCompanions(owned(entity), tuple(ids)))


REQUESTS: dict[str, Request] = {
    "load_entity": lambda store, entity: store.perform(LoadEntity(entity)),
    "save_entity": create,
    "find_pages of one": lambda store, entity: store.perform(library.FindPages(entity, (10_000,), (), 10, None)),
    "find_pages of two": lambda store, entity: store.perform(library.FindPages(entity, (10_000,), ("m-1",), 10, None)),
    "find_pages_above": lambda store, entity: store.perform(library.FindPagesAbove(entity, 7, None)),
    "find_blobs": lambda store, entity: store.perform(library.FindBlobs(entity, ("a.1", "a.2"), None)),
    "has_pages": lambda store, entity: store.perform(library.HasPages(entity)),
    "write_page": lambda store, entity: store.perform(library.WritePage(entity, a_page(entity), DAY)),
    "delete_pages of one": lambda store, entity: store.perform(library.DeletePages(entity, ((1, "etag"),))),
    "write_book": lambda store, entity: store.perform(library.WriteBook(a_book("b-1"), DAY)),
    "note_search": lambda store, entity: store.perform(library.NoteSearch(a_book("b-1"), "etag", DAY)),
    "read_books of one": lambda store, entity: store.perform(library.ReadBooks(("b-1",))),
    "read_books of two": lambda store, entity: store.perform(library.ReadBooks(("b-1", "b-2"))),
    "stage of one": lambda store, entity: store.perform(library.Stage(entity, (a_staged(entity),))),
    "stage of two": lambda store, entity: store.perform(library.Stage(entity, (a_staged(entity), a_staged(entity)))),
    "load_staged of one": lambda store, entity: store.perform(library.LoadStaged(entity, ("5f",), None)),
    "load_staged of two": lambda store, entity: store.perform(library.LoadStaged(entity, ("5f", "9a"), None)),
    "delete_staged of one": lambda store, entity: store.perform(library.DeleteStaged(entity, ("5f",))),
    "delete_staged of two": lambda store, entity: store.perform(library.DeleteStaged(entity, ("5f", "9a"))),
    "park": lambda store, entity: store.perform(library.Park(entity, a_parked(entity, "web/1"))),
    "load_parked": lambda store, entity: store.perform(library.LoadParked(entity, "web/1")),
    "load_companions of one": lambda store, entity: load_companions(store, entity, 1),
    "load_companions of two": lambda store, entity: load_companions(store, entity, 1, 2),
    "find_entries": lambda store, entity: store.perform(FindEntries(owned(entity), ((1, 2), (4, 9)), None)),
    "find_numbered": lambda store, entity: store.perform(FindNumbered(owned(entity), "c1", (1, 9))),
    "find_owing": lambda store, entity: store.perform(FindOwing(owned(entity))),
    "has_companions": lambda store, entity: store.perform(HasCompanions(owned(entity))),
    "save_batch of one": lambda store, entity: save_batch(store, entity, 0),
    "save_batch of two": save_batch,
    "replace_companions": lambda store, entity: store.perform(
        ReplaceCompanions(owned(entity), ((an_entry(owned(entity), 1, "web/1"), "etag"),))
    ),
    "delete_companions": lambda store, entity: store.perform(
        DeleteCompanions(owned(entity), ((entry_id(owned(entity), "web/1"), "etag"),))
    ),
    "open_request": lambda store, entity: store.perform(library.OpenRequest(entity, a_request(entity, "5f"))),
    "load_requests of one": lambda store, entity: store.perform(library.LoadRequests(entity, ("5f",), None)),
    "load_requests of two": lambda store, entity: store.perform(library.LoadRequests(entity, ("5f", "9a"), None)),
    "keep_answers": lambda store, entity: store.perform(library.KeepAnswers(entity, (an_answered(entity, "5f"),))),
    "close_request": lambda store, entity: store.perform(library.CloseRequest(entity, "5f")),
    "delete_requests": lambda store, entity: store.perform(library.DeleteRequests(entity, (("5f", "etag"),))),
    "unpark": lambda store, entity: store.perform(library.Unpark(entity, "web/1", "etag")),
}
READS = [name for name in REQUESTS if name.startswith(("load", "find", "has", "read"))]
WRITES = [name for name in REQUESTS if name.startswith(("save", "write", "stage", "park", "open"))]
REPEATED = ["keep_answers", "close_request"]
"""Writes that change nothing if they are sent again: client libraries do so more often than with others."""
BEST_EFFORTS = [name for name in REQUESTS if name.startswith(("delete", "replace", "unpark", "note"))]
BATCHES = [name for name in WRITES if name.endswith("two") or name.startswith("save_batch")]
