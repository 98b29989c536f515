"""The ports of a store: effects on documents, listings over all entities, and the document of the application.

A store performs the effects of `effects.entity`, `effects.library` and `effects.companions`. It keeps no session tokens: tokens
come in with effects and go out with replies.

A store raises errors for faults that only people can correct: settings, damaged documents, and refused documents, such as a
document whose unique key is taken.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.effects.effect import AsyncPort, Port
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.application import Application, application_document, read_application
from exactlyonce.records.library import Book, Search
from exactlyonce.records.outbox import Place
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json


class Store(Port, Protocol):
    """A store for blocking drivers."""


class AsyncStore(AsyncPort, Protocol):
    """A store for the async driver."""


# Listings over all entities of a type: best effort, so sweeper and operators load the entity first, and list again later.
# Debts of companions are dated by their process's clock: a wrong clock only moves the sweeper's look.


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """A parked message, without its body: the keys of receiver and message, the reason, the time of parking by the clock of the
    process that parked it, and the place in its channel, if any."""

    entity: str
    message: str
    reason: str
    at: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class ListedBook:
    """A book, and when its process wrote it, in seconds since 1970 by the store's clock."""

    book: Book
    etag: str
    written: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on documents, in the SQL of Cosmos DB.

    Attributes:
        text: the condition, such as `c.total > @least`; empty for none.
        parameters: values by name, without `@`.

    Raises:
        ConfigurationError: a parameter has a name that the query of entities needs.
    """

    text: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "type" in self.parameters:
            raise ConfigurationError(
                "A condition has no parameter @type: the query of entities uses the name. Rename the parameter."
            )


class AsyncListing(Protocol):
    """Listings come in pages; pages may repeat an entity. A caller with enough results stops iterating.

    All raise `TryAgainLater` where the store does not answer, and `ConfigurationError` for faults that only an operator can
    correct.
    """

    def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
        """The books written since a moment, in seconds since 1970, that have not ended. A query of a partition."""

    def owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[tuple[EntityRef, str], ...]]:
        """Entities of a type whose outbox holds a searched transaction, each with the transaction."""

    def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Entities of a type that keep messages which were due before now."""

    def companions(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Entities of a type whose companions have owed outputs since before a moment.

        Each page begins with the longest debts.
        """

    def holding(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Read models of a type that hold messages, with a gap, or untouched, since before a moment."""

    def bodies(
        self, type: str, condition: Condition, partition: tuple[PartitionValue, ...] | None
    ) -> AsyncIterator[tuple[tuple[EntityRef, Json], ...]]:
        """The present entities of a type that fulfil a condition, with the users' properties; without a partition, in all.
        Raises `ConfigurationError`: the store rejects the condition."""

    def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        """All parked messages."""

    async def belongings(self, entity: EntityRef) -> tuple[dict[str, Any], ...]:
        """The library's documents about an entity besides its own: ids, kinds and times, without bodies; at most 1,000."""


def entity_named(key: str) -> EntityRef:
    """The entity of a key: the inverse of `EntityRef.key`. Raises ValueError or TypeError for no valid key."""
    type, *partition, id = json.loads(key)
    return EntityRef(type, tuple(partition), id)


def listed_message(row: Mapping[str, Any]) -> ListedMessage:
    """A parked message from a row of a query."""
    place = row.get("place")
    return ListedMessage(
        row["entity"], row["message"], row["reason"], row["at"], None if place is None else Place(**place)
    )


def text_of(moment: datetime) -> str:
    """A moment as text in documents: texts compare as times do; within a second, nearly so."""
    return moment.isoformat().replace("+00:00", "Z")


def oldest_first(owing: list[tuple[EntityRef, str]]) -> tuple[EntityRef, ...]:
    """Entities without repetition, the longest debts first."""
    by_key = {entity.key: entity for entity, _ in sorted(owing, key=lambda item: item[1])}
    return tuple(by_key.values())


# The document of the application: the port, and its adapter in memory.


@dataclass(frozen=True, slots=True)
class StoredApplication:
    """The content and the ETag of the document's newest version, and the store's present."""

    application: Application
    etag: str
    now: datetime


class AsyncApplicationStore(Protocol):
    """The document of the application.

    All methods raise `TryAgainLater` where the store does not answer, and `ConfigurationError` for faults that only an operator
    can correct.
    """

    async def claim(self, application: Application) -> StoredApplication:
        """Write the document if it is absent; return the stored document.
        Raises `DamagedDocument`, `NewerSchema`: the stored document cannot be trusted."""

    async def load(self) -> StoredApplication | None:
        """The stored document, if any. Raises `DamagedDocument`, `NewerSchema`."""

    async def replace(self, application: Application, etag: str) -> bool:
        """Replace the document under the condition of its ETag; whether it was replaced. False for an unknown outcome."""


class MemoryApplicationStore:
    """The document in memory: for tests and simulations.

    Args:
        now: the store's clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._stored: Json | None = None
        self._version = 0

    async def claim(self, application: Application) -> StoredApplication:
        stored = await self.load()
        if stored is not None:
            return stored
        return self._put(application)

    async def load(self) -> StoredApplication | None:
        if self._stored is None:
            return None
        return StoredApplication(read_application(self._stored.value), str(self._version), self._now())

    async def replace(self, application: Application, etag: str) -> bool:
        if self._stored is None or etag != str(self._version):
            return False
        self._put(application)
        return True

    def _put(self, application: Application) -> StoredApplication:
        self._stored = Json.of(application_document(application))
        self._version += 1
        return StoredApplication(application, str(self._version), self._now())
