"""A database as documents, and documents as a database."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from azure.cosmos import ContainerProxy, CosmosClient

from demo.damage import Container, Database, Document, name_of
from demo.stack import create_containers
from local_cosmos.administration import Administration

_BATCH: Final = 100
_OF_ENTITIES: Final = "SELECT * FROM c WHERE NOT IS_DEFINED(c.kind) OR c.kind != 'application'"
_SYSTEM: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")


def read(cosmos: Administration, database: str) -> Database:
    """All documents of the sample's containers."""
    copied = Database()
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        for name, container in copied.containers():
            source = client.get_database_client(database).get_container_client(name)
            for found in source.query_items(_OF_ENTITIES, enable_cross_partition_query=True):
                document = {key: value for key, value in found.items() if key not in _SYSTEM}
                container[name_of(document)] = document
    return copied


def without_garbage(copied: Database) -> Database:
    """The same documents but for those of messages that no game keeps, which clean-up would take."""
    kept = (item for game in copied.games.values() for item in game.get("_ledger", {}).get("kept", ()))
    named = {item["tx"] for item in kept}
    orphans = [
        name for name, item in copied.exactlyonce.items() if item["kind"] == "staged" and item["tx"] not in named
    ]
    for name in orphans:
        del copied.exactlyonce[name]
    return copied


def write(cosmos: Administration, database: str, documents: Database) -> None:
    """Create a database with these documents."""
    create_containers(cosmos, database)
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        for name, container in documents.containers():
            _write(client.get_database_client(database).get_container_client(name), container)


def _write(target: ContainerProxy, container: Container) -> None:
    def key(document: Document) -> Any:
        return document.get("pk", document.get("gameId"))

    for partition, found in groupby(sorted(container.values(), key=key), key):
        documents = list(found)
        for first in range(0, len(documents), _BATCH):
            batch = [("upsert", (document,)) for document in documents[first : first + _BATCH]]
            target.execute_item_batch(batch, partition)
