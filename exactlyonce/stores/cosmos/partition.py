"""A logical partition of a container: the place of its documents, and its requests. Every request has a time limit."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy

from exactlyonce.effects.effect import UNKNOWN, AsyncAdapter, Busy, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import InvalidMessage
from exactlyonce.records.ledger import Page
from exactlyonce.records.library import (
    BOOKS,
    Book,
    LibraryRecord,
    ParkedMessage,
    RequestDocument,
    StagedOutputs,
    Unparked,
    library_document,
)
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.replies import (
    FAILURES,
    SESSION_TOKEN,
    Absent,
    Operation,
    after_query,
    after_read,
    after_write,
    answered_at,
)
from exactlyonce.values.envelope import ID_RULE, MAX_KEY_BYTES, EntityRef, PartitionValue, is_document_id
from exactlyonce.values.frozen_json import Json

# Containers, partitions and ids of documents in Cosmos DB.


LIBRARY_PATH: Final = "/pk"
"""Partition key path of the library container: a logical partition per entity, and a single one for all books."""

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
    """The container for the entities of a type, with the paths of its partition key from the top.

    `companions` says whether the protocol of the entities keeps companions.
    """

    type: str
    container: str
    paths: tuple[str, ...]
    companions: bool = False


def library_id(kind: str, value: str) -> str:
    """Id of a document of the library: the kind, and the value or its hash.

    Ids have a limited alphabet and length, and messages come from anywhere; so the true value stands in the body, and readers
    check it.
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
    """A record of an entity, or a book without one, as a document of the library container. Without seconds to live the
    document stays until it is deleted."""
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
    """A document of the library container without the properties of its place. For a book, `id` is the book's id."""
    placed = ("id", LIBRARY_PATH[1:], _LIFE)
    record = {name: value for name, value in without_system(document).items() if name not in placed}
    return {"id": document["id"].removeprefix(_BOOK), **record} if document.get("kind") == "book" else record


def without_system(document: dict[str, Any]) -> dict[str, Any]:
    """A document without the properties that the service adds."""
    return {name: value for name, value in document.items() if name not in _SYSTEM_PROPERTIES}


