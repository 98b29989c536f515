"""Entities and the library's documents in Azure Cosmos DB for NoSQL.

One request per effect: a point read, a conditional write, a query of one partition, or a transactional batch; more only
where a batch would be larger than the service takes. Session tokens come in with effects and go out with replies.
"""

from __future__ import annotations

from datetime import datetime, timezone

from exactlyonce.effects.effect import UNKNOWN, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    Unpark,
    Written,
)
from exactlyonce.effects.port import Busy, performs
from exactlyonce.records.library import UNPARKED, read_parked, read_staged
from exactlyonce.stores.cosmos.companions import CosmosCompanions
from exactlyonce.stores.cosmos.layout import (
    from_library,
    parked_id,
    staged_id,
    to_library,
    without_system,
)
from exactlyonce.stores.cosmos.pages import CosmosPages
from exactlyonce.stores.cosmos.partition import Applied, Document, Documents
from exactlyonce.stores.cosmos.replies import Absent, Operation, Taken
from exactlyonce.stores.cosmos.requests import CosmosRequests
from exactlyonce.stores.refusals import require_entity_document, require_same, unique_key_taken
from exactlyonce.values.frozen_json import Json


class CosmosStore(CosmosCompanions, CosmosRequests, CosmosPages):
    """The store. It keeps no session tokens, nor anything else but its connection.

    Every method raises `ConfigurationError` for what only an operator can change, such as a wrong key or an absent container,
    and `InvalidMessage` for an entity whose id Cosmos DB cannot hold; `OutputTooLarge`, `EntityTooLarge` and, for a message to
    be parked, `MalformedMessage` say that the service found a document too large. Those that save an entity raise
    `EntityRefused` or `UniqueKeyTaken` for a document that the service does not take. Those that read documents of the library
    raise `DamagedDocument` or `NewerSchema` for what they cannot trust.

    Args:
        connection: the account and database; closing it is its owner's.
        entities: where each entity type lives.
        library: name of the container for pages, books, staged messages and parked messages.
        time_limit: seconds that one request may take. A write that takes longer is `UNKNOWN`: it may still land.
    """

    @performs(LoadEntity)
    async def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        reply = await self._entity(effect.entity).read(effect.entity.id, effect.token)
        if isinstance(reply, Absent):
            return Loaded(None, None, 0, reply.token)
        if not isinstance(reply, Document):
            return reply
        found = reply.properties
        require_entity_document(effect.entity, found)
        return Loaded(Json.of(without_system(found)), found["_etag"], found["_ts"], reply.token)

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
        documents = [to_library(effect.entity, document) for document in effect.documents]
        reply = await self._library(effect.entity).write_all(documents, Operation.STAGE)
        if isinstance(reply, Conflict):
            return reply
        return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN

    @performs(LoadStaged)
    async def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy:
        wanted = {staged_id(tx): tx for tx in effect.transactions}
        reply = await self._library(effect.entity).read_all(tuple(wanted), effect.token)
        if not isinstance(reply, Documents):
            return reply
        found = {one["id"]: read_staged(from_library(one)) for one in reply.properties}
        for id, document in found.items():
            require_same(effect.entity, id, document.tx, wanted[id])
        return FoundStaged(tuple(found[id] for id in wanted if id in found))

    @performs(DeleteStaged)
    async def delete_staged(self, effect: DeleteStaged) -> None:
        await self._library(effect.entity).delete_all({staged_id(tx): None for tx in effect.transactions})

    @performs(Park)
    async def park(self, effect: Park) -> Written | Unknown | Busy:
        documents = [to_library(effect.entity, effect.message)]
        reply = await self._library(effect.entity).write_all(documents, Operation.PARK)
        return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN

    @performs(LoadParked)
    async def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy:
        id = parked_id(effect.message)
        reply = await self._library(effect.entity).read(id, effect.token)
        if isinstance(reply, Absent):
            return FoundParked(None, None, None)
        if not isinstance(reply, Document):
            return reply
        if reply.read_at is None:
            return UNKNOWN  # Without the service's time nothing is judged: any other clock could let a message through.
        if reply.properties.get("kind") == UNPARKED:
            return FoundParked(None, None, None)
        message = read_parked(from_library(reply.properties))
        require_same(effect.entity, id, message.message, effect.message)
        return FoundParked(message, reply.properties["_etag"], datetime.fromtimestamp(reply.read_at, timezone.utc))

    @performs(Unpark)
    async def unpark(self, effect: Unpark) -> None:
        note = to_library(effect.entity, effect.note, effect.seconds)
        await self._library(effect.entity).replace(note["id"], note, effect.etag, Operation.NOTE)
