"""Many writers at once: exactly one wins each round, and nobody sees half a batch.

`LOCAL_COSMOS_ROUNDS=3000` plays more rounds than the suite has time for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosBatchOperationError,
)

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.raw_connection import RawConnection, Signer
from local_cosmos_tests.raw import BATCH, QUERY

ROUNDS = int(os.environ.get("LOCAL_COSMOS_ROUNDS", "0"))
WRITERS = [pytest.param(16, 200, id="16 writers"), pytest.param(64, 30, id="64 writers")]

Step = Callable[[int, int, str], bytes]
"""From round, writer and the ETag of the guard to a request."""


class Arena:
    """A container with one guard document, and the requests of the players."""

    def __init__(self, emulator: RunningEmulator, container: ContainerProxy) -> None:
        self.endpoint = emulator.endpoint
        self.documents = [*container.container_link.split("/"), "docs"]
        self.signer = Signer(emulator.key)

    def read(self, item: str) -> bytes:
        return self.signer.request("GET", [*self.documents, item], key="p")

    def replace(self, _: int, writer: int, etag: str) -> bytes:
        document = {"id": "guard", "pk": "p", "writer": writer}
        return self.signer.request("PUT", [*self.documents, "guard"], document, key="p", headers={"If-Match": etag})

    def create(self, turn: int, writer: int, _: str) -> bytes:
        return self.signer.request("POST", self.documents, {"id": f"new-{turn}", "pk": "p", "writer": writer}, key="p")

    def batch(self, turn: int, writer: int, etag: str) -> bytes:
        guard = {"id": "guard", "pk": "p", "turn": turn, "writer": writer}
        twin = guard | {"id": "twin"}
        own = guard | {"id": f"message-{turn}-{writer}"}
        operations = [
            {"operationType": "Create", "resourceBody": own},
            {"operationType": "Upsert", "resourceBody": twin},
            {"operationType": "Replace", "id": "guard", "resourceBody": guard, "ifMatch": etag},
        ]
        return self.signer.request("POST", self.documents, operations, key="p", headers=BATCH)

    def query(self, text: str) -> bytes:
        headers = QUERY | {"x-ms-max-item-count": "-1"}
        return self.signer.request("POST", self.documents, {"query": text}, key="p", headers=headers)


@asynccontextmanager
async def connections(endpoint: str, number: int) -> AsyncIterator[Sequence[RawConnection]]:
    opened = [await RawConnection.open(endpoint) for _ in range(number)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


async def play(arena: Arena, opened: Sequence[RawConnection], step: Step, turn: int) -> list[int]:
    """One round: everybody holds the same ETag and writes at once. Returns the statuses."""
    etag = (await opened[0].send(arena.read("guard"))).headers["etag"]
    requests = [step(turn, writer, etag) for writer in range(len(opened))]
    answers = await asyncio.gather(*map(RawConnection.send, opened, requests))
    return [answer.status for answer in answers]


@pytest.fixture
async def arena(emulator: RunningEmulator, container: ContainerProxy) -> Arena:
    await container.create_item({"id": "guard", "pk": "p", "turn": -1, "writer": -1})
    await container.create_item({"id": "twin", "pk": "p", "turn": -1, "writer": -1})
    return Arena(emulator, container)


@pytest.mark.parametrize(("writers", "rounds"), WRITERS)
@pytest.mark.parametrize(
    ("step", "statuses"),
    [(Arena.replace, (200, 412)), (Arena.create, (201, 409)), (Arena.batch, (200, 207))],
    ids=["conditional replaces", "creates", "conditional batches"],
)
async def test_of_many_writers_exactly_one_wins_each_round(
    arena: Arena, step: Any, statuses: tuple[int, int], writers: int, rounds: int
) -> None:
    won, lost = statuses
    async with connections(arena.endpoint, writers) as opened:
        for turn in range(ROUNDS or rounds):
            answered = await play(arena, opened, step.__get__(arena), turn)
            assert sorted(answered) == sorted([won] + [lost] * (writers - 1)), f"round {turn}"


async def test_a_reader_never_sees_half_a_batch(arena: Arena) -> None:
    playing = True
    seen: set[int] = set()

    async def watch(connection: RawConnection) -> None:
        while playing:
            text = "SELECT c.id, c.turn, c.writer FROM c WHERE c.id IN ('guard', 'twin')"
            guard, twin = (await connection.send(arena.query(text))).content["Documents"]
            assert {**guard, "id": ""} == {**twin, "id": ""}
            message = await connection.send(arena.read(f"message-{guard['turn']}-{guard['writer']}"))
            assert message.status == (404 if guard["turn"] < 0 else 200)
            seen.add(guard["turn"])

    async with connections(arena.endpoint, 20) as opened:
        watchers = [asyncio.create_task(watch(connection)) for connection in opened[16:]]
        for turn in range(ROUNDS or 60):
            await play(arena, opened[:16], arena.batch, turn)
        playing = False
        await asyncio.gather(*watchers)
        everything = (await opened[0].send(arena.query("SELECT * FROM c"))).content["Documents"]
    assert len(seen) > 1
    assert len(everything) == 2 + (ROUNDS or 60), "a batch that lost has left something"


async def test_through_the_sdk_exactly_one_of_sixteen_wins_each_of_a_hundred_rounds(container: ContainerProxy) -> None:
    guard = await container.create_item({"id": "guard", "pk": "p"})
    numbers = count()
    reasons: set[tuple[int | None, int]] = set()

    async def batch(turn: int, etag: str) -> bool:
        document = {"id": "guard", "pk": "p", "turn": turn, "n": next(numbers)}
        message = {"id": f"message-{turn}-{document['n']}", "pk": "p"}
        operations: list[Any] = [
            ("create", (message,)),
            ("replace", ("guard", document), {"if_match_etag": etag}),
        ]
        try:
            await container.execute_item_batch(operations, "p")
        except CosmosBatchOperationError as lost:
            reasons.add((lost.status_code, lost.error_index))
            return False
        return True

    for turn in range(100):
        won = await asyncio.gather(*(batch(turn, guard["_etag"]) for _ in range(16)))
        assert won.count(True) == 1, f"round {turn}"
        guard = await container.read_item("guard", "p")
        assert guard["turn"] == turn
    written = [item["id"] async for item in container.query_items("SELECT c.id FROM c", partition_key="p")]
    assert len(written) == 101
    assert reasons == {(412, 1)}
