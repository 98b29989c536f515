"""The sweeper: finds what has been owed for long, and read models that are stuck, and does what is left to do."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.maintenance import Maintenance
from exactlyonce.stores.listing import AsyncListing
from exactlyonce.values.identity import EntityRef

AT_ONCE: Final = 8
"""Entities that one run looks after at the same time."""
MOST_LISTED: Final = 10_000
"""Entities of one type that one run takes notice of."""
LONGEST: Final = timedelta(minutes=1)
"""After this time a run begins with no other entity: a host ends functions that run for minutes, whatever they are doing."""

_log = logging.getLogger(__name__)
Owner = tuple[Entity[Any], EntityRef]


@dataclass(frozen=True, slots=True)
class Swept:
    """What a run of the sweeper came to.

    Attributes:
        swept: how many entities were looked after, and owe nothing more.
        failed: entities that still do, each with the reason; or an entity type that could not be searched.
        left: how many were found that this run did not come to; the next one may.
    """

    swept: int
    failed: tuple[tuple[str, str], ...] = ()
    left: int = 0


@dataclass(frozen=True)
class Sweeper:
    """Sweeps. Several may run at the same time, on the same entities: publishing twice makes copies, marking has its condition.

    Attributes:
        maintenance: runs the protocols' sweeps.
        listing: finds what owes.
        runtime: time, and the chance that picks where more is owed than one run takes.
    """

    maintenance: Maintenance
    listing: AsyncListing
    runtime: Runtime

    async def sweep(self, entities: Iterable[Entity[Any]], older_than: timedelta, limit: int) -> Swept:
        """Look after the entities of these types that have owed for longer than `older_than`; `limit` of them at most."""
        began = self.runtime.clock.now()
        swept: list[str] = []
        failed: list[tuple[str, str]] = []
        found: list[Owner] = []
        for entity in entities:
            found += await self._found(entity, began, older_than, failed)
        chosen = self._chosen(found, limit)
        waiting = deque(chosen)

        async def work() -> None:
            while waiting and self._lasts(began) < LONGEST:
                entity, ref = waiting.popleft()
                try:
                    await self._sweep(entity, ref)
                    swept.append(ref.key)
                except Exception as error:  # Whatever it is, the others have their turn.
                    failed.append((ref.key, _told(ref, error)))

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        left = len(found) - len(chosen) + len(waiting)
        if found or failed:
            _log.info("swept %d entities; %d failed, %d are left", len(swept), len(failed), left)
        return Swept(len(swept), tuple(failed), left)

    async def _found(
        self, entity: Entity[Any], began: datetime, older_than: timedelta, failed: list[tuple[str, str]]
    ) -> list[Owner]:
        """Whom to look after. A type that cannot be searched does not stop the others."""
        found: dict[str, EntityRef] = {}
        before = began - older_than
        try:
            for listed in entity.strategy.unfinished:
                pages = self.listing.owing if listed == "owing" else self.listing.holding
                found |= await self._first(pages(entity.name, before), began)
        except ExactlyOnceError as error:
            failed.append((entity.name, _told(entity.name, error)))
        return [(entity, ref) for ref in found.values()]

    async def _first(self, pages: AsyncIterator[tuple[EntityRef, ...]], began: datetime) -> dict[str, EntityRef]:
        """As many as a run takes notice of, by their keys: for Python the partition values 1 and True are equal."""
        found: dict[str, EntityRef] = {}
        async for page in pages:
            found.update((ref.key, ref) for ref in page)
            # Half of the time is for looking after them.
            if len(found) >= MOST_LISTED or self._lasts(began) >= LONGEST / 2:
                break
        return found

    def _lasts(self, began: datetime) -> timedelta:
        return self.runtime.clock.now() - began

    def _chosen(self, found: list[Owner], limit: int) -> list[Owner]:
        """Those whose turn it is, in the order found. Chance picks, lest what always fails keeps others from their turn."""
        if len(found) <= limit:
            return found
        return [found[index] for index in sorted(self.runtime.random.sample(range(len(found)), limit))]

    async def _sweep(self, entity: Entity[Any], ref: EntityRef) -> None:
        work = self.maintenance.work(entity, ref)
        finished = await self.maintenance.run(ref, lambda memory: entity.strategy.sweep(work, memory))
        for _, error in finished.stopped:
            raise error


def _told(what: object, error: Exception) -> str:
    """Log a failure, and return the reason. Only the library's own errors are told in full: others may quote a body."""
    reason = f"{type(error).__name__}: {error}" if isinstance(error, ExactlyOnceError) else type(error).__name__
    _log.warning("%s could not be swept: %s", what, reason)
    return reason
