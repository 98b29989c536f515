"""Session tokens and replicas that lag."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosResourceExistsError, CosmosResourceNotFoundError

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from local_cosmos_tests.raw import QUERY, RawClient

READ_SESSION_NOT_AVAILABLE = 1002


def database_of(container: ContainerProxy) -> str:
    return str(container.container_link.split("/")[1])


def token_of(answer: Any) -> str:
    return str(answer.get_response_headers()["x-ms-session-token"])


def read(raw: RawClient, container: ContainerProxy, token: str | None = None, **headers: str) -> tuple[int, int, Any]:
    """Status, substatus and `n` of item `a`, read without any of the SDK's help."""
    sent = headers | ({"x-ms-session-token": token} if token else {})
    reply = raw.send("GET", f"{container.container_link}/docs/a", key="p", headers=sent)
    return reply.status, reply.substatus, reply.body.get("n") if reply.status == 200 else None


async def test_every_reply_has_a_token_errors_and_batches_included(container: ContainerProxy) -> None:
    document = {"id": "a", "pk": "p"}
    assert token_of(await container.create_item(document)) == "0:-1#1"
    assert token_of(await container.read_item("a", "p")) == "0:-1#1"
    with pytest.raises(CosmosResourceExistsError) as conflict:
        await container.create_item(document)
    assert conflict.value.headers["x-ms-session-token"] == "0:-1#1"
    with pytest.raises(CosmosResourceNotFoundError) as absent:
        await container.read_item("b", "p")
    assert absent.value.headers["x-ms-session-token"] == "0:-1#1"
    with pytest.raises(CosmosBatchOperationError) as failed:
        await container.execute_item_batch([("create", (document,))], "p")
    assert failed.value.headers["x-ms-session-token"] == "0:-1#1"
    assert token_of(await container.upsert_item(document)) == "0:-1#2"
    both = await container.execute_item_batch([("upsert", (document,)), ("create", ({"id": "b", "pk": "p"},))], "p")
    assert token_of(both) == "0:-1#3"


async def test_a_read_without_token_sees_what_the_lagging_replica_has(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=2))
    seen = []
    for n in range(4):
        await container.upsert_item({"id": "a", "pk": "p", "n": n})
        seen.append(read(raw, container))
    assert seen == [(404, 0, None), (404, 0, None), (200, 0, 0), (200, 0, 1)]


async def test_a_read_through_the_sdk_sees_its_own_single_write_or_1002_but_never_less(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=1))
    await container.create_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosResourceNotFoundError) as behind:
        await container.read_item("a", "p")
    assert behind.value.sub_status == READ_SESSION_NOT_AVAILABLE
    with pytest.raises(CosmosResourceNotFoundError) as dropped:  # The SDK has dropped its token by now.
        await container.read_item("a", "p")
    assert not dropped.value.sub_status


async def test_a_replica_catches_up_after_the_set_number_of_refusals(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=1, catch_up_after=2))
    token = token_of(await container.create_item({"id": "a", "pk": "p", "n": 1}))
    assert [read(raw, container, token)[:2] for _ in range(3)] == [(404, 1002), (404, 1002), (200, 0)]


async def test_a_replica_may_catch_up_while_the_service_waits(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=3, catch_up_probability=1.0))
    await container.create_item({"id": "a", "pk": "p", "n": 1})
    assert (await container.read_item("a", "p"))["n"] == 1


async def test_a_varying_lag_goes_backwards_now_and_then_and_repeats_itself_with_its_seed(
    emulator: RunningEmulator, database: DatabaseProxy, raw: RawClient
) -> None:
    async def seen(name: str) -> list[int | None]:
        container = await database.create_container(name, PartitionKey("/pk"))
        emulator.set_lag(database.id, name, Lag(writes=4, varying=True, seed=3))
        for n in range(10):
            await container.upsert_item({"id": "a", "pk": "p", "n": n})
        return [read(raw, container)[2] for _ in range(12)]

    first = await seen("one")
    assert first == await seen("two")
    assert set(first) <= set(range(5, 10))
    assert first != sorted(n for n in first if n is not None)


@pytest.mark.simplified(service="four replicas per partition, each with its own lag")
async def test_a_share_of_the_reads_meets_a_lagging_replica(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=1, share=0.5))
    await container.create_item({"id": "a", "pk": "p"})
    statuses = [read(raw, container)[0] for _ in range(30)]
    assert 5 < statuses.count(404) < 25


