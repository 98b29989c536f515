"""Entities and the library's documents in Azure Cosmos DB for NoSQL.

An effect is a single request: a point read, a conditional write, a query of a partition, or a transactional batch; more only
where a batch would be larger than the service takes. Session tokens come in with effects and go out with replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any, Final, Literal, get_args

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import UNKNOWN, Busy, NoAnswer, Unknown, performs
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    CLOSED,
    OTHER,
    Closed,
    CloseRequest,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundBooks,
    FoundPages,
    FoundParked,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadParked,
    LoadRequests,
    LoadStaged,
    NoteSearch,
    OpenRequest,
    Other,
    Park,
    ReadBooks,
    Stage,
    Unpark,
    WriteBook,
    WritePage,
    Written,
)
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.companions import KIND, Companion, companion_document, read_companion
from exactlyonce.records.ledger import Page, read_page
from exactlyonce.records.library import (
    BOOKS,
    UNPARKED,
    LibraryRecord,
    read_book,
    read_parked,
    read_request,
    read_staged,
)
from exactlyonce.stores.cosmos.partition import (
    Applied,
    CosmosContainers,
    CosmosPartition,
    Document,
    Documents,
    EntityContainer,
    Given,
    book_id,
    creating,
    from_library,
    page_id,
    parked_id,
    replacing,
    request_id,
    staged_id,
    to_library,
    without_system,
)
from exactlyonce.stores.cosmos.replies import Absent, Operation, Taken
from exactlyonce.stores.refusals import not_an_entity, require_one_batch, require_same, unique_key_taken
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.session_tokens import later

_OWN: Final = frozenset({KIND, *(field.name for shape in get_args(Companion) for field in fields(shape))} - {"kind"})
"""The companions' own properties. The field `kind` of their classes has another name in documents."""
Read = FoundCompanions | NoAnswer | Busy
_MOST: Final = 32
"""Most messages in a query. Each is a condition of its own, and the cost must not grow with the text."""
_KIND: Final = {"@kind": "page"}
_OF_PAGES: Final = "FROM c WHERE c.kind = @kind"
_SEARCHED: Final = frozenset({"hashes", "blobs"})
"""Properties by which pages are found, but which are never read. A query is charged for its results."""
_KNOWING: Final = f"SELECT c.id, {', '.join(f'c.{item.name}' for item in fields(Page) if item.name not in _SEARCHED)}"


