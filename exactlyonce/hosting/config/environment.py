"""The environment: settings, and the connections that they name. One error names all that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.config.connections import Connections, ServiceBusConnection, StorageConnection
from exactlyonce.hosting.config.settings import Settings, require_none
from exactlyonce.transports.service_bus.limits import LONGEST_DELIVERY_LIMIT

_STORAGE_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_SERVICE_BUS_NAME: Final = re.compile(r"(?=.{1,260}\Z)[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")


def load_all(destinations: Iterable[str], transport: str | None = None) -> tuple[Settings, Connections]:
    """Read the environment: the settings, and the connections that they name.

    Args:
        destinations: names of the application's destinations.
        transport: in place of `EXACTLYONCE__transport`.

    Raises:
        ConfigurationError: naming everything that is missing or wrong, and what to set.
    """
    settings, problems = Settings.examine(**({} if transport is None else {"EXACTLYONCE__transport": transport}))
    storage, service_bus = None, None
    try:
        if settings.needs_storage:
            storage = StorageConnection("Unknown=")  # A stand-in that passes all checks below.
            storage = StorageConnection.load(settings.connection)
    except ConfigurationError as error:
        problems.append(str(error))
    try:
        if settings.transport == "servicebus":
            service_bus = ServiceBusConnection.load(settings.service_bus)
    except ConfigurationError as error:
        problems.append(str(error))
    problems += _unfit(settings, storage, tuple(destinations))
    require_none(problems)
    return settings, Connections(storage, service_bus)


def require_fit(settings: Settings, connections: Connections, destinations: tuple[str, ...]) -> None:
    """Raise `ConfigurationError` if settings do not fit the destinations or the connections; it names all that is wrong."""
    lacking = []
    if settings.needs_storage and connections.storage is None:
        lacking.append("Queues of a storage account, or blobs, need a storage connection: give storage=.")
    if settings.transport == "servicebus" and connections.service_bus is None:
        lacking.append("Queues of Service Bus need a connection: give service_bus=.")
    require_none([*lacking, *_unfit(settings, connections.storage, destinations)])


def _unfit(settings: Settings, storage: StorageConnection | None, destinations: tuple[str, ...]) -> Iterator[str]:
    for name in sorted(settings.destinations.keys() - set(destinations)):
        yield (
            f"EXACTLYONCE__destinations maps {name!r}, which is no destination of this application; declared are: "
            f"{', '.join(destinations) or 'none'}."
        )
    for name in destinations:
        yield from _unfit_name(settings, name)
    if settings.transport == "servicebus" and settings.delivery_limit > LONGEST_DELIVERY_LIMIT:
        yield (
            f"EXACTLYONCE__deliveryLimit is {settings.delivery_limit}, and a message of Service Bus has a time to live of at "
            f"most {LONGEST_DELIVERY_LIMIT}: set it to P49D or less."
        )
    if settings.blob_container is not None and storage is not None and storage.blobs is None:
        yield (
            f"EXACTLYONCE__blobContainer names a container, but not where it is: set {settings.connection}__blobServiceUri."
        )


def _unfit_name(settings: Settings, destination: str) -> Iterator[str]:
    queue = settings.destinations.get(destination, destination)
    if settings.transport == "storage" and not _STORAGE_NAME.fullmatch(queue):
        yield (
            f"{queue!r} cannot be the name of a queue: 3 to 63 lower-case letters, digits and single hyphens, the first and "
            f"last no hyphen. Map the destination {destination!r} to a queue in EXACTLYONCE__destinations."
        )
    if settings.transport == "servicebus" and not _SERVICE_BUS_NAME.fullmatch(queue):
        yield (
            f"{queue!r} cannot be the name of a queue or topic of Service Bus: at most 260 letters, digits and ._-/, the first "
            f"and last a letter or a digit. Map the destination {destination!r} to one in EXACTLYONCE__destinations."
        )