async def test_a_lagging_replica_still_shows_what_was_deleted(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    await container.create_item({"id": "a", "pk": "p", "n": 1})
    emulator.set_lag(database_of(container), lag=Lag(writes=1))
    await container.delete_item("a", "p")
    assert read(raw, container) == (200, 0, 1)
    await container.create_item({"id": "b", "pk": "p"})
    assert read(raw, container) == (404, 0, None)


async def test_a_lagging_query_shows_a_batch_wholly_or_not_at_all(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=1))

    def visible() -> int:
        docs = f"{container.container_link}/docs"
        return int(raw.send("POST", docs, {"query": "SELECT * FROM c"}, key="p", headers=QUERY).body["_count"])

    await container.execute_item_batch([("create", ({"id": n, "pk": "p"},)) for n in "ab"], "p")
    assert visible() == 0
    await container.create_item({"id": "c", "pk": "q"})
    assert visible() == 2


async def test_writes_are_judged_by_the_primary_whatever_the_lag(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=5))
    await container.create_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosResourceExistsError):
        await container.create_item({"id": "a", "pk": "p"})


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("0:-1#99", (404, READ_SESSION_NOT_AVAILABLE, None)),
        ("7:-1#1", (404, READ_SESSION_NOT_AVAILABLE, None)),
        ("7:-1#1,0:-1#1", (200, 0, 1)),
        ("nonsense", (400, 0, None)),
    ],
    ids=["from the future", "of another partition only", "of this partition too", "malformed"],
)
async def test_a_token_is_judged_before_the_read(
    container: ContainerProxy, raw: RawClient, token: str, expected: tuple[int, int, Any]
) -> None:
    await container.create_item({"id": "a", "pk": "p", "n": 1})
    assert read(raw, container, token) == expected


async def test_the_success_of_a_batch_does_not_teach_the_sdk_its_token(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    emulator.set_lag(database_of(container), lag=Lag(writes=1))
    result = await container.execute_item_batch([("create", ({"id": "a", "pk": "p"},))], "p")
    with pytest.raises(CosmosResourceNotFoundError) as absent:
        await container.read_item("a", "p")
    assert not absent.value.sub_status
    with pytest.raises(CosmosResourceNotFoundError) as behind:
        await container.read_item("a", "p", session_token=token_of(result))
    assert behind.value.sub_status == READ_SESSION_NOT_AVAILABLE


@pytest.mark.parametrize("read_first", [False, True])
async def test_tokens_of_containers_that_were_written_before_they_were_read_mix_which_is_the_sdks_doing(
    emulator: RunningEmulator, database: DatabaseProxy, read_first: bool
) -> None:
    """azure-cosmos 4.17.1 files a token by the document in the reply; without one, under what a read has taught it."""
    for name in ("busy", "quiet"):
        await database.create_container(name, PartitionKey("/pk"))
    async with CosmosClient(emulator.endpoint, emulator.key) as fresh:
        busy, quiet = (fresh.get_database_client(database.id).get_container_client(item) for item in ("busy", "quiet"))
        if read_first:
            for container in (busy, quiet):
                with pytest.raises(CosmosResourceNotFoundError):
                    await container.read_item("a", "p")
        for number in range(5):
            await busy.create_item({"id": str(number), "pk": "p"}, no_response=True)
        await quiet.create_item({"id": "a", "pk": "p"}, no_response=True)
        if read_first:
            assert (await quiet.read_item("a", "p"))["id"] == "a"
            return
        with pytest.raises(CosmosResourceNotFoundError) as behind:
            await quiet.read_item("a", "p")
        assert behind.value.sub_status == READ_SESSION_NOT_AVAILABLE


async def test_after_a_split_items_stay_old_tokens_hold_and_new_ones_name_the_successors(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    old = ""
    for n in range(20):
        old = token_of(await container.create_item({"id": "a", "pk": f"p{n}", "n": n}))
    assert emulator.split(database_of(container), "items", "0") == ["1", "2"]
    ranges = raw.send("GET", f"{container.container_link}/pkranges").body["PartitionKeyRanges"]
    assert [(found["id"], found["parents"]) for found in ranges] == [("1", ["0"]), ("2", ["0"])]
    assert ranges[0]["maxExclusive"] == ranges[1]["minInclusive"]
    tokens = set()
    for n in range(20):
        found = await container.read_item("a", f"p{n}", session_token=old)
        assert found["n"] == n
        tokens.add(token_of(await container.upsert_item(dict(found))).split(":")[0])
    assert tokens == {"1", "2"}


async def test_the_sdk_finds_the_successors_of_a_range_that_was_split(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    for n in range(20):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    (whole,) = [feed_range async for feed_range in container.read_feed_ranges()]
    emulator.split(database_of(container), "items", "0")
    query = container.query_items("SELECT VALUE c.id FROM c", feed_range=whole)
    found: list[Any] = [row async for row in query]
    assert sorted(found, key=int) == [str(n) for n in range(20)]
    assert len([feed_range async for feed_range in container.read_feed_ranges(force_refresh=True)]) == 2
