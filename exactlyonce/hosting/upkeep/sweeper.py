"""The sweeper: publishes outputs that entities have owed for long, and tends read models with gaps."""

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
from exactlyonce.hosting.upkeep.maintenance import Maintenance
from exactlyonce.raised import Show, shown
from exactlyonce.stores.listing import AsyncListing
from exactlyonce.values.identity import EntityRef

AT_ONCE: Final = 8
"""Entities that one run sweeps concurrently."""
MOST_LISTED: Final = 10_000
"""Most entities of one type that one run lists."""
LONGEST: Final = timedelta(minutes=1)
"""Time after which a run starts no other entity: a host ends functions that run for minutes."""

_log = logging.getLogger(__name__)
Owner = tuple[Entity[Any], EntityRef]


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a run of the sweeper.

    Attributes:
        swept: number of entities that owe nothing more.
        failed: entities that still owe outputs, each with the reason; or an entity type that could not be listed.
        left: number of entities that were found and not swept; the next run may.
    """

    swept: int
    failed: tuple[tuple[str, str], ...] = ()
    left: int = 0


@dataclass(frozen=True)
class Sweeper:
    """Sweeps entities. Several sweepers may run at once: a second publish makes copies, and a mark has its condition.

    Attributes:
        maintenance: runs the protocols' sweeps.
        listing: lists unfinished entities.
        runtime: time, and the chance that picks entities where there are more than one run takes.
        show: makes of an exception what may be logged of it.
    """

    maintenance: Maintenance
    listing: AsyncListing
    runtime: Runtime
    show: Show = shown

    async def sweep(self, entities: Iterable[Entity[Any]], older_than: timedelta, limit: int) -> Swept:
        """Sweep entities that have been unfinished for longer than `older_than`.

        Args:
            entities: the types.
            older_than: how long an entity must have owed outputs.
            limit: most entities to sweep.
        """
        began = self.runtime.clock.now()
        swept: list[str] = []
        failed: list[tuple[str, str]] = []
        found: list[Owner] = []
        for entity in entities:
            unfinished, error = await self._unfinished(entity, began - older_than, began)
            found += unfinished
            if error is not None:  # A type that cannot be listed does not stop the others.
                self._log_failure(entity.name, error)
                failed.append((entity.name, _reason(error)))
        chosen = self._chosen(found, limit)
        waiting = deque(chosen)

        async def work() -> None:
            while waiting and self._elapsed(began) < LONGEST:
                entity, ref = waiting.popleft()
                try:
                    await self._sweep(entity, ref)
                    swept.append(ref.key)
                except Exception as error:  # An entity that fails does not stop the others.
                    self._log_failure(ref, error)
                    failed.append((ref.key, _reason(error)))

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        left = len(found) - len(chosen) + len(waiting)
        if found or failed:
            _log.info("swept %d entities; %d failed, %d are left", len(swept), len(failed), left)
        return Swept(len(swept), tuple(failed), left)

    async def _unfinished(
        self, entity: Entity[Any], before: datetime, began: datetime
    ) -> tuple[list[Owner], ExactlyOnceError | None]:
        """Entities of a type that have been unfinished since before a time, and the error that ended the listing, if any."""
        found: dict[str, EntityRef] = {}
        failure: ExactlyOnceError | None = None
        try:
            for kind in entity.strategy.unfinished:
                if kind == "outbox":
                    continue
                pages = self.listing.owing if kind == "companions" else self.listing.holding
                found |= await self._first(pages(entity.name, before), began)
        except ExactlyOnceError as error:
            failure = error
        return [(entity, ref) for ref in found.values()], failure

    async def _first(self, pages: AsyncIterator[tuple[EntityRef, ...]], began: datetime) -> dict[str, EntityRef]:
        """The first entities, up to a run's limits, by key: for Python the partition values 1 and True are equal."""
        found: dict[str, EntityRef] = {}
        async for page in pages:
            found.update((ref.key, ref) for ref in page)
            # The other half of the time is for sweeping them.
            if len(found) >= MOST_LISTED or self._elapsed(began) >= LONGEST / 2:
                break
        return found

    def _log_failure(self, subject: object, error: Exception) -> None:
        _log.warning("%s could not be swept: %s", subject, _reason(error), exc_info=self.show(error))

    def _elapsed(self, began: datetime) -> timedelta:
        return self.runtime.clock.now() - began

    def _chosen(self, found: list[Owner], limit: int) -> list[Owner]:
        """At most `limit` entities, in the order found. Chance picks, so that entities that always fail do not block others."""
        if len(found) <= limit:
            return found
        return [found[index] for index in sorted(self.runtime.random.sample(range(len(found)), limit))]

    async def _sweep(self, entity: Entity[Any], ref: EntityRef) -> None:
        work = self.maintenance.work(entity, ref)
        finished = await self.maintenance.run(ref, lambda memory: entity.strategy.sweep(work, memory))
        for _, error in finished.stopped:
            raise error


def _reason(error: Exception) -> str:
    """The class of an error, and the text of the library's own errors: those of others may quote a body."""
    return f"{type(error).__name__}: {error}" if isinstance(error, ExactlyOnceError) else type(error).__name__