class CosmosStore(CosmosContainers):
    """The store. Its only state is the connection; it keeps no session tokens.

    Every method raises `ConfigurationError` for faults that only an operator can correct, such as a wrong key or an absent
    container, and `InvalidMessage` for an entity whose id Cosmos DB cannot hold; `OutputTooLarge`, `EntityTooLarge` and, for a
    message to be parked, `MalformedMessage` report a document too large for the service. Saves of an entity raise
    `EntityRefused` or `UniqueKeyTaken` for a refused document. Reads of the library's documents raise `DamagedDocument` or
    `NewerSchema` for untrusted documents.
    """

    @performs(LoadEntity)
    async def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        reply = await self._entity(effect.entity).read(effect.entity.id, effect.token)
        if isinstance(reply, Absent):
            return Loaded(None, None, 0, reply.token)
        if not isinstance(reply, Document):
            return reply
        properties = reply.properties
        if KIND in properties:
            raise not_an_entity(effect.entity)
        return Loaded(Json.of(without_system(properties)), properties["_etag"], properties["_ts"], reply.token)

    @performs(SaveEntity)
    async def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        partition, document = self._entity(effect.entity), effect.document.value
        if effect.etag is None:
            reply = await partition.create(document)
        else:
            reply = await partition.replace(effect.entity.id, document, effect.etag)
        if isinstance(reply, Taken) and await partition.is_unchanged(effect.entity.id, effect.etag, reply.token):
            raise unique_key_taken(effect.entity)
        if not isinstance(reply, Applied):
            return reply
        return UNKNOWN if reply.etag is None else Saved(reply.etag, reply.token)

    @performs(Stage)
    async def stage(self, effect: Stage) -> Written | Conflict | Unknown | Busy:
        return await self._put(effect.entity, effect.documents, Operation.STAGE)

    @performs(LoadStaged)
    async def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy:
        wanted = {staged_id(tx): tx for tx in effect.transactions}
        reply = await self._library(effect.entity).read_all(tuple(wanted), effect.token)
        if not isinstance(reply, Documents):
            return reply
        by_id = {property_["id"]: read_staged(from_library(property_)) for property_ in reply.properties}
        for id, document in by_id.items():
            require_same(effect.entity, id, document.tx, wanted[id])
        return FoundStaged(tuple(by_id[id] for id in wanted if id in by_id))

    @performs(DeleteStaged)
    async def delete_staged(self, effect: DeleteStaged) -> None:
        await self._library(effect.entity).delete_all({staged_id(tx): None for tx in effect.transactions})

    @performs(Park)
    async def park(self, effect: Park) -> Written | Unknown | Busy:
        reply = await self._put(effect.entity, (effect.message,), Operation.PARK)
        return UNKNOWN if isinstance(reply, Conflict) else reply

    @performs(LoadParked)
    async def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy:
        id = parked_id(effect.message)
        reply = await self._library(effect.entity).read(id, effect.token)
        if isinstance(reply, Absent):
            return FoundParked(None, None, None)
        if not isinstance(reply, Document):
            return reply
        if reply.read_at is None:
            return UNKNOWN  # Only the service's time judges a message: any other clock could let a message through.
        if reply.properties.get("kind") == UNPARKED:
            return FoundParked(None, None, None)
        message = read_parked(from_library(reply.properties))
        require_same(effect.entity, id, message.message, effect.message)
        return FoundParked(message, reply.properties["_etag"], datetime.fromtimestamp(reply.read_at, timezone.utc))

    @performs(Unpark)
    async def unpark(self, effect: Unpark) -> None:
        note = to_library(effect.entity, effect.note, effect.seconds)
        await self._library(effect.entity).replace(note["id"], note, effect.etag, Operation.NOTE)

    async def _put(
        self, entity: EntityRef, records: Iterable[LibraryRecord], operation: Operation
    ) -> Written | Conflict | Unknown:
        documents = [to_library(entity, record) for record in records]
        reply = await self._library(entity).write_all(documents, operation)
        return reply if isinstance(reply, Conflict) else _written(reply)

    # Companions in Cosmos DB: documents of the library in the container of their entity, under its full partition key.

    @performs(SaveBatch)
    async def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown:
        """Save the entity and write companions, all or nothing."""
        require_one_batch(effect)
        document, etag = effect.document.value, effect.etag
        saving = creating(document) if etag is None else replacing(document, etag)
        created = (creating(self._placed(effect.entity, item)) for item in effect.create)
        replaced = (replacing(self._placed(effect.entity, item), seen) for item, seen in effect.replace)
        reply = await self._shared(effect.entity).write_together((saving, *created, *replaced), Operation.COMMIT)
        # For a companion it means a taken id: with unique keys no container may hold companions.
        if (
            isinstance(reply, Taken)
            and reply.operation == 0
            and await self._shared(effect.entity).is_unchanged(effect.entity.id, etag, reply.token)
        ):
            raise unique_key_taken(effect.entity)
        if not isinstance(reply, Applied):
            return reply
        # The next save relies on the ETag, so a commit without it counts as unanswered.
        return UNKNOWN if reply.etag is None else Saved(reply.etag, reply.token)

    @performs(LoadCompanions)
    async def load_companions(self, effect: LoadCompanions) -> Read:
        """Read companions by id, in the order of the ids."""
        if not effect.ids:
            return FoundCompanions(())
        ids = tuple(dict.fromkeys(effect.ids))
        reply = await self._shared(effect.entity).read_all(ids, effect.token)
        if not isinstance(reply, Documents):
            return reply
        by_id = {document["id"]: document for document in reply.properties}
        return self._read(effect.entity, (by_id[id] for id in ids if id in by_id))

    @performs(FindEntries)
    async def find_entries(self, effect: FindEntries) -> Read:
        """Read stream entries by the versions that they produced."""
        if not effect.ranges:
            return FoundCompanions(())
        parameters: dict[str, str | int] = {"@entity": effect.entity.key, "@kind": "entry"}
        for number, (first, last) in enumerate(effect.ranges):
            parameters |= {f"@first{number}": first, f"@last{number}": last}
        ranges = (f"(c.version BETWEEN @first{number} AND @last{number})" for number in range(len(effect.ranges)))
        query = f"SELECT * FROM c WHERE c.{KIND} = @kind AND c.entity = @entity AND ({' OR '.join(ranges)})"  # noqa: S608
        reply = await self._shared(effect.entity).query(query, parameters, effect.token)
        if not isinstance(reply, Documents):
            return reply
        # Not by ORDER BY: the container is the user's, and the service refuses to order by paths without an index.
        return self._read(effect.entity, sorted(reply.properties, key=lambda document: int(document["version"])))

    @performs(FindNumbered)
    async def find_numbered(self, effect: FindNumbered) -> FoundNumbered | NoAnswer | Busy:
        """Find the versions whose outputs have numbers of a channel."""
        first, last = effect.numbers
        query = (
            f"SELECT c.version FROM c JOIN o IN c.outputs WHERE c.{KIND} = @kind AND c.entity = @entity "  # noqa: S608
            "AND o.place.channel = @channel AND o.place.number BETWEEN @first AND @last"
        )
        parameters: dict[str, str | int] = {"@entity": effect.entity.key, "@kind": "entry"}
        parameters |= {"@channel": effect.channel, "@first": first, "@last": last}
        reply = await self._shared(effect.entity).query(query, parameters, effect.token)
        if not isinstance(reply, Documents):
            return reply
        return FoundNumbered(tuple(sorted({int(row["version"]) for row in reply.properties})))

    @performs(FindOwing)
    async def find_owing(self, effect: FindOwing) -> Read:
        """Read records that owe outputs."""
        query = (
            f"SELECT TOP 100 * FROM c WHERE IS_DEFINED(c.{KIND}) AND c.entity = @entity "  # noqa: S608
            "AND IS_STRING(c.owing_since)"
        )
        reply = await self._shared(effect.entity).query(query, {"@entity": effect.entity.key}, None)
        return self._read(effect.entity, reply.properties) if isinstance(reply, Documents) else reply

    @performs(HasCompanions)
    async def has_companions(self, effect: HasCompanions) -> bool | NoAnswer | Busy:
        """Whether the entity has companions."""
        query = f"SELECT TOP 1 c.id FROM c WHERE IS_DEFINED(c.{KIND}) AND c.entity = @entity"  # noqa: S608
        reply = await self._shared(effect.entity).query(query, {"@entity": effect.entity.key}, None)
        return bool(reply.properties) if isinstance(reply, Documents) else reply

    @performs(ReplaceCompanions)
    async def replace_companions(self, effect: ReplaceCompanions) -> None:
        """Write over companions, with an ETag only if it still holds."""
        await self._shared(effect.entity).replace_all(
            [(self._placed(effect.entity, item), etag) for item, etag in effect.companions]
        )

    @performs(DeleteCompanions)
    async def delete_companions(self, effect: DeleteCompanions) -> None:
        """Delete companions that are unchanged."""
        await self._shared(effect.entity).delete_all(dict(effect.companions))

    def _shared(self, entity: EntityRef) -> CosmosPartition:
        """The partition that an entity shares with its companions."""
        if problem := next(unfit_for_companions(self._containers[entity.type]), None):
            raise ConfigurationError(problem)
        return self._entity(entity)

    def _placed(self, entity: EntityRef, companion: Companion) -> dict[str, Any]:
        """A companion as a document, with the partition key at the container's paths."""
        document = companion_document(entity, companion)
        for path, value in zip(self._containers[entity.type].paths, entity.partition, strict=True):
            _put(document, _names(path), value)
        return document

    def _read(self, entity: EntityRef, documents: Iterable[dict[str, Any]]) -> FoundCompanions:
        place = {_names(path)[0] for path in self._containers[entity.type].paths}
        companions: list[tuple[Companion, str]] = []
        for document in documents:
            own = {name: value for name, value in without_system(document).items() if name not in place}
            companions.append((read_companion(entity, own), document["_etag"]))
        return FoundCompanions(tuple(companions))

    # Documents of requests in Cosmos DB: they lie in the library's partition of their entity.

    @performs(OpenRequest)
    async def open_request(self, effect: OpenRequest) -> Written | Conflict | Unknown:
        return await self._put(effect.entity, (effect.document,), Operation.OPEN_REQUEST)

    @performs(LoadRequests)
    async def load_requests(self, effect: LoadRequests) -> FoundRequests | NoAnswer | Busy:
        wanted = {request_id(request): request for request in effect.requests}
        reply = await self._library(effect.entity).read_all(tuple(wanted), effect.token)
        if not isinstance(reply, Documents):
            return reply
        by_id = {property_["id"]: read_request(from_library(property_)) for property_ in reply.properties}
        for id, document in by_id.items():
            require_same(effect.entity, id, document.request, wanted[id])
        return FoundRequests(tuple(by_id[id] for id in wanted if id in by_id), reply.token)

    @performs(KeepAnswers)
    async def keep_answers(self, effect: KeepAnswers) -> Written | Unknown:
        token: str | None = None
        for document in effect.documents:
            properties = to_library(effect.entity, document)
            reply = await self._library(effect.entity).replace(properties["id"], properties, None, Operation.KEEP)
            # An absent document counts as kept. The primary says so, and its token shows the absence.
            if not isinstance(reply, Applied | Conflict) or reply.token is None:
                return UNKNOWN
            token = later(token, reply.token)
        return UNKNOWN if token is None else Written(token)

    @performs(CloseRequest)
    async def close_request(self, effect: CloseRequest) -> Closed | Unknown:
        reply = await self._library(effect.entity).delete(request_id(effect.request))
        return reply if isinstance(reply, NoAnswer) else CLOSED

    @performs(DeleteRequests)
    async def delete_requests(self, effect: DeleteRequests) -> None:
        await self._library(effect.entity).delete_all({request_id(item): etag for item, etag in effect.requests})

    # Pages and books in Cosmos DB: pages lie in the library's partition of their entity, books in a partition of their own.

    @performs(FindPages)
    async def find_pages(self, effect: FindPages) -> FoundPages | NoAnswer | Busy:
        partition, by_number = self._library(effect.entity), dict[int, Page]()
        replies = await asyncio.gather(
            *(
                partition.query(f"{_KNOWING} {_OF_PAGES} AND ({condition})", {**_KIND, **parameters}, effect.token)
                for condition, parameters in _conditions(effect)
            )
        )
        for reply in replies:
            if not isinstance(reply, Documents):
                return reply
            pages = (_page(effect.entity, property_) for property_ in reply.properties)
            by_number |= {page.number: page for page in pages}
        return FoundPages(tuple(by_number.values()))

    @performs(FindPagesAbove)
    async def find_pages_above(self, effect: FindPagesAbove) -> FoundAbove | NoAnswer | Busy:
        query = f"SELECT * {_OF_PAGES} AND c.number > @number"
        reply = await self._library(effect.entity).query(query, {**_KIND, "@number": effect.number}, effect.token)
        if not isinstance(reply, Documents):
            return reply
        return FoundAbove(
            tuple((_page(effect.entity, property_), property_["_etag"]) for property_ in reply.properties)
        )

    @performs(FindBlobs)
    async def find_blobs(self, effect: FindBlobs) -> frozenset[str] | NoAnswer | Busy:
        query = "SELECT b AS tx FROM c JOIN b IN c.blobs WHERE c.kind = @kind AND ARRAY_CONTAINS(@transactions, b)"
        parameters = {**_KIND, "@transactions": effect.transactions}
        reply = await self._library(effect.entity).query(query, parameters, effect.token)
        return frozenset(row["tx"] for row in reply.properties) if isinstance(reply, Documents) else reply

    @performs(HasPages)
    async def has_pages(self, effect: HasPages) -> bool | NoAnswer | Busy:
        reply = await self._library(effect.entity).query(f"SELECT TOP 1 c.id {_OF_PAGES}", _KIND, effect.token)
        return bool(reply.properties) if isinstance(reply, Documents) else reply

    @performs(WritePage)
    async def write_page(self, effect: WritePage) -> Written | Literal[Other.OTHER] | Unknown:
        partition, document = self._library(effect.entity), to_library(effect.entity, effect.page, effect.seconds)
        reply = await partition.create(document, Operation.PAGE)
        if not isinstance(reply, Conflict):
            return _written(reply)
        if reply.token is None:
            return UNKNOWN  # A view that may be stale could show a page that was deleted since.
        there = await partition.read(document["id"], reply.token)
        if not isinstance(there, Document) or there.token is None:
            return UNKNOWN
        return Written(there.token) if _page(effect.entity, there.properties) == effect.page else OTHER

    @performs(DeletePages)
    async def delete_pages(self, effect: DeletePages) -> None:
        await self._library(effect.entity).delete_all({page_id(number): etag for number, etag in effect.pages})

    @performs(WriteBook)
    async def write_book(self, effect: WriteBook) -> Written | Unknown:
        document = to_library(None, effect.book, effect.seconds)
        reply = await self._books().write_all([document], Operation.BOOK)
        return UNKNOWN if isinstance(reply, Conflict) else _written(reply)

    @performs(ReadBooks)
    async def read_books(self, effect: ReadBooks) -> FoundBooks | NoAnswer | Busy:
        if not effect.books:
            return FoundBooks(())
        reply = await self._books().read_all([*map(book_id, effect.books)], None)
        if not isinstance(reply, Documents):
            return reply
        return FoundBooks(tuple(read_book(from_library(property_)) for property_ in reply.properties))

    @performs(NoteSearch)
    async def note_search(self, effect: NoteSearch) -> None:
        document = to_library(None, effect.book, effect.seconds)
        await self._books().replace(document["id"], document, effect.etag, Operation.NOTE)

    def _books(self) -> CosmosPartition:
        return CosmosPartition(self._connection, self._library_container, (BOOKS,), self._time_limit)


