"""Account, databases, containers and physical partitions."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import CosmosClient as BlockingClient
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError
from azure.cosmos.partition_key import NonePartitionKeyValue

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.key_hashes import VERSION_2
from local_cosmos.semantics.partition_keys import PartitionKeyDefinition
from local_cosmos.semantics.ranges import PhysicalPartitions
from local_cosmos_tests.raw import RawClient


def test_the_account_advertises_the_address_by_which_it_was_asked(emulator: RunningEmulator, raw: RawClient) -> None:
    port = emulator.endpoint.rsplit(":", 1)[1].strip("/")
    named = RawClient(f"http://localhost:{port}/", emulator.key)
    for client, address in ((raw, emulator.endpoint), (named, f"http://localhost:{port}/")):
        account = client.send("GET", "").body
        assert account["writableLocations"][0]["databaseAccountEndpoint"] == address
        assert account["readableLocations"][0]["databaseAccountEndpoint"] == address
    assert account["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Session"}
    assert account["enableMultipleWriteLocations"] is False


def test_the_account_says_what_it_was_configured_to_say() -> None:
    settings = AccountSettings(consistency="Eventual", multiple_write_locations=True, host="region.local")
    with running_emulator(settings) as emulator:
        account = RawClient(emulator.endpoint, emulator.key).send("GET", "").body
    assert account["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Eventual"}
    assert account["enableMultipleWriteLocations"] is True
    advertised = emulator.endpoint.replace("127.0.0.1", "region.local")
    assert account["readableLocations"] == [{"name": "Local", "databaseAccountEndpoint": advertised}]


async def test_a_reply_names_what_was_asked_for(
    container: ContainerProxy, emulator: RunningEmulator, raw: RawClient
) -> None:
    await container.create_item({"id": "a b", "pk": "p"})
    reply = raw.send("GET", f"{container.container_link}/docs/a b", key="p")
    assert reply.headers["content-location"] == f"{emulator.endpoint}{container.container_link}/docs/a%20b"


def test_a_wrong_key_is_refused_with_401(emulator: RunningEmulator) -> None:
    wrong = RawClient(emulator.endpoint, "d3Jvbmc=")
    assert wrong.send("GET", "").status == 401
    assert wrong.send("GET", "dbs/d/colls/c/docs/a", key="p").status == 401


async def test_databases_are_created_once_listed_and_deleted(client: CosmosClient) -> None:
    await client.create_database("resources")
    with pytest.raises(CosmosResourceExistsError):
        await client.create_database("resources")
    await client.create_database_if_not_exists("resources")
    assert "resources" in [database["id"] async for database in client.list_databases()]
    await client.delete_database("resources")
    with pytest.raises(CosmosResourceNotFoundError):
        await client.get_database_client("resources").read()


async def test_containers_are_created_once_listed_replaced_and_deleted(database: DatabaseProxy) -> None:
    key = PartitionKey("/pk")
    container = await database.create_container("c", key, default_ttl=60)
    with pytest.raises(CosmosResourceExistsError):
        await database.create_container("c", key)
    await database.create_container_if_not_exists("c", key)
    properties = await container.read()
    assert properties["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert properties["defaultTtl"] == 60
    await database.replace_container(container, key, default_ttl=-1)
    assert (await container.read())["defaultTtl"] == -1
    assert [found["id"] async for found in database.list_containers()] == ["c"]
    await database.delete_container("c")
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read()


async def test_a_request_to_an_absent_container_is_404_1003(database: DatabaseProxy, raw: RawClient) -> None:
    reply = raw.send("GET", f"dbs/{database.id}/colls/absent/docs/a", key="p")
    assert (reply.status, reply.substatus) == (404, 1003)


async def test_an_item_written_to_a_recreated_container_goes_to_the_new_one(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk"))
    await container.create_item({"id": "a", "pk": "p"})
    await database.delete_container("c")
    await database.create_container("c", PartitionKey("/pk"))
    await container.create_item({"id": "a", "pk": "p"})  # 400/1024 makes the SDK read the container again.
    assert (await container.read_item("a", "p"))["id"] == "a"


async def test_resources_can_be_named_by_their_resource_ids(container: ContainerProxy, raw: RawClient) -> None:
    properties = await container.read()
    reply = raw.send("GET", f"{properties['_self']}pkranges")
    assert reply.status == 200


async def test_the_usage_of_a_container_counts_its_visible_items(container: ContainerProxy) -> None:
    for item_id in "abc":
        await container.create_item({"id": item_id, "pk": "p"})
    properties = await container.read(populate_quota_info=True)
    usage = properties.get_response_headers()["x-ms-resource-usage"]
    assert "documentsCount=3" in usage
    assert properties.get_response_headers()["x-ms-documentdb-collection-index-transformation-progress"] == "100"


async def test_the_statistics_of_a_container_count_the_items_of_each_physical_partition(
    database: DatabaseProxy,
) -> None:
    container = await database.create_container("counted", PartitionKey("/pk"), offer_throughput=30_000)
    for number in range(12):
        await container.create_item({"id": f"{number}", "pk": f"{number // 2}", "text": "x" * 1024})
    statistics = (await container.read(populate_partition_key_range_statistics=True))["statistics"]
    assert [statistic["id"] for statistic in statistics] == ["0", "1", "2"]
    assert sum(statistic["documentCount"] for statistic in statistics) == 12
    assert sum(statistic["sampledDistinctPartitionKeyCount"] for statistic in statistics) == 6
    assert all(
        statistic["sizeInKB"] > statistic["documentCount"] for statistic in statistics if statistic["documentCount"]
    )
    assert "statistics" not in await container.read()


def test_a_query_of_conflicts_names_a_partition_key_or_may_cross_partitions(emulator: RunningEmulator) -> None:
    with BlockingClient(emulator.endpoint, emulator.key) as client:
        container = client.create_database("conflicting").create_container("c", PartitionKey("/pk"))
        assert list(container.query_conflicts("SELECT * FROM c", partition_key="p")) == []
        assert list(container.query_conflicts("SELECT * FROM c", enable_cross_partition_query=True)) == []
        with pytest.raises(CosmosHttpResponseError, match="Cross partition query is required"):
            list(container.query_conflicts("SELECT * FROM c"))


async def test_an_account_with_one_write_region_has_no_conflicts(container: ContainerProxy) -> None:
    assert [conflict async for conflict in container.list_conflicts()] == []
    assert [conflict async for conflict in container.query_conflicts("SELECT * FROM c")] == []
    for act in (container.get_conflict, container.delete_conflict):
        with pytest.raises(CosmosResourceNotFoundError, match="conflict c"):
            await act("c", "p")


async def test_names_of_databases_and_containers_are_shorter_than_ids_of_items(
    client: CosmosClient, database: DatabaseProxy
) -> None:
    await database.create_container("n" * 255, PartitionKey("/pk"))
    with pytest.raises(CosmosHttpResponseError, match="less than '255' characters"):
        await database.create_container("n" * 256, PartitionKey("/pk"))
    with pytest.raises(CosmosHttpResponseError, match="less than '255' characters"):
        await client.create_database("n" * 256)


async def test_more_than_three_levels_of_a_key_are_refused(database: DatabaseProxy) -> None:
    with pytest.raises(CosmosHttpResponseError, match="Too many partition key paths"):
        await database.create_container("deep", PartitionKey(["/a", "/b", "/c", "/d"], kind="MultiHash"))


async def test_the_ranges_answer_a_literal_304_to_their_own_etag(container: ContainerProxy, raw: RawClient) -> None:
    path = f"{container.container_link}/pkranges"
    ranges = raw.send("GET", path, headers={"A-IM": "Incremental Feed"})
    (only,) = ranges.body["PartitionKeyRanges"]
    assert (only["id"], only["minInclusive"], only["maxExclusive"]) == ("0", "", "FF")
    again = raw.send("GET", path, headers={"A-IM": "Incremental Feed", "If-None-Match": ranges.headers["etag"]})
    assert (again.status, again.body) == (304, None)


@pytest.mark.simplified(service="429 above the provisioned RU/s; here only where a fault rule says so")
async def test_throughput_decides_how_many_physical_partitions_a_container_has(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
    ranges = [feed_range async for feed_range in container.read_feed_ranges()]
    assert len(ranges) == 3


def test_the_throughput_of_a_physical_partition_is_a_setting() -> None:
    with running_emulator(AccountSettings(throughput_of_a_partition=6_000)) as emulator:
        client = BlockingClient(emulator.endpoint, emulator.key)
        container = client.create_database("d").create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
        assert len(list(container.read_feed_ranges())) == 5


def test_five_physical_partitions_meet_where_the_services_do() -> None:
    bounds = [partition.low for partition in PhysicalPartitions(5, VERSION_2).all()]
    assert bounds == ["", "0" + "C" * 31, "1" + "9" * 30 + "8", "2" + "6" * 30 + "4", "3" * 31 + "0"]


async def test_items_are_spread_over_partitions_each_with_its_own_token(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=20_000)
    tokens = set()
    for n in range(20):
        reply = await container.create_item({"id": "same", "pk": f"p{n}"})
        tokens.add(reply.get_response_headers()["x-ms-session-token"].split(":")[0])
    assert tokens == {"0", "1"}
    for n in range(20):
        assert (await container.read_item("same", f"p{n}"))["pk"] == f"p{n}"


async def test_a_hierarchical_key_needs_all_its_levels(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey(["/tenant", "/bucket"], kind="MultiHash"))
    await container.create_item({"id": "a", "tenant": "t", "bucket": 1})
    await container.create_item({"id": "a", "tenant": "t", "bucket": 2})
    assert (await container.read_item("a", ["t", 2]))["bucket"] == 2
    with pytest.raises(CosmosHttpResponseError) as refused:
        await container.read_item("a", ["t"])
    assert refused.value.status_code == 400


def test_equal_numbers_are_one_partition_key() -> None:
    keys = PartitionKeyDefinition((("pk",),))
    assert keys.of({"pk": 1}) == keys.of({"pk": 1.0}) != keys.of({"pk": True})


def test_the_blocking_client_works_too(emulator: RunningEmulator) -> None:
    with BlockingClient(emulator.endpoint, emulator.key) as client:
        container = client.create_database("blocking").create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "a/b".replace("/", " ü "), "pk": "p", "n": 1})
        (found,) = container.query_items("SELECT * FROM c WHERE c.n = 1", partition_key="p")
        assert container.read_item(found, "p")["id"] == "a ü b"
        assert len(list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == 1
        assert len(list(container.read_all_items())) == 1
        container.execute_item_batch([("delete", (found["id"],))], "p")
        client.delete_database("blocking")


async def test_a_container_refuses_its_properties_only_by_a_rule_that_names_their_reading(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    database = str(container.container_link.split("/")[1])
    emulator.add_fault(FaultRule(database, when="before", action="status", status=403))
    await container.read()
    operations = ("read_container",)
    emulator.add_fault(FaultRule(database, operations=operations, when="before", action="status", status=403))
    with pytest.raises(CosmosHttpResponseError) as refused:
        await container.read()
    assert refused.value.status_code == 403


@pytest.mark.parametrize("path", ['/"le/vel"/"a b"', "/'le/vel'/'a b'", "/'le/vel'/a b"])
async def test_a_quoted_name_in_a_key_path_may_have_a_slash(database: DatabaseProxy, path: str) -> None:
    container = await database.create_container("quoted", PartitionKey(path))
    await container.create_item({"id": "1", "le/vel": {"a b": "v"}})
    assert (await container.read_item("1", "v"))["id"] == "1"


async def test_an_object_where_the_key_should_be_counts_as_undefined(database: DatabaseProxy) -> None:
    container = await database.create_container("addresses", PartitionKey("/address"))
    await container.create_item({"id": "1", "address": {"city": "Rome"}})
    assert (await container.read_item("1", NonePartitionKeyValue))["address"] == {"city": "Rome"}


async def test_databases_and_containers_are_found_by_queries(client: CosmosClient, database: DatabaseProxy) -> None:
    for name in ("orders", "order-lines", "carts"):
        await database.create_container(name, PartitionKey("/pk"))
    query = "SELECT * FROM root r WHERE r.id = @id"
    parameters: list[dict[str, Any]] = [{"name": "@id", "value": database.id}]
    assert [item["id"] async for item in client.query_databases(query, parameters=parameters)] == [database.id]
    orders = database.query_containers("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'order') ORDER BY c.id DESC")
    found: list[Any] = [order async for order in orders]
    assert found == ["orders", "order-lines"]
