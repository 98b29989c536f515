"""What one task does to delete staged documents: `clean_staged`, with its fence, entity by entity. No Spark in here.

Never in bulk. That a staged document belongs to no attempt that could still commit is known only behind a fence, and the
fence needs the reply to a conditional save: so it goes through the library's own store and driver.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from random import SystemRandom
from typing import Any, Final

from exactlyonce.attempt import Memory
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Surroundings
from exactlyonce.errors import MessageError, StoredDataError, TryAgainLater, UniqueKeyTaken
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.stores.cosmos.layout import staged_id
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from spark_jobs.cleaner.store import Place
from spark_jobs.cleaner.verdicts import Reason
from spark_jobs.source.port import Outcome

AT_ONCE: Final = 16
"""Entities that one task looks after at a time."""

Told = tuple[str, str, str]
"""Key of the entity, id of a staged document, and what became of it: an `Outcome`, or a `Reason` to keep it."""


@dataclass(frozen=True)
class Fencing:
    """Deletes staged documents: what Spark gives to each task.

    Attributes:
        place: where they are.
        backoff: between attempts on an entity.
    """

    place: Place
    backoff: Backoff = field(default_factory=Backoff)

    def __call__(self, rows: Iterable[Any]) -> Iterator[Told]:
        """Look after staged documents, and say what became of each.

        Args:
            rows: with `entity` and `tx`; those of one entity next to each other.

        Raises:
            ConfigurationError: the account refuses, a container is absent, or an entity belongs to another protocol.
        """
        entities = (
            (entity, tuple(row["tx"] for row in of_one))
            for entity, of_one in groupby(rows, key=lambda row: row["entity"])
        )
        connection = self.place.connect()
        with asyncio.Runner() as runner:
            driver = AsyncDriver(self.place.store(connection), Publisher({}), Surroundings())
            try:
                while some := list(islice(entities, AT_ONCE)):
                    runner.run(connection.turn())
                    yield from runner.run(self._together(driver, some))
            finally:
                runner.run(connection.close())

    async def _together(self, driver: AsyncDriver, entities: Sequence[tuple[str, tuple[str, ...]]]) -> list[Told]:
        async def one(key: str, transactions: tuple[str, ...]) -> list[Told]:
            entity = entity_of(key)
            told = await cleaned(driver, entity, transactions, self.place.absent(entity), self.backoff)
            return [(key, staged_id(tx), outcome) for tx, outcome in told.items()]

        found = await asyncio.gather(*(one(*given) for given in entities))
        return [told for of_one in found for told in of_one]


async def cleaned(
    driver: AsyncDriver,
    entity: EntityRef,
    transactions: tuple[str, ...],
    absent: Mapping[str, object],
    backoff: Backoff,
) -> dict[str, str]:
    """Look after the staged documents of one entity.

    Returns:
        By transaction: `Outcome.UNKNOWN` if it was to be deleted, which is not answered; else the reason to keep it.
    """
    retrying = Retrying(backoff, SystemRandom())
    tombstone = Json.of(dict(absent))
    try:
        result = await driver.run(
            retrying.process(entity, lambda memory: clean_staged(entity, transactions, tombstone, memory), Memory())
        )
    except (StoredDataError, MessageError):  # What cannot be trusted, and an entity that cannot even be named.
        return dict.fromkeys(transactions, Reason.UNREADABLE.value)
    except (TryAgainLater, UniqueKeyTaken):  # A tombstone may have no place beside another one.
        return dict.fromkeys(transactions, Reason.UNDECIDED.value)
    told = dict.fromkeys(transactions, Reason.NAMED.value)
    return told | dict.fromkeys(result.transactions, Outcome.UNKNOWN.value)


def entity_of(key: str) -> EntityRef:
    """The entity that a key names."""
    type, *partition, id = json.loads(key)
    return EntityRef(type, tuple(partition), id)