def unfit_for_companions(container: EntityContainer) -> Iterator[str]:
    """Why companions cannot lie in the partitions of these entities, a sentence for each reason."""
    for path in container.paths:
        top = _names(path)[0]
        if top == "id":
            yield (
                f"The container {container.container!r} of entity {container.type!r} has the partition key path {path!r}, so "
                "every document lies in a partition of its own, and nothing can be saved together with an entity. Use a "
                "container with another path, which other documents can share, such as '/key'; or a protocol that keeps its "
                "records apart, such as Outbox()."
            )
        elif top in _OWN:
            yield (
                f"The container {container.container!r} of entity {container.type!r} has the partition key path {path!r}, but "
                f"the library's companions have a property {top!r} of their own. Use a container with another "
                "path; or a protocol that keeps its records apart, such as Outbox()."
            )


def _names(path: str) -> list[str]:
    return path[1:].split("/")


def _put(document: dict[str, Any], names: list[str], value: PartitionValue) -> None:
    for name in names[:-1]:
        document = document.setdefault(name, {})
    document[names[-1]] = value


def _conditions(effect: FindPages) -> Iterator[tuple[str, Given]]:
    """The conditions of each query, with values of their parameters. The first query asks for the newest page as well."""
    asked: list[tuple[str, str | int]] = [
        *(("(c.begin <= @{0} AND c.until >= @{0})", time) for time in effect.times),
        *(("ARRAY_CONTAINS(c.hashes, @{0})", hash) for hash in effect.hashes),
    ]
    for first in range(0, max(len(asked), 1), _MOST):
        some = asked[first : first + _MOST] if first else [("c.number = @{0}", effect.newest), *asked[:_MOST]]
        names = [f"asked{number}" for number in range(len(some))]
        condition = " OR ".join(text.format(name) for (text, _), name in zip(some, names, strict=True))
        yield condition, {f"@{name}": value for (_, value), name in zip(some, names, strict=True)}


def _page(entity: EntityRef, document: dict[str, Any]) -> Page:
    page = read_page(from_library(document))
    require_same(entity, document["id"], page_id(page.number), document["id"])
    return page


def _written(reply: Applied | Unknown) -> Written | Unknown:
    return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN
