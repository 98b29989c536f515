"""What an app declares, created in the accounts of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from azure.core.exceptions import ResourceExistsError
from azure.cosmos import CosmosClient, PartitionKey
from azure.storage.queue import QueueServiceClient

from exactlyonce.hosting import Needs
from function_host.functions import Function, ServiceBusTrigger

_DEAD_LETTERS = "/$DeadLetterQueue"


def create_containers(needs: Needs, settings: Mapping[str, str]) -> None:
    """Create the database of an application and its containers, where they do not exist."""
    with CosmosClient(settings["COSMOS__accountEndpoint"], settings.get("COSMOS__accountKey", "")) as client:
        database = client.create_database_if_not_exists(needs.database)
        for name, paths in needs.containers.items():
            key = PartitionKey(paths[0]) if len(paths) == 1 else PartitionKey(list(paths), kind="MultiHash")
            database.create_container_if_not_exists(name, key)
        database.create_container_if_not_exists(needs.library_container, PartitionKey("/pk"), default_ttl=-1)


def create_queues(names: Iterable[str], connection_string: str) -> None:
    """Create storage queues, where they do not exist."""
    with QueueServiceClient.from_connection_string(connection_string) as service:
        for name in names:
            with suppress(ResourceExistsError):
                service.create_queue(name).close()


def create_blob_container(name: str, connection_string: str) -> None:
    """Create a container for blobs, where it does not exist."""
    from azure.storage.blob import BlobServiceClient  # noqa: PLC0415  # It loads slowly, and few apps have blobs.

    with BlobServiceClient.from_connection_string(connection_string) as service, suppress(ResourceExistsError):
        service.create_container(name)


def topology(functions: Iterable[Function], destinations: Iterable[str]) -> dict[str, Any]:
    """The queues and topics of an app on Service Bus, as the configuration of Microsoft's emulator.

    Args:
        functions: of the app. A trigger on a subscription makes its entity a topic.
        destinations: queues and topics that the app sends to.
    """
    queues: dict[str, bool] = {}
    topics: dict[str, dict[str, bool]] = {}
    for trigger in (function.trigger for function in functions):
        if isinstance(trigger, ServiceBusTrigger):
            entity, name = trigger.entity, trigger.entity.name.removesuffix(_DEAD_LETTERS)
            if entity.subscription is None:
                queues[name] = queues.get(name, False) or entity.sessions
            else:
                found = topics.setdefault(name, {})
                subscription = entity.subscription.removesuffix(_DEAD_LETTERS)
                found[subscription] = found.get(subscription, False) or entity.sessions
    queues |= {name: False for name in destinations if name not in queues and name not in topics}
    namespace = {
        "Name": "local",
        "Queues": [_holding(name, sessions) for name, sessions in queues.items()],
        "Topics": [
            {"Name": name, "Subscriptions": [_holding(item, sessions) for item, sessions in subscriptions.items()]}
            for name, subscriptions in topics.items()
        ],
    }
    return {"UserConfig": {"Namespaces": [namespace]}}


def _holding(name: str, sessions: bool) -> dict[str, Any]:
    return {"Name": name, "Properties": {"RequiresSession": sessions}}
