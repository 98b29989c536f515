"""Ownership of the library's container: a document with the application's name, entity types and retention."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce.drivers.runtime import Clock
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.records.application import Application, OwnedType, application_of
from exactlyonce.stores.port import AsyncApplicationStore, StoredApplication
from exactlyonce.values.lifetimes import RETENTION, Expiry, Lifetimes, Retention

REFRESH: Final = timedelta(hours=1)
"""Age from which the document is read again."""
LEASE: Final = timedelta(hours=6)
"""Age from which a read document is no longer relied on. After a change, old and new retention both hold for a day."""
_AGAIN: Final = timedelta(minutes=1)
"""Time between two attempts to read the document."""
_TRIES: Final = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of an application, by settings and entities.

    Attributes:
        library: the library's container.
        name: the application's name.
        retention: from the settings; None if they have none.
        delivery_limit: how long a message may wait in its queue.
        expiry: who deletes pages.
    """

    library: str
    name: str
    types: tuple[OwnedType, ...]
    retention: timedelta | None
    delivery_limit: timedelta
    expiry: Expiry = "job"

    @classmethod
    def by(cls, settings: Settings, entities: Iterable[Entity[Any]]) -> Declared:
        types = tuple(OwnedType(entity.name, entity.container, entity.paths) for entity in entities)
        library, name = settings.library_container, settings.application
        return cls(library, name, types, settings.retention, settings.delivery_limit, settings.expiry)


class Ownership:
    """Claims the library's container for an application, and gives the retention of its document."""

    def __init__(self, store: AsyncApplicationStore, declared: Declared, clock: Clock) -> None:
        self._store = store
        self._declared = declared
        self._clock = clock
        self._reading = asyncio.Lock()
        self._known: Application | None = None
        self._current: Lifetimes | None = None
        self._read_at: datetime | None = None
        self._tried_at: datetime | None = None

    def lifetimes(self) -> Lifetimes:
        """The lifetimes of messages, by the last read of the document.

        Raises:
            TryAgainLater: the document has not been read yet.
        """
        if self._current is None:
            raise TryAgainLater("The retention is not known yet: the application has not started.")
        return self._current

    async def ready(self) -> None:
        """Claim the container for this application, and read the document again if the last read is too old.

        Raises:
            ConfigurationError: the container belongs to another application, or the document contradicts the declaration. The
                error names all differences.
            TryAgainLater: the document was never read, or too long ago.
            DamagedDocument, NewerSchema: the document cannot be trusted.
        """
        if self._is_younger(self._read_at, REFRESH):
            return
        async with self._reading:
            if self._is_younger(self._read_at, REFRESH):
                return
            lasts = self._is_younger(self._read_at, LEASE)
            if lasts and self._is_younger(self._tried_at, _AGAIN):
                return
            self._tried_at = self._clock.now()
            try:
                await self._claim()
            except TryAgainLater as error:
                if not lasts:
                    raise
                _log.warning("the document of the application was not read again: %s", error)
            except ConfigurationError:
                self._read_at = None
                raise

    async def stored(self) -> StoredApplication | None:
        """The stored document, of any application; None before the first start."""
        return await self._store.load()

    async def change_retention(self, new: timedelta, stored: StoredApplication) -> bool:
        """Start a change of the retention; False if the document has changed since the read.

        Raises:
            ConfigurationError: a change is under way, or the delivery limit is too long for the new retention.
        """
        changed = replace(stored.application, retention=stored.application.retention.changed_to(new, stored.now))
        Lifetimes(changed.retention, self._declared.delivery_limit)
        return await self._store.replace(changed, stored.etag)

    async def forget(self, type: str, stored: StoredApplication) -> bool:
        """Remove an entity type from the document; False if the document has changed since the read.

        Raises:
            ConfigurationError: the document has no such type, or this application declares it.
        """
        place = stored.application.place_of(type)
        if place is None:
            names = ", ".join(repr(kind.type) for kind in stored.application.types) or "none"
            raise ConfigurationError(f"There is no entity type {type!r}; there are: {names}.")
        if place in self._declared.types:
            raise ConfigurationError(
                f"This application declares the entity type {type!r}, and would add it again: remove it from its code first."
            )
        return await self._store.replace(stored.application.without(type), stored.etag)

    async def _claim(self) -> None:
        began = self._clock.now()
        declared, first = self._declared, self._known is None
        # A deleted document is written again as this process last read it.
        mine = self._known or application_of(declared.name, declared.types, Retention(declared.retention or RETENTION))
        # Refuses a retention by which nothing could be sent, before it is stored.
        Lifetimes(mine.retention, declared.delivery_limit)
        for _ in range(_TRIES):
            stored = await self._store.claim(mine)
            self._require_own(stored, first=first)
            wanted = stored.application.joined_by(declared.types)
            if wanted == stored.application or await self._store.replace(wanted, stored.etag):
                self._known, self._current, self._read_at = wanted, self._as_of(stored), began
                return
        raise TryAgainLater(f"The document of the application in container {declared.library!r} keeps changing.")

    def _as_of(self, stored: StoredApplication) -> Lifetimes:
        """The lifetimes by a document, without the former retention once the change has settled."""
        present = stored.application.retention
        retention = Retention(present.current) if present.settled(stored.now) else present
        return Lifetimes(retention, self._declared.delivery_limit, self._declared.expiry)

    def _require_own(self, stored: StoredApplication, *, first: bool) -> None:
        if problems := "\n".join(f"- {problem}" for problem in self._problems(stored, first=first)):
            library, name = self._declared.library, self._declared.name
            raise ConfigurationError(
                f"Container {library!r} of the library is not set up for application {name!r}:\n{problems}"
            )

    def _problems(self, stored: StoredApplication, *, first: bool) -> Iterator[str]:
        application, declared = stored.application, self._declared
        if application.name != declared.name:
            yield (
                f"It belongs to application {application.name!r}. Set EXACTLYONCE__container to a container of your own; or, "
                "if both are one application, set EXACTLYONCE__application to the same name."
            )
        yield from application.contradicted_by(declared.types)
        # Running processes go by the document: operators change the retention there, and settings follow within a day.
        retention = application.retention
        former = None if retention.settled(stored.now) else retention.previous
        if first and declared.retention not in (None, retention.current, former):
            yield (
                f"Its retention is {retention.current}, but EXACTLYONCE__retention is {declared.retention}: remove "
                "the setting, or change the stored retention with `exactlyonce ops retention`."
            )
        try:
            self._as_of(stored)
        except ConfigurationError as error:
            yield str(error)

    def _is_younger(self, moment: datetime | None, age: timedelta) -> bool:
        """Whether a moment is less than `age` ago. False for a moment in the future: the clock was set back."""
        return moment is not None and timedelta(0) <= self._clock.now() - moment < age
