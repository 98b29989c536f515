"""Companions in Cosmos DB: documents of the library in the container of their entity, under its full partition key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Final, get_args

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
from exactlyonce.effects.effect import UNKNOWN, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.effects.port import Busy, performs
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.companions import KIND, Companion, companion_document, read_companion
from exactlyonce.stores.cosmos.containers import CosmosContainers
from exactlyonce.stores.cosmos.layout import EntityContainer, without_system
from exactlyonce.stores.cosmos.partition import Applied, CosmosPartition, Documents, creating, replacing
from exactlyonce.stores.cosmos.replies import Operation, Taken
from exactlyonce.stores.refusals import require_one_batch, unique_key_taken
from exactlyonce.values.identity import EntityRef, PartitionValue

_OWN: Final = frozenset({KIND, *(field.name for shape in get_args(Companion) for field in fields(shape))} - {"kind"})
"""Properties that companions have themselves. What their classes call `kind` stands under another name in documents."""

Read = FoundCompanions | NoAnswer | Busy


def unfit_for_companions(container: EntityContainer) -> Iterator[str]:
    """Why companions cannot lie in the partitions of these entities, one sentence for each reason."""
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


class CosmosCompanions(CosmosContainers):
    """The requests for companions.

    Every method raises `ConfigurationError` if the partition key of the entity's container leaves no place for companions.
    """

    @performs(SaveBatch)
    async def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown:
        """Save the entity and write companions, all or nothing."""
        require_one_batch(effect)
        document, etag = effect.document.value, effect.etag
        saving = creating(document) if etag is None else replacing(document, etag)
        created = (creating(self._placed(effect.entity, one)) for one in effect.create)
        replaced = (replacing(self._placed(effect.entity, one), seen) for one, seen in effect.replace)
        reply = await self._shared(effect.entity).write_together((saving, *created, *replaced), Operation.COMMIT)
        # Of a companion it says that its id is taken: with unique keys no container may hold any.
        if (
            isinstance(reply, Taken)
            and reply.operation == 0
            and await self._shared(effect.entity).is_unchanged(effect.entity.id, etag, reply.token)
        ):
            raise unique_key_taken(effect.entity)
        if not isinstance(reply, Applied):
            return reply
        # The next save relies on the ETag, so a commit without one is as good as one that was not answered.
        return UNKNOWN if reply.etag is None else Saved(reply.etag, reply.token)

    @performs(LoadCompanions)
    async def load_companions(self, effect: LoadCompanions) -> Read:
        """Read companions by id, in the order asked for."""
        if not effect.ids:
            return FoundCompanions(())
        ids = tuple(dict.fromkeys(effect.ids))
        reply = await self._shared(effect.entity).read_all(ids, effect.token)
        if not isinstance(reply, Documents):
            return reply
        found = {document["id"]: document for document in reply.properties}
        return self._read(effect.entity, (found[id] for id in ids if id in found))

    @performs(FindEntries)
    async def find_entries(self, effect: FindEntries) -> Read:
        """Read stream entries by the versions they produced."""
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
        # Not by ORDER BY: the container is the user's, and the service refuses to order by what it does not index.
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
        """Whether there are any."""
        query = f"SELECT TOP 1 c.id FROM c WHERE IS_DEFINED(c.{KIND}) AND c.entity = @entity"  # noqa: S608
        reply = await self._shared(effect.entity).query(query, {"@entity": effect.entity.key}, None)
        return bool(reply.properties) if isinstance(reply, Documents) else reply

    @performs(ReplaceCompanions)
    async def replace_companions(self, effect: ReplaceCompanions) -> None:
        """Write over companions, those with an ETag only if they are unchanged."""
        await self._shared(effect.entity).replace_all(
            [(self._placed(effect.entity, one), etag) for one, etag in effect.companions]
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
        """A companion as a document, with the partition key where the container wants it."""
        document = companion_document(entity, companion)
        for path, value in zip(self._containers[entity.type].paths, entity.partition, strict=True):
            _put(document, _names(path), value)
        return document

    def _read(self, entity: EntityRef, documents: Iterable[dict[str, Any]]) -> FoundCompanions:
        place = {_names(path)[0] for path in self._containers[entity.type].paths}
        found: list[tuple[Companion, str]] = []
        for document in documents:
            own = {name: value for name, value in without_system(document).items() if name not in place}
            found.append((read_companion(entity, own), document["_etag"]))
        return FoundCompanions(tuple(found))


def _names(path: str) -> list[str]:
    return path[1:].split("/")


def _put(document: dict[str, Any], names: list[str], value: PartitionValue) -> None:
    for name in names[:-1]:
        document = document.setdefault(name, {})
    document[names[-1]] = value
