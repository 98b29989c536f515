"""The change feed of latest versions, through the SDK."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from local_cosmos_tests.raw import RawClient


async def read(container: ContainerProxy, **options: Any) -> tuple[list[str], str]:
    """The ids of all changes, and the continuation after them."""
    feed = container.query_items_change_feed(**options)
    pages = feed.by_page()
    changes = [change["id"] async for page in pages for change in [change async for change in page]]
    return changes, container.client_connection.last_response_headers["etag"]


async def write(container: ContainerProxy, *ids: str) -> None:
    for item_id in ids:
        await container.upsert_item({"id": item_id, "pk": "p"})


async def test_every_item_appears_once_in_the_order_of_the_last_writes(container: ContainerProxy) -> None:
    await write(container, "a", "b", "c", "a")
    await container.delete_item("b", "p")
    assert (await read(container, start_time="Beginning"))[0] == ["c", "a"]


async def test_a_continuation_shows_only_what_came_after(container: ContainerProxy) -> None:
    await write(container, "a", "b")
    changes, continuation = await read(container, start_time="Beginning")
    assert changes == ["a", "b"]
    assert (await read(container, continuation=continuation))[0] == []
    await write(container, "c", "a")
    assert (await read(container, continuation=continuation))[0] == ["c", "a"]


async def test_from_now_on_shows_nothing_of_the_past(container: ContainerProxy) -> None:
    await write(container, "a")
    changes, continuation = await read(container, start_time="Now")
    assert changes == []
    await write(container, "b")
    assert (await read(container, continuation=continuation))[0] == ["b"]


async def test_from_a_time_on_shows_what_was_written_since(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    await write(container, "a")
    later = datetime.fromtimestamp(emulator.advance_clock(10), tz=timezone.utc)
    await write(container, "b")
    assert (await read(container, start_time=later))[0] == ["b"]


async def test_a_page_never_cuts_a_batch_in_two(container: ContainerProxy, raw: RawClient) -> None:
    await write(container, "a")
    await container.execute_item_batch([("create", ({"id": n, "pk": "p"},)) for n in "bcd"], "p")
    await write(container, "e")
    headers = {"A-IM": "Incremental Feed", "x-ms-max-item-count": "2", "x-ms-documentdb-partitionkeyrangeid": "0"}
    path = f"{container.container_link}/docs"
    first = raw.send("GET", path, headers=headers)
    assert [(change["id"], change["_lsn"]) for change in first.body["Documents"]] == [
        ("a", 1),
        ("b", 2),
        ("c", 2),
        ("d", 2),
    ]
    second = raw.send("GET", path, headers={**headers, "If-None-Match": first.headers["etag"]})
    assert [change["id"] for change in second.body["Documents"]] == ["e"]
    third = raw.send("GET", path, headers={**headers, "If-None-Match": second.headers["etag"]})
    assert (third.status, third.headers["etag"], third.headers["x-ms-session-token"]) == (304, '"3"', "0:-1#3")


async def test_the_feed_of_all_partitions_shows_all_items_even_over_a_split(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=20_000)
    for n in range(10):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    changes, continuation = await read(container, start_time="Beginning")
    assert sorted(changes) == [str(n) for n in range(10)]
    emulator.split(database.id, "c", "1")
    for n in range(10, 20):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    assert sorted((await read(container, continuation=continuation))[0]) == [str(n) for n in range(10, 20)]


async def test_a_feed_that_meets_a_split_ends_before_the_parts_which_is_the_sdks_doing(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    """azure-cosmos 4.17.1 reads the parts after all other ranges, and ends where a round without changes began."""
    container = await database.create_container("changing", PartitionKey("/pk"), offer_throughput=30_000)
    where: dict[str, str] = {}
    for number in range(30):
        written = await container.upsert_item({"id": "a", "pk": f"p{number}"})
        range_id = written.get_response_headers()["x-ms-documentdb-partitionkeyrangeid"]
        if where.setdefault(range_id, f"p{number}") != f"p{number}" or range_id == "1":
            await container.delete_item("a", f"p{number}")

    async def changed() -> list[str]:
        return [item["pk"] async for item in container.query_items_change_feed(start_time="Beginning")]

    both = [where["0"], where["2"]]
    assert await changed() == both
    emulator.split(database.id, "changing", "2")
    assert await changed() == both[:1]
    assert len([item async for item in container.read_feed_ranges(force_refresh=True)]) == 4
    assert await changed() == both


async def test_the_feed_of_one_key_shows_only_that_key(container: ContainerProxy) -> None:
    await write(container, "a")
    await container.create_item({"id": "other", "pk": "q"})
    assert (await read(container, start_time="Beginning", partition_key="q"))[0] == ["other"]


@pytest.mark.simplified(service="purges expired items in the background, from spare RU")
async def test_expired_items_do_not_appear(emulator: RunningEmulator, container: ContainerProxy) -> None:
    await container.create_item({"id": "a", "pk": "p", "ttl": 5})
    await write(container, "b")
    emulator.advance_clock(5)
    assert (await read(container, start_time="Beginning"))[0] == ["b"]


async def test_a_lagging_feed_loses_nothing(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.set_lag(container.container_link.split("/")[1], lag=Lag(writes=2))
    headers = {"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"}
    found = []
    for item_id in "abcdef":
        await write(container, item_id)
        page = raw.send("GET", f"{container.container_link}/docs", headers=headers)
        headers["If-None-Match"] = page.headers["etag"]
        found += [change["id"] for change in page.body["Documents"]] if page.body else []
    assert found == ["a", "b", "c", "d"]


async def test_halves_of_a_physical_partition_hold_each_change_once(container: ContainerProxy, raw: RawClient) -> None:
    for n in range(20):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    middle = "20" + "0" * 30
    found = []
    for low, high in (("", middle), (middle, "FF")):
        headers = {
            "A-IM": "Incremental Feed",
            "x-ms-documentdb-partitionkeyrangeid": "0",
            "x-ms-read-key-type": "EffectivePartitionKeyRange",
            "x-ms-start-epk": low,
            "x-ms-end-epk": high,
            "x-ms-documentdb-populatequotainfo": "True",
        }
        page = raw.send("GET", f"{container.container_link}/docs", headers=headers)
        changes = [change["id"] for change in page.body["Documents"]]
        assert 0 < len(changes) < 20
        assert f"documentsCount={len(changes)};" in page.headers["x-ms-resource-usage"]
        found += changes
    assert sorted(found, key=int) == [str(n) for n in range(20)]
