"""Whether the library's container is this application's, and by which retention it judges."""

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
from exactlyonce.stores.application import AsyncApplicationStore, StoredApplication
from exactlyonce.values.lifetimes import RETENTION, Lifetimes, Retention

REFRESH: Final = timedelta(hours=1)
"""Age from which what was read of the document is read again."""
LEASE: Final = timedelta(hours=6)
"""Age from which it is not relied on. After a change of the retention both old and new hold for a day, which is longer."""
_AGAIN: Final = timedelta(minutes=1)
"""Time between two attempts to read it."""
_TRIES: Final = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Declared:
    """What an application says of itself.

    Attributes:
        library: the container of the library.
        name: of the application.
        types: its entity types.
        retention: that a setting asks for; None if none does.
        delivery_limit: how long a message may wait in its queue.
    """

    library: str
    name: str
    types: tuple[OwnedType, ...]
    retention: timedelta | None
    delivery_limit: timedelta

    @classmethod
    def by(cls, settings: Settings, entities: Iterable[Entity[Any]]) -> Declared:
        """What settings and entities declare."""
        types = tuple(OwnedType(one.name, one.container, one.paths) for one in entities)
        return cls(settings.library_container, settings.application, types, settings.retention, settings.delivery_limit)


class Ownership:
    """Claims the library's container for an application, and knows what its document says.

    Args:
        store: where the document lies.
        declared: what this application is.
        clock: tells how old it is what was read.
    """

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
        """How long messages are known, as the document said when it was read last.

        Raises:
            TryAgainLater: it has not been read yet.
        """
        if self._current is None:
            raise TryAgainLater("It is not known yet for how long messages are known: the application has not started.")
        return self._current

    async def ready(self) -> None:
        """See that the container is this application's, and that what is known of its document is young enough.

        Raises:
            ConfigurationError: the container is another application's, or is said otherwise of what this one declares. It
                names all that differs.
            TryAgainLater: the document has not been read for too long, or never.
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
        """What is stored of the application, whether or not it is this one; None before its first start."""
        return await self._store.load()

    async def change_retention(self, new: timedelta, found: StoredApplication) -> bool:
        """Begin a change of the retention; False if the document has changed since it was found.

        Raises:
            ConfigurationError: a change is under way, or the delivery limit is too long for it.
        """
        changed = replace(found.application, retention=found.application.retention.changed_to(new, found.now))
        Lifetimes(changed.retention, self._declared.delivery_limit)
        return await self._store.replace(changed, found.etag)

    async def forget(self, type: str, found: StoredApplication) -> bool:
        """Give up an entity type; False if the document has changed since it was found.

        Raises:
            ConfigurationError: the type is not known, or this application has it where it is.
        """
        known = found.application.place_of(type)
        if known is None:
            names = ", ".join(repr(one.type) for one in found.application.types) or "none"
            raise ConfigurationError(f"There is no entity type {type!r}; there are: {names}.")
        if known in self._declared.types:
            raise ConfigurationError(
                f"This application has the entity type {type!r}, and would add it again: remove the type from it first, "
                "everywhere."
            )
        return await self._store.replace(found.application.without(type), found.etag)

    async def _claim(self) -> None:
        began = self._clock.now()
        declared, first = self._declared, self._known is None
        # Should somebody have deleted the document, it comes back as it was.
        mine = self._known or application_of(declared.name, declared.types, Retention(declared.retention or RETENTION))
        Lifetimes(mine.retention, declared.delivery_limit)  # It is not written down if nothing could be sent.
        for _ in range(_TRIES):
            stored = await self._store.claim(mine)
            self._require_own(stored, first=first)
            wanted = stored.application.joined_by(declared.types)
            if wanted == stored.application or await self._store.replace(wanted, stored.etag):
                self._known, self._current, self._read_at = wanted, self._as_of(stored), began
                return
        raise TryAgainLater(f"The document of the application in container {declared.library!r} changes all the time.")

    def _as_of(self, stored: StoredApplication) -> Lifetimes:
        """By the retention, without what it was before a change that is long over."""
        found = stored.application.retention
        retention = Retention(found.current) if found.settled(stored.now) else found
        return Lifetimes(retention, self._declared.delivery_limit)

    def _require_own(self, stored: StoredApplication, *, first: bool) -> None:
        declared = self._declared
        problems = [*self._problems(stored, first=first)]
        if problems:
            raise ConfigurationError(
                f"Container {declared.library!r} of the library is not set up for application {declared.name!r}:\n"
                + "\n".join(f"- {one}" for one in problems)
            )

    def _problems(self, stored: StoredApplication, *, first: bool) -> Iterator[str]:
        found, declared = stored.application, self._declared
        if found.name != declared.name:
            yield (
                f"It belongs to application {found.name!r}. Give this one a container of its own (EXACTLYONCE__container); or, "
                "if it is the same application, the same name in EXACTLYONCE__application."
            )
        yield from found.contradicted_by(declared.types)
        # What runs goes by the document: a retention is changed there, while processes run, and settings follow in a day.
        if first and declared.retention not in (None, found.retention.current, self._before(stored)):
            yield (
                f"Messages are known for {found.retention.current} here, and EXACTLYONCE__retention says {declared.retention}: "
                "remove the setting, or change what is stored with `python -m exactlyonce.cli retention`."
            )
        try:
            self._as_of(stored)
        except ConfigurationError as error:
            yield str(error)

    @staticmethod
    def _before(stored: StoredApplication) -> timedelta | None:
        """What the retention was, while a change is under way."""
        found = stored.application.retention
        return None if found.settled(stored.now) else found.previous

    def _is_younger(self, moment: datetime | None, age: timedelta) -> bool:
        """Whether a moment is not that long ago. One that is still to come tells that a clock was set back: it is not."""
        return moment is not None and timedelta(0) <= self._clock.now() - moment < age