def batches(documents: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split documents, in order, into as few batches as the limits allow. A document over the limits stays alone."""
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
    """Refuse an entity that Cosmos DB cannot name: the service would answer 400 for ever, or the SDK with a bare ValueError.
    Raises `InvalidMessage`: the id is not valid, or the partition key is too long."""
    if not is_document_id(entity.id):
        raise InvalidMessage(
            f"Entity {entity} cannot be stored: an id in Cosmos DB has {ID_RULE}. Derive the id otherwise in key=."
        )
    if len(entity.key.encode()) > MAX_KEY_BYTES:
        raise InvalidMessage(
            f"Entity {entity} cannot be stored: type, partition key and id have more than {MAX_KEY_BYTES} bytes "
            "together, which the library container takes as partition key. Derive shorter ones in key=."
        )


Reply = TypeVar("Reply")
Given = Mapping[str, str | int | Sequence[str]]
"""Values of a query's parameters, by name with `@`."""
BatchWrite = tuple[str, tuple[Any, ...]] | tuple[str, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Document:
    """A document on a replica, with system properties, in a view at `token`, read at a time of the service's clock in seconds
    since 1970, like `_ts`; None if the reply does not say."""

    properties: dict[str, Any]
    token: str | None
    read_at: float | None


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents in a view at `token`."""

    properties: tuple[dict[str, Any], ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A write was applied; `token` includes it, and `etag` is the ETag of the first document written."""

    token: str | None
    etag: str | None = None


class CosmosPartition:
    """A logical partition, by the values of its full partition key.

    A request takes at most `time_limit` seconds, with the SDK's repetitions.
    """

    def __init__(
        self, connection: CosmosConnection, container: str, key: tuple[PartitionValue, ...], time_limit: float
    ) -> None:
        self._connection = connection
        self._container = container
        self._key: PartitionValue | list[PartitionValue] = key[0] if len(key) == 1 else list(key)
        self._time_limit = time_limit

    @property
    def _where(self) -> str:
        """For logs. The partition key names the entity."""
        return f"partition {self._key!r} of container {self._container}"

    async def read(self, id: str, token: str | None) -> Document | Absent | NoAnswer | Busy:
        """Read a document, at or after a token."""
        try:
            item = await self._ask(lambda container: container.read_item(id, self._key, session_token=token))
        except FAILURES as error:
            reply = after_read(error, where=self._where)
            return Absent(reply.token or token) if isinstance(reply, Absent) else reply
        # A view that was asked for with a token is at least at the token, whether or not the reply says so.
        headers = item.get_response_headers()
        return Document(item, _token(headers) or token, answered_at(headers))

    async def read_all(self, ids: Sequence[str], token: str | None, select: str = "*") -> Documents | NoAnswer | Busy:
        """Read the existing documents among these, at or after a token. A single request, if a page holds them.

        `select` names columns of each document; a single document is read whole, since a point read is cheaper than any query.
        """
        if len(ids) == 1:
            reply = await self.read(ids[0], token)
            if isinstance(reply, Document):
                return Documents((reply.properties,), reply.token)
            return Documents((), reply.token) if isinstance(reply, Absent) else reply
        names = [f"@id{number}" for number in range(len(ids))]
        query = f"SELECT {select} FROM c WHERE c.id IN ({', '.join(names)})"  # noqa: S608  # Values are parameters.
        return await self.query(query, dict(zip(names, ids, strict=True)), token)

    async def query(self, query: str, parameters: Given, token: str | None) -> Documents | NoAnswer | Busy:
        """All results of a query in this partition, each page in a view at or after the token."""
        pairs: list[dict[str, object]] = [{"name": name, "value": value} for name, value in parameters.items()]

        async def all_pages(container: ContainerProxy) -> Documents:
            tokens: list[str | None] = []
            # The hook sees every reply of the service; pages do not, since those without documents are left out.
            rows = container.query_items(
                query,
                parameters=pairs,
                partition_key=self._key,
                session_token=token,
                response_hook=lambda headers, _: tokens.append(_token(headers)),
            )
            documents = [row async for row in rows]
            # Replies may come from different replicas, so several have only the token of the request in common.
            return Documents(tuple(documents), (tokens[0] if len(tokens) == 1 else None) or token)

        try:
            return await self._ask(all_pages)
        except FAILURES as error:
            return after_query(error, self._where)

    async def is_unchanged(self, id: str, etag: str | None, token: str | None) -> bool:
        """Whether a document has this ETag, or is absent for None, in a view at or after a token.

        Without a token a view may be stale, so the result is False.
        """
        reply = UNKNOWN if token is None else await self.read(id, token)
        if isinstance(reply, Document):
            return bool(reply.properties["_etag"] == etag)
        return isinstance(reply, Absent) and etag is None

    async def create(
        self, document: dict[str, Any], operation: Operation = Operation.CREATE
    ) -> Applied | Conflict | Unknown:
        """Create a document, which must not exist."""
        return await self._write(lambda container: container.create_item(document, no_response=True), operation)

    async def replace(
        self, id: str, document: dict[str, Any], etag: str | None, operation: Operation = Operation.REPLACE
    ) -> Applied | Conflict | Unknown:
        """Replace a document, if it still has this ETag; unconditionally for None."""
        condition = None if etag is None else MatchConditions.IfNotModified
        return await self._write(
            lambda container: container.replace_item(
                id, document, etag=etag, match_condition=condition, no_response=True
            ),
            operation,
        )

    async def write_together(self, writes: Sequence[BatchWrite], operation: Operation) -> Applied | Conflict | Unknown:
        """Write documents in a single batch, all or none; each as `creating` or `replacing` says."""
        try:
            written = await self._ask(lambda container: container.execute_item_batch(writes, self._key))
        except FAILURES as error:
            return after_write(error, operation, self._where)
        # The ETags of a batch are in its results; a header would not name the document.
        return Applied(_token(written.get_response_headers()), written[0].get("eTag"))

    async def replace_all(self, documents: Sequence[tuple[dict[str, Any], str | None]]) -> None:
        """Replace the existing documents, with an ETag only if it still holds; best effort."""
        etags = {document["id"]: etag for document, etag in documents}
        for batch in batches(document for document, _ in documents):
            await self._replace_some([(document, etags[document["id"]]) for document in batch])

    async def _replace_some(self, documents: Sequence[tuple[dict[str, Any], str | None]]) -> None:
        if len(documents) > 1:
            reply = await self.write_together([replacing(*item) for item in documents], Operation.AMEND)
            if not isinstance(reply, Conflict):
                return
        # There is one, or one of them is missing or has changed, which fails a batch for all.
        await asyncio.gather(
            *(self.replace(document["id"], document, etag, Operation.AMEND) for document, etag in documents)
        )

    async def write_all(
        self, documents: Sequence[dict[str, Any]], operation: Operation
    ) -> Applied | Conflict | Unknown:
        """Create (STAGE, OPEN_REQUEST) or upsert (PARK, BOOK) documents, in order.

        The token of the last reply includes them all. A conflict says that an earlier send of this request had created some of
        them; all of them exist then.
        """
        conflict = False
        reply: Applied | Conflict | Unknown = UNKNOWN
        for batch in batches(documents):
            reply = await self._write(_writing(batch, self._key, operation), operation)
            if reply is UNKNOWN:
                return UNKNOWN
            # What conflicts is this batch's own earlier send; that says nothing about the next batch, which has to go on.
            conflict = conflict or isinstance(reply, Conflict)
        return Conflict(reply.token) if conflict and not isinstance(reply, NoAnswer) else reply

    async def delete_all(self, documents: Mapping[str, str | None]) -> None:
        """Delete the existing documents, by id, with an ETag only if it still holds; best effort."""
        listed = tuple(documents.items())
        for first in range(0, len(listed), MAX_BATCH_OPERATIONS):
            await self._delete_some(listed[first : first + MAX_BATCH_OPERATIONS])

    async def _delete_some(self, documents: Sequence[tuple[str, str | None]]) -> None:
        if len(documents) > 1:
            operations = [("delete", (id,), {} if etag is None else {"if_match_etag": etag}) for id, etag in documents]
            reply = await self._write(
                lambda container: container.execute_item_batch(operations, self._key), Operation.DELETE
            )
            if not isinstance(reply, Conflict):
                return
        # There is a single document, or a document is missing or has changed, which fails the batch for all.
        await asyncio.gather(*(self.delete(id, etag) for id, etag in documents))

    async def delete(self, id: str, etag: str | None = None) -> Applied | Conflict | Unknown:
        """Delete a document, with an ETag only if it still holds; a conflict says that it is absent, or has changed."""
        condition = None if etag is None else MatchConditions.IfNotModified
        try:
            await self._ask(
                lambda container: container.delete_item(id, self._key, etag=etag, match_condition=condition)
            )
        except FAILURES as error:
            return after_write(error, Operation.DELETE, self._where)
        return Applied(None)

    async def _write(
        self, request: Callable[[ContainerProxy], Awaitable[Any]], operation: Operation
    ) -> Applied | Conflict | Unknown:
        try:
            written = await self._ask(request)
        except FAILURES as error:
            return after_write(error, operation, self._where)
        headers = written.get_response_headers()
        return Applied(_token(headers), headers.get("etag"))

    async def _ask(self, request: Callable[[ContainerProxy], Awaitable[Reply]]) -> Reply:
        """Make a request within the time limit. The SDK's own `timeout` is no limit: it is checked between sends only."""

        async def ask() -> Reply:
            return await request(await self._connection.container(self._container))

        return await _within(self._time_limit, ask())


if sys.version_info >= (3, 11):

    async def _within(seconds: float, asked: Coroutine[Any, Any, Reply]) -> Reply:
        async with asyncio.timeout(seconds):  # Without the extra task of `wait_for`.
            return await asked

else:

    async def _within(seconds: float, asked: Coroutine[Any, Any, Reply]) -> Reply:
        return await asyncio.wait_for(asked, seconds)


def creating(document: dict[str, Any]) -> BatchWrite:
    """Part of a batch: create a document, which must not exist."""
    return "create", (document,)


def replacing(document: dict[str, Any], etag: str | None) -> BatchWrite:
    """Part of a batch: replace a document, if it still has this ETag; unconditionally for None."""
    return "replace", (document["id"], document), {} if etag is None else {"if_match_etag": etag}


def _writing(
    batch: Sequence[dict[str, Any]], key: PartitionValue | list[PartitionValue], operation: Operation
) -> Callable[[ContainerProxy], Awaitable[Any]]:
    """A request for a batch; a plain request for a single document, since its reply need not repeat the document."""
    upsert = operation not in (Operation.STAGE, Operation.OPEN_REQUEST)
    if len(batch) > 1:
        operations = [("upsert" if upsert else "create", (document,)) for document in batch]
        return lambda container: container.execute_item_batch(operations, key)
    if upsert:
        return lambda container: container.upsert_item(batch[0], no_response=True)
    return lambda container: container.create_item(batch[0], no_response=True)


def _token(headers: Mapping[str, Any]) -> str | None:
    token = headers.get(SESSION_TOKEN)
    return None if token is None else str(token)


# The containers of entities and of the library, by the logical partitions of an entity.


LIBRARY_CONTAINER: Final = "exactlyonce"
TIME_LIMIT: Final = 10.0


class CosmosContainers(AsyncAdapter):
    """The base of store and listings: finds the partitions for an effect.

    Args:
        connection: the account and database; its owner closes it.
        entities: the container of each entity type.
        library: name of the container for pages, books, staged messages and parked messages.
        time_limit: most seconds of a request. A write that takes longer is `UNKNOWN`: it may still land.
    """

    def __init__(
        self,
        connection: CosmosConnection,
        entities: Iterable[EntityContainer],
        library: str = LIBRARY_CONTAINER,
        *,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self._connection = connection
        self._containers = {entity.type: entity for entity in entities}
        self._library_container = library
        self._time_limit = time_limit

    def _entity(self, entity: EntityRef) -> CosmosPartition:
        return self._partition(entity, self._containers[entity.type].container, entity.partition)

    def _library(self, entity: EntityRef) -> CosmosPartition:
        return self._partition(entity, self._library_container, (entity.key,))

    def _partition(self, entity: EntityRef, container: str, key: tuple[PartitionValue, ...]) -> CosmosPartition:
        require_storable(entity)
        return CosmosPartition(self._connection, container, key, self._time_limit)
