"""Where keys lie on the line of hashes, and how the line is cut."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError
from azure.cosmos.partition_key import NonePartitionKeyValue

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.key_hashes import VERSION_1, VERSION_2, KeyHash
from local_cosmos.semantics.partition_keys import PartitionKeyDefinition
from local_cosmos_tests.raw import RawClient

PUBLISHED = {
    "": "05C1CF33970FF80800",
    "partitionKey": "05C1E1B3D9CD2608716273756A756A706F4C667A00",
    "a" * 1024: "05C1EB5921F70608" + "62" * 100 + "00",
    None: "05C1ED45D7475601",
    True: "05C1D7C5A903D803",
    False: "05C1DB857D857C02",
    -128: "05C1D73349F54C053FA0",
    127: "05C1DD539DDFCC05C05FE0",
    -(2.0**63): "05C1DB35F33D1C053C20",
    2.0**63: "05C1B799AB2DD005C3E0",
    -(2**31): "05C1DFBF252BCC053E20",
    2**31 - 1: "05C1E1F503DFB205C1DFFFFFFFFC",
    5e-324: "05C1E5C91F4D3005800101010101010102",
    1.7976931348623157e308: "05C1CBE367C53005FFEFFFFFFFFFFFFFFE",
}
"""Effective keys of version 1, as the clients for Java, .NET and Rust test their own hashes by."""


@pytest.mark.parametrize(("value", "effective"), PUBLISHED.items())
def test_an_effective_key_of_version_1_is_the_published_one(value: Any, effective: str) -> None:
    assert PartitionKeyDefinition((("pk",),), 1).of({"pk": value}).effective == effective


def test_an_absent_key_of_version_1_is_undefined() -> None:
    assert PartitionKeyDefinition((("pk",),), 1).of({}).effective == "05C1D529E345DC00"


@pytest.mark.parametrize("value", ["", "p", "ü" * 40, "x" * 150, "é" * 80, 0.5, 0, 1, -1.5, 1e300, True, False])
def test_an_effective_key_of_version_1_is_the_sdks(value: Any) -> None:
    effective = PartitionKey("/pk", version=1)._get_effective_partition_key_string([value])
    assert VERSION_1.effective([value]) == str(effective).upper()


@pytest.mark.parametrize("value", ["", "p", "ü" * 40, "x" * 17, 0, 1, -1.5, 1e300, True, False, None])
def test_an_effective_key_of_version_2_is_the_sdks(value: Any) -> None:
    effective = PartitionKey("/pk")._get_effective_partition_key_string([value])
    assert PartitionKeyDefinition((("pk",),)).of({"pk": value}).effective == effective


def test_an_absent_key_is_undefined_as_the_sdk_has_it() -> None:
    effective = PartitionKey("/pk")._get_effective_partition_key_string([NonePartitionKeyValue])
    assert PartitionKeyDefinition((("pk",),)).of({}).effective == effective


def test_a_hierarchical_effective_key_is_the_sdks() -> None:
    effective = PartitionKey(["/a", "/b", "/c"])._get_effective_partition_key_string(["t", 1, None])
    assert PartitionKeyDefinition((("a",), ("b",), ("c",))).of({"a": "t", "b": 1, "c": None}).effective == effective


@pytest.mark.parametrize("hashing", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_a_bound_has_its_hash_and_keys_lie_on_the_side_of_theirs(hashing: KeyHash) -> None:
    numbers = [1, 2, 1_000_003, hashing.hashes // 3, hashing.hashes // 2, hashing.hashes - 1]
    bounds = [hashing.bound(number) for number in numbers]
    assert bounds == sorted(bounds)
    if hashing is VERSION_1:  # A double does not hold every hash of version 2, and none is asked for.
        assert [hashing.number(bound) for bound in bounds] == numbers
    for n in range(500):
        effective = hashing.effective([f"key {n}"])
        assert [effective >= bound for bound in bounds] == [hashing.number(effective) >= number for number in numbers]


def test_two_partitions_of_version_1_meet_where_the_services_do() -> None:
    assert VERSION_1.bound(VERSION_1.hashes // 2) == "05C1DFFFFFFFFC"


async def test_a_container_of_version_1_works_over_several_partitions_that_split(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    container = await database.create_container("c", PartitionKey("/pk", version=1), offer_throughput=30_000)
    assert (await container.read())["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 1}
    for n in range(40):
        await container.create_item({"id": "same", "pk": f"p{n}", "n": n})
    emulator.split(database.id, "c", "1")
    ranges = [feed_range async for feed_range in container.read_feed_ranges()]
    assert len(ranges) == 4
    found: list[int] = []
    for feed_range in ranges:
        of_range = [item["n"] async for item in container.query_items("SELECT c.n FROM c", feed_range=feed_range)]
        assert of_range, "every partition has some of the items"
        found += of_range
    assert sorted(found) == list(range(40))
    in_order = [item["n"] async for item in container.query_items("SELECT c.n FROM c ORDER BY c.n")]
    assert in_order == list(range(40))
    for n in range(40):
        assert (await container.read_item("same", f"p{n}"))["n"] == n
        changed = [
            item["n"] async for item in container.query_items_change_feed(partition_key=f"p{n}", start_time="Beginning")
        ]
        assert changed == [n]
        of_key = await container.feed_range_from_partition_key(f"p{n}")
        assert [
            item["n"] async for item in container.query_items_change_feed(feed_range=of_key, start_time="Beginning")
        ] == [n]


async def test_keys_of_version_1_that_begin_alike_are_one_logical_partition(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk", version=1))
    await container.create_item({"id": "a", "pk": "x" * 100 + "1"})
    with pytest.raises(CosmosHttpResponseError) as refused:
        await container.create_item({"id": "a", "pk": "x" * 100 + "2"})
    assert refused.value.status_code == 409


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"paths": ["/pk"], "version": 3}, "is 1 or 2, not 3"),
        ({"paths": ["/pk"], "version": ["2"]}, "is 1 or 2"),
        ({"paths": ["/a", "/b"], "kind": "MultiHash"}, "hierarchical partition key has version 2"),
    ],
)
def test_a_version_that_there_is_not_is_refused(
    database: DatabaseProxy, raw: RawClient, key: dict[str, Any], reason: str
) -> None:
    reply = raw.send("POST", f"dbs/{database.id}/colls", {"id": "c", "partitionKey": key})
    assert reply.status == 400
    assert reason in reply.body["message"]
