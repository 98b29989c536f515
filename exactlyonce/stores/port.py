"""A store performs the effects of `effects.entity`, `effects.library` and `effects.companions`.

It keeps no session tokens of its own: tokens come in with effects and go out with replies.

It raises for what only people can change: settings, damaged documents, and a document that the store does not take, such as
one whose unique key is taken.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.effects.port import AsyncPort, Port
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.application import Application, application_document, read_application
from exactlyonce.records.library import Book, Search
from exactlyonce.records.sequences import Place
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json


class Store(Port, Protocol):
    """A store for blocking drivers."""


class AsyncStore(AsyncPort, Protocol):
    """A store for the async driver."""


# What to look after, found across all entities of a type: for the sweeper and for operators.
#
# A listing is best effort. It may name entities that need nothing any more, and miss what was written just now: sweeper and
# operators load the entity first, and list again later. A companion owes since `at` of the process that committed. That is
# exact enough, since it decides only when the sweeper looks: too early a look publishes copies at most, and a clock that is
# minutes ahead or behind makes the look that much later or earlier.


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """A parked message, without its body.

    Attributes:
        entity: key of the entity that it is for.
        message: its key.
        reason: why it was parked.
        at: when, by the clock of the process that parked it.
        place: in its channel; None if it has none.
    """

    entity: str
    message: str
    reason: str
    at: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class ListedBook:
    """A book.

    Attributes:
        book: as it was read.
        etag: of it.
        written: when its process wrote it, in seconds since 1970, by the store's clock.
    """

    book: Book
    etag: str
    written: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on documents, in the SQL of Cosmos DB.

    Attributes:
        text: such as `c.total > @least`; empty for none.
        given: values of its parameters, by name without `@`.

    Raises:
        ConfigurationError: a parameter has a name that the query of entities needs.
    """

    text: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "type" in self.given:
            raise ConfigurationError(
                "A condition has no parameter @type: the query of entities has one itself. Rename it."
            )


class AsyncListing(Protocol):
    """Listings come in pages, and an entity may be in several. A caller that has enough stops iterating.

    All raise `TryAgainLater` where the store does not answer, and `ConfigurationError` for what only an operator can change.
    """

    def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
        """The books that were written since a moment, in seconds since 1970, and have not ended. One query of one partition."""
        ...

    def owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[tuple[EntityRef, str], ...]]:
        """Entities of a type whose outbox holds one of the transactions that are searched for, each with that transaction."""
        ...

    def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Entities of a type that keep messages which were due before now."""
        ...

    def companions(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Entities of a type whose companions have owed outputs since before a moment.

        Each page begins with those that have owed for longest.
        """
        ...

    def holding(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        """Read models of a type that hold messages, and miss others, or were left alone, since before a moment."""
        ...

    def bodies(
        self, type: str, condition: Condition, partition: tuple[PartitionValue, ...] | None
    ) -> AsyncIterator[tuple[tuple[EntityRef, Json], ...]]:
        """The entities of a type that are there, with the users' properties.

        Args:
            type: of the entities.
            condition: which of them.
            partition: values of the partition key; None for all partitions.

        Raises:
            ConfigurationError: the store does not take the condition.
        """
        ...

    def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        """All parked messages."""
        ...

    async def belongings(self, entity: EntityRef) -> tuple[dict[str, Any], ...]:
        """What the library keeps apart from the document of an entity: ids, kinds and times, without bodies; at most 1,000."""
        ...


def entity_named(key: str) -> EntityRef:
    """The entity that a key names: the inverse of `EntityRef.key`. Raises ValueError or TypeError if it names none."""
    type, *partition, id = json.loads(key)
    return EntityRef(type, tuple(partition), id)


def listed_message(row: Mapping[str, Any]) -> ListedMessage:
    """A parked message as a query found it."""
    place = row.get("place")
    return ListedMessage(
        row["entity"], row["message"], row["reason"], row["at"], None if place is None else Place(**place)
    )


def text_of(moment: datetime) -> str:
    """A moment as documents have it, so that texts compare as times do; within one second, nearly so."""
    return moment.isoformat().replace("+00:00", "Z")


def oldest_first(found: list[tuple[EntityRef, str]]) -> tuple[EntityRef, ...]:
    """Entities by since when they have owed; each once."""
    by_key = {entity.key: entity for entity, _ in sorted(found, key=lambda one: one[1])}
    return tuple(by_key.values())


# Where the document of the application lies: the port, and a place in memory.


@dataclass(frozen=True, slots=True)
class StoredApplication:
    """The document, in the newest version there was.

    Attributes:
        application: what it says.
        etag: of that version.
        now: the store's present.
    """

    application: Application
    etag: str
    now: datetime


class AsyncApplicationStore(Protocol):
    """One document.

    All methods raise `TryAgainLater` where the store does not answer, and `ConfigurationError` for what only an operator can
    change.
    """

    async def claim(self, application: Application) -> StoredApplication:
        """Write the document if there is none; what is stored then.

        Raises:
            DamagedDocument, NewerSchema: there is one that cannot be trusted.
        """
        ...

    async def load(self) -> StoredApplication | None:
        """What is stored, if anything. Raises `DamagedDocument`, `NewerSchema`."""
        ...

    async def replace(self, application: Application, etag: str) -> bool:
        """Replace the document, if it still has this ETag; whether it had. If nobody knows, it had not."""
        ...


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
        found = await self.load()
        if found is not None:
            return found
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
