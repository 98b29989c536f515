"""Where documents lie in Cosmos DB: containers, partitions and ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from exactlyonce.errors import InvalidMessage
from exactlyonce.records.books import BOOKS, Book
from exactlyonce.records.library import (
    LibraryRecord,
    ParkedMessage,
    RequestDocument,
    StagedOutputs,
    Unparked,
    library_document,
)
from exactlyonce.records.pages import Page
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import ID_RULE, MAX_KEY_BYTES, EntityRef, is_document_id

LIBRARY_PATH: Final = "/pk"
"""Partition key path of the library container: one logical partition per entity, and one for all books."""

MAX_BATCH_OPERATIONS: Final = 100
MAX_BATCH_BYTES: Final = 2_000_000
"""Documented limits of a transactional batch: 100 operations, and 2 MB (2,097,152 bytes) with some room left."""

_OPERATION_BYTES: Final = (
    200  # What a batch adds to each document: `{"operationType":"Upsert","id":…,"resourceBody":…}`.
)
_BOOK: Final = "book:"
_LIFE: Final = "ttl"
_SYSTEM_PROPERTIES: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class EntityContainer:
    """Where the entities of one type live.

    Attributes:
        type: name of the entity type.
        container: name of the container.
        paths: of its partition key, from the top.
        companions: whether the entities' protocol keeps companions.
    """

    type: str
    container: str
    paths: tuple[str, ...]
    companions: bool = False


def library_id(kind: str, value: str) -> str:
    """Id of a document of the library: the kind, and the value or its hash.

    Ids may not hold every character and not be of any length, and messages come from anywhere; so the true value stands in
    the body, and readers check it.
    """
    if _PLAIN_VALUE.fullmatch(value):
        return f"{kind}:{value}"
    return f"{kind}:~{hashlib.sha256(value.encode()).hexdigest()}"


def staged_id(tx: str) -> str:
    """Id of the staged document of a transaction."""
    return library_id("staged", tx)


def parked_id(message: str) -> str:
    """Id of the parked document of a message."""
    return library_id("parked", message)


def request_id(request: str) -> str:
    """Id of the document of a request."""
    return library_id("request", request)


def page_id(number: int) -> str:
    """Id of the page with a number."""
    return f"page:{number}"


def book_id(book: str) -> str:
    """Id of a book."""
    return f"{_BOOK}{book}"


def to_library(entity: EntityRef | None, record: LibraryRecord, seconds: int | None = None) -> dict[str, Any]:
    """A record as a document of the library container.

    Args:
        entity: whose it is; None for a book.
        record: what to write.
        seconds: for which the service keeps it; None if it stays until somebody deletes it.
    """
    place = {"id": _id_of(record), LIBRARY_PATH[1:]: BOOKS if entity is None else entity.key}
    life = {} if seconds is None else {_LIFE: seconds}
    return {**place, **library_document(record), **place, **life}


def _id_of(record: LibraryRecord) -> str:
    match record:
        case StagedOutputs():
            return staged_id(record.tx)
        case ParkedMessage() | Unparked():
            return parked_id(record.message)
        case RequestDocument():
            return request_id(record.request)
        case Page():
            return page_id(record.number)
        case Book():
            return book_id(record.id)


def from_library(document: dict[str, Any]) -> dict[str, Any]:
    """A document of the library container without what its place there gave it. Of a record with an id, `id` is that one."""
    placed = ("id", LIBRARY_PATH[1:], _LIFE)
    record = {name: value for name, value in without_system(document).items() if name not in placed}
    return {"id": document["id"].removeprefix(_BOOK), **record} if document.get("kind") == "book" else record


def without_system(document: dict[str, Any]) -> dict[str, Any]:
    """A document without the properties that the service adds."""
    return {name: value for name, value in document.items() if name not in _SYSTEM_PROPERTIES}


def batches(documents: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split documents, in order, into as few batches as the limits allow. One that is too large by itself stays alone."""
    batch: list[dict[str, Any]] = []
    size = 0
    for document in documents:
        added = Json.of(document).size + _OPERATION_BYTES
        if batch and (len(batch) == MAX_BATCH_OPERATIONS or size + added > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += added
    if batch:
        yield batch


def require_storable(entity: EntityRef) -> None:
    """Refuse an entity that Cosmos DB cannot name: asking the service would give a 400 for ever, or a bare ValueError.

    Raises:
        InvalidMessage: the id is none, or the partition key is too long.
    """
    if not is_document_id(entity.id):
        raise InvalidMessage(
            f"Entity {entity} cannot be stored: an id in Cosmos DB has {ID_RULE}. Derive the id otherwise in key=."
        )
    if len(entity.key.encode()) > MAX_KEY_BYTES:
        raise InvalidMessage(
            f"Entity {entity} cannot be stored: type, partition key and id have more than {MAX_KEY_BYTES} bytes "
            "together, which the library container takes as partition key. Derive shorter ones in key=."
        )
