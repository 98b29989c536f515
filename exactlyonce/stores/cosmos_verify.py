"""Checks at start-up what the guarantee rests on and only an operator can change. All problems are told at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from azure.cosmos.aio import CosmosClient, DatabaseProxy
from azure.cosmos.documents import DatabaseAccount
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.stores.cosmos_beside import unfit_for_companions
from exactlyonce.stores.cosmos_layout import LIBRARY_PATH, EntityContainer
from exactlyonce.stores.cosmos_replies import FAILURES, Operation, meaning_of

_TOO_WEAK: Final = ("ConsistentPrefix", "Eventual")


async def verify(
    client: CosmosClient, database: str, entities: Iterable[EntityContainer], library_container: str
) -> None:
    """Check account, database and containers against the configuration. It reads properties and changes nothing.

    Args:
        client: open.
        database: name of the database.
        entities: where each entity type lives.
        library_container: name of the container of the library.

    Raises:
        ConfigurationError: names everything that has to be changed, or what the account refuses.
        TryAgainLater: the account could not be asked.
    """
    try:
        problems = [
            *_of_account(await _account(client)),
            *await _of_database(client.get_database_client(database), tuple(entities), library_container),
        ]
    except FAILURES as error:
        meaning_of(error, Operation.OPEN)
        raise TryAgainLater(
            f"Cosmos DB could not be asked for its settings ({type(error).__name__}). If this stays, check the account's "
            "endpoint and the network."
        ) from error
    if problems:
        raise ConfigurationError(
            "Cosmos DB is not set up as it has to be:\n" + "\n".join(f"- {one}" for one in problems)
        )


async def _account(client: CosmosClient) -> DatabaseAccount:
    """The account's properties. azure-cosmos 4.17 has no public method for them, and no other way to learn about several
    write regions; it calls this one of `client_connection`, a public attribute, itself."""
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
    database: DatabaseProxy, entities: tuple[EntityContainer, ...], library_container: str
) -> list[str]:
    try:
        await database.read()
    except CosmosResourceNotFoundError:
        return [f"There is no database {database.id!r}: create it, or correct its name in the settings."]
    problems: list[str] = []
    for entity in entities:
        properties = await _properties(database, entity.container)
        problems += _of_entity_container(entity, properties)
    problems += _of_library_container(library_container, await _properties(database, library_container))
    return problems


async def _properties(database: DatabaseProxy, container: str) -> dict[str, Any] | None:
    try:
        return await database.get_container_client(container).read()
    except CosmosResourceNotFoundError:
        return None


def _of_entity_container(entity: EntityContainer, properties: dict[str, Any] | None) -> Iterator[str]:
    name = f"container {entity.container!r} of entity {entity.type!r}"
    if properties is None:
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
        if properties.get("uniqueKeyPolicy", {}).get("uniqueKeys"):
            yield (
                f"The {name} has unique keys: create it anew without them, or choose a protocol that keeps its records apart, "
                "such as Outbox(). The library's documents beside an entity have none of these properties, and the service "
                "would take only one such document in a partition."
            )


def _of_library_container(container: str, properties: dict[str, Any] | None) -> Iterator[str]:
    name = f"container {container!r} of the library"
    if properties is None:
        yield f"There is no {name}: create it with the partition key {LIBRARY_PATH} and defaultTtl -1."
        return
    paths = tuple(properties["partitionKey"]["paths"])
    if paths != (LIBRARY_PATH,):
        yield f"The {name} has the partition key {', '.join(paths)}: create it anew with {LIBRARY_PATH}."
    if properties.get("defaultTtl") != -1:
        yield (
            f"The {name} has the defaultTtl {properties.get('defaultTtl')}: set it to -1, so that records may expire but "
            "do not do so by themselves."
        )
