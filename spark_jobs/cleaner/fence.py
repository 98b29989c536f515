"""One task's deletes of staged documents: `clean_staged` for each entity, behind its fence. Without Spark.

Staged documents are never deleted in bulk. Only a fence shows that no attempt can still commit them, and a fence needs the
reply to a conditional save: so the task uses the library's own store and driver.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from random import SystemRandom
from typing import Any, Final, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Step
from exactlyonce.errors import MessageError, StoredDataError, TryAgainLater, UniqueKeyTaken
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.stores.cosmos.partition import staged_id
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from spark_jobs.cleaner.store import Place
from spark_jobs.cleaner.verdicts import Reason
from spark_jobs.source.port import Meter, Outcome

AT_ONCE: Final = 16
"""Entities that one task cleans at a time."""

Given = TypeVar("Given")
Result = TypeVar("Result")

Fate = tuple[str, str, str]
"""Key of the entity, id of a staged document, and an `Outcome` or a `Reason` to keep the document."""


@dataclass(frozen=True)
class Fence:
    """Deletes staged documents; Spark ships it to each task.

    Attributes:
        place: the containers.
        meter: counts RU.
        backoff: between attempts on an entity.
    """

    place: Place
    meter: Meter = field(repr=False)
    backoff: Backoff = field(default_factory=Backoff)

    def __call__(self, rows: Iterable[Any]) -> Iterator[Fate]:
        """Delete staged documents that may go; yields the fate of each.

        Args:
            rows: with `entity` and `tx`; those of one entity next to each other.

        Raises:
            ConfigurationError: the account refuses, a container is absent, or an entity belongs to another protocol.
        """
        entities = (
            (entity, tuple(row["tx"] for row in of_one))
            for entity, of_one in groupby(rows, key=lambda row: row["entity"])
        )
        for fates in through(self.place, self.meter, entities, self._of_one):
            yield from fates

    async def _of_one(self, driver: AsyncDriver, given: tuple[str, tuple[str, ...]]) -> list[Fate]:
        key, transactions = given
        entity = entity_of(key)
        fates = await cleaned(driver, entity, transactions, self.place.absent(entity), self.backoff)
        return [(key, staged_id(tx), fate) for tx, fate in fates.items()]


def through(
    place: Place, meter: Meter, given: Iterable[Given], clean: Callable[[AsyncDriver, Given], Awaitable[Result]]
) -> Iterator[Result]:
    """Clean entities, so many at a time, through the library's own store and driver.

    Args:
        place: the containers.
        meter: counts RU.
        given: what to clean of each entity.
        clean: cleans one entity.
    """
    waiting = iter(given)
    connection = place.connect(meter)
    with asyncio.Runner() as runner:
        driver = AsyncDriver(place.store(connection), Publisher({}), Runtime())

        async def together(some: Iterable[Given]) -> list[Result]:
            return await asyncio.gather(*(clean(driver, item) for item in some))

        try:
            while some := list(islice(waiting, AT_ONCE)):
                runner.run(connection.turn())
                yield from runner.run(together(some))
        finally:
            runner.run(connection.close())


async def cleaned(
    driver: AsyncDriver,
    entity: EntityRef,
    transactions: tuple[str, ...],
    absent: Mapping[str, object],
    backoff: Backoff,
) -> dict[str, str]:
    """Clean the staged documents of one entity.

    Returns:
        By transaction: `Outcome.UNKNOWN` for a delete, which the store does not answer; else the reason to keep it.
    """
    tombstone = Json.of(dict(absent))
    result = await decided(
        driver, entity, lambda memory: clean_staged(entity, transactions, tombstone, memory), backoff
    )
    if isinstance(result, Reason):
        return dict.fromkeys(transactions, result.value)
    fates = dict.fromkeys(transactions, Reason.NAMED.value)
    return fates | dict.fromkeys(result.transactions, Outcome.UNKNOWN.value)


async def decided(
    driver: AsyncDriver, entity: EntityRef, step: Callable[[Memory], Step[Result | Again]], backoff: Backoff
) -> Result | Reason:
    """The result of a step of clean-up that fences an entity; a reason to keep all documents where it cannot decide."""
    try:
        return await driver.run(Retrying(backoff, SystemRandom()).process(entity, step, Memory()))
    except (StoredDataError, MessageError):  # An untrustworthy document, or a key that names no entity.
        return Reason.UNREADABLE
    except (TryAgainLater, UniqueKeyTaken):  # A tombstone may share a unique key with another one.
        return Reason.UNDECIDED


def entity_of(key: str) -> EntityRef:
    """The entity of a key."""
    type, *partition, id = json.loads(key)
    return EntityRef(type, tuple(partition), id)
