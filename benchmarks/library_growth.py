"""What a message costs when the library's container holds many pages of other entities.

The pages are the library's own documents, put there by batches of a hundred, each into the partition of an entity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

from azure.cosmos.aio import CosmosClient

from benchmarks.accounting import RoundTrips, Till
from benchmarks.application import running
from benchmarks.contenders import Contender, own
from benchmarks.cost import Scene, Sizes, following
from benchmarks.servers import ours
from benchmarks.subjects import RECENT
from demo.stack import create_containers
from exactlyonce.records.ledger import Mark, Page, written
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, to_library
from exactlyonce.values.envelope import EntityRef, message_hash, message_key, milliseconds
from local_cosmos.admin_client import AdminClient

RECORDS: Final = (0, 10_000, 1_000_000)
"""Pages of other entities in the container."""

MESSAGES: Final = Sizes()
BATCH: Final = 100
_SENDERS: Final = 8
_LEAVE: Final = 20
"""Marks of a page."""


async def library_costs(names: Sequence[str], records: Sequence[int] = RECORDS) -> dict[str, dict[str, Any]]:
    """What a new message and a duplicate of an old one cost, by contender and by number of pages of other entities.

    Args:
        names: of contenders.
        records: numbers of pages, in ascending order.
    """
    chosen = [item for item in own() if item.name in names]
    costs: dict[str, dict[str, Any]] = {name: {} for name in names}
    with ours(tls=False, admin=True) as server:
        cosmos = AdminClient(server.endpoint)
        create_containers(cosmos, "bench")
        there = 0
        for size in records:
            await _fill(cosmos, there, size)
            there = size
            for number, contender in enumerate(chosen):
                costs[contender.name][str(size)] = await _cost(contender, cosmos, f"game-{number}-{size:07}")
                print(contender.name, "among", size, "records", costs[contender.name][str(size)], flush=True)
    return costs


async def _cost(contender: Contender, cosmos: AdminClient, game: str) -> dict[str, Any]:
    trips = RoundTrips()
    async with running(contender, cosmos, "bench", trips) as application:
        scene = Scene(contender, application, Till(cosmos, "bench"), trips)
        await scene.prepare(game)
        return {
            "first": await scene.one_by_one(following(contender, game, MESSAGES.single)),
            "duplicate of the oldest": await scene.one_by_one([contender.message(game, 1)] * MESSAGES.copies),
        }


async def _fill(cosmos: AdminClient, first: int, last: int) -> None:
    """Put pages of these numbers into the library's container."""
    batches = iter(range(first, last, BATCH))
    async with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        library = client.get_database_client("bench").get_container_client(LIBRARY_CONTAINER)

        async def send() -> None:
            for number in batches:
                entity = EntityRef("range", (f"other-{number}",), f"other-{number}")
                writes = [("upsert", (document,)) for document in _records(entity)]
                await library.execute_item_batch(writes, entity.key)

        await asyncio.gather(*(send() for _ in range(_SENDERS)))


def _records(entity: EntityRef) -> Iterator[dict[str, Any]]:
    """The pages of one entity, which follow one another."""
    for number in range(BATCH):
        version, until = 33 + number * _LEAVE, milliseconds(RECENT) + 100 * _LEAVE * number
        hashes = (message_hash(message_key("bench", f"{entity.id}-{version + place}")) for place in range(_LEAVE))
        marks = written(
            Mark(until + 100 * place, hash, "f", True, "abcd", "-").text for place, hash in enumerate(hashes)
        )
        yield to_library(entity, Page(entity.key, number + 1, version, until, until + 100 * _LEAVE, marks, to=("out",)))
