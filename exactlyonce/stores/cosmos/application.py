"""The document of the application in Cosmos DB, and the checks of account, database and containers at start-up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final, TypeVar

from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.documents import DatabaseAccount
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.application import KIND, Application, application_document, read_application
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import (
    LIBRARY_CONTAINER,
    LIBRARY_PATH,
    TIME_LIMIT,
    Applied,
    CosmosPartition,
    Document,
    EntityContainer,
    from_library,
)
from exactlyonce.stores.cosmos.replies import CREATING, FAILURES, Absent, Operation, meaning_of
from exactlyonce.stores.cosmos.store import unfit_for_companions
from exactlyonce.stores.port import StoredApplication

_TRIES: Final = 3


class CosmosApplicationStore:
    """The document, in a partition of its own.

    A view may be stale, and this document must not be: a process would judge by a retention that was changed long ago. So every
    claim first tries to create the document; the conflict has the token for the read.

    Args:
        connection: the account and database; its owner closes it.
        time_limit: most seconds of a request.
    """

    def __init__(
        self, connection: CosmosConnection, library: str = LIBRARY_CONTAINER, *, time_limit: float = TIME_LIMIT
    ) -> None:
        self._partition = CosmosPartition(connection, library, (KIND,), time_limit)

    async def claim(self, application: Application) -> StoredApplication:
        for _ in range(_TRIES):
            reply = await self._partition.create(_document(application))
            if isinstance(reply, Applied | Conflict) and (stored := await self._read(reply.token)) is not None:
                return stored
        raise TryAgainLater(
            "The document of the application could not be written, or not be read, in the library container."
        )

    async def load(self) -> StoredApplication | None:
        return await self._read(None)

    async def replace(self, application: Application, etag: str) -> bool:
        reply = await self._partition.replace(KIND, _document(application), etag)
        return isinstance(reply, Applied)

    async def _read(self, token: str | None) -> StoredApplication | None:
        reply = await self._partition.read(KIND, token)
        if isinstance(reply, Absent):
            return None
        if not isinstance(reply, Document) or reply.read_at is None:
            raise TryAgainLater("The document of the application could not be read in the library container.")
        present = datetime.fromtimestamp(reply.read_at, timezone.utc)
        return StoredApplication(read_application(from_library(reply.properties)), reply.properties["_etag"], present)


def _document(application: Application) -> dict[str, Any]:
    return {"id": KIND, LIBRARY_PATH[1:]: KIND, **application_document(application)}


# Checks at start-up: settings that the guarantee needs, and only an operator can correct. All problems are reported at once.


Answer = TypeVar("Answer")
_TOO_WEAK: Final = ("ConsistentPrefix", "Eventual")
_ABSENT: Final[dict[str, Any]] = {}


async def verify(
    client: CosmosClient, database: str, entities: Iterable[EntityContainer], library_container: str
) -> None:
    """Check account, database and containers against the configuration. It reads properties and changes nothing.

    Raises:
        ConfigurationError: names everything that has to be changed, and everything that the account refuses.
        TryAgainLater: no problem was found, but the account did not answer every question.
    """
    inquiry = _Inquiry()
    account = await inquiry.ask("the account", _account(client))
    problems = [] if account is None else [*_of_account(account)]
    problems += await _of_database(client.get_database_client(database), tuple(entities), library_container, inquiry)
    problems += [f"{', '.join(sorted(what))}: {why}" for why, what in sorted(inquiry.refused.items())]
    silent = ", ".join(f"{what} ({type(error).__name__})" for what, error in sorted(inquiry.unanswered.items()))
    if problems:
        problems += [f"Nothing is known yet of what did not answer: {silent}."] if silent else []
        raise ConfigurationError(
            "Cosmos DB is not set up as it has to be:\n" + "\n".join(f"- {problem}" for problem in problems)
        )
    for error in inquiry.unanswered.values():
        raise TryAgainLater(
            f"Cosmos DB could not be asked for its settings: {silent}. If this stays, check the account's endpoint and the "
            "network."
        ) from error


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """Asks, and goes on asking when an answer fails, so that all problems are found.

    Attributes:
        refused: by the reason, the subjects that the account refuses to show.
        unanswered: the subjects without an answer, with the error; a later question may get an answer.
    """

    refused: dict[str, list[str]] = field(default_factory=dict)
    unanswered: dict[str, Exception] = field(default_factory=dict)

    async def ask(self, what: str, question: Awaitable[Answer]) -> Answer | None:
        """The answer; None without an answer, and the failure is noted."""
        try:
            return await question
        except FAILURES as error:
            try:
                meaning_of(error, Operation.OPEN)
            except ConfigurationError as refusal:
                self.refused.setdefault(str(refusal), []).append(what)
            else:
                self.unanswered[what] = error
            return None


async def _account(client: CosmosClient) -> DatabaseAccount:
    """The account's properties. azure-cosmos 4.17 has no public method for them, and no further way to learn about several
    write regions; it calls this method of `client_connection`, a public attribute, itself."""
    return await client.client_connection.GetDatabaseAccount()


def _of_account(account: DatabaseAccount) -> Iterator[str]:
    level = (account.ConsistencyPolicy or {}).get("defaultConsistencyLevel")
    if level in _TOO_WEAK:
        yield (
            f"The account's default consistency is {level}: set it to Session or stronger. Reads could miss what this "
            "library has written before."
        )
    if account._EnableMultipleWritableLocations:  # noqa: SLF001  # It has no public name.
        yield (
            "The account writes in several regions: turn multi-region writes off. Conditions on ETags hold in one region "
            "only, and the other's write would be undone later."
        )


async def _of_database(
    database: DatabaseProxy, entities: tuple[EntityContainer, ...], library_container: str, inquiry: _Inquiry
) -> list[str]:
    if await inquiry.ask(f"database {database.id!r}", _properties(database)) == _ABSENT:
        return [f"There is no database {database.id!r}: create it, or correct its name in COSMOS__database."]
    names = [*(entity.container for entity in entities), library_container]
    whats = [*(_name(entity) for entity in entities), _name_of_library(library_container)]
    *containers, library = await asyncio.gather(
        *(
            inquiry.ask(what, _properties(database.get_container_client(name)))
            for what, name in zip(whats, names, strict=True)
        )
    )
    problems: list[str] = []
    for entity, properties in zip(entities, containers, strict=True):
        if properties is not None:
            problems += _of_entity_container(entity, properties)
    if library is not None:
        problems += _of_library_container(library_container, library)
    return problems


async def _properties(resource: DatabaseProxy | ContainerProxy) -> dict[str, Any]:
    try:
        return dict(await resource.read())
    except CosmosResourceNotFoundError as error:
        if error.sub_status == CREATING:
            raise
        return _ABSENT


def _name(entity: EntityContainer) -> str:
    return f"container {entity.container!r} of entity {entity.type!r}"


def _name_of_library(container: str) -> str:
    return f"container {container!r} of the library"


def _of_entity_container(entity: EntityContainer, properties: dict[str, Any]) -> Iterator[str]:
    name = _name(entity)
    if properties == _ABSENT:
        yield f"There is no {name}: create it with the partition key {', '.join(entity.paths)}, or correct its name."
        return
    paths = tuple(properties["partitionKey"]["paths"])
    if paths != entity.paths:
        yield (
            f"The {name} has the partition key {', '.join(paths)}, but the entity declares {', '.join(entity.paths)}: correct "
            "partition_key= of the entity. A container's partition key cannot be changed."
        )
    lifetime = properties.get("defaultTtl")
    if lifetime is not None and lifetime > 0:
        yield (
            f"The {name} lets documents expire after {lifetime} s (defaultTtl): set it to -1 or remove it. With an entity goes "
            "the knowledge of what it has processed."
        )
    if entity.companions:
        yield from unfit_for_companions(entity)
        if _unique_keys(properties):
            yield (
                f"The {name} has unique keys: create it anew without them, or choose a protocol that keeps its records apart, "
                "such as Outbox(). Companions have none of these properties, and the service "
                "would take only one such document in a partition."
            )


def _of_library_container(container: str, properties: dict[str, Any]) -> Iterator[str]:
    name = _name_of_library(container)
    if properties == _ABSENT:
        yield (
            f"There is no {name}: create it with the partition key {LIBRARY_PATH} and defaultTtl -1, or correct its name in "
            "EXACTLYONCE__container."
        )
        return
    paths = tuple(properties["partitionKey"]["paths"])
    if paths != (LIBRARY_PATH,):
        yield f"The {name} has the partition key {', '.join(paths)}: create it anew with {LIBRARY_PATH}."
    if properties.get("defaultTtl") != -1:
        yield (
            f"The {name} has the defaultTtl {properties.get('defaultTtl')}: set it to -1, so that pages and books expire when "
            "they are to, and nothing else does."
        )
    if _unique_keys(properties):
        yield (
            f"The {name} has unique keys: create it anew without them. The library's documents have none of these properties, "
            "and the service would take only one of them for each entity."
        )


def _unique_keys(properties: dict[str, Any]) -> list[Any]:
    """The unique keys of a container; the service returns an empty list for a container without unique keys."""
    return list((properties.get("uniqueKeyPolicy") or {}).get("uniqueKeys") or ())
