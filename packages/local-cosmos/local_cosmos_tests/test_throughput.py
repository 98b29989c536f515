"""The throughput of databases and containers is read and replaced, as the client does it."""

from __future__ import annotations

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos_tests.raw import RawClient

AUTOSCALE = ThroughputProperties(auto_scale_max_throughput=4000)


async def test_a_container_has_the_throughput_that_it_was_created_with(database: DatabaseProxy) -> None:
    manual = await database.create_container("manual", PartitionKey("/pk"), offer_throughput=20_000)
    scaled = await database.create_container("scaled", PartitionKey("/pk"), offer_throughput=AUTOSCALE)
    unsaid = await database.create_container("unsaid", PartitionKey("/pk"))
    assert (await manual.get_throughput()).offer_throughput == 20_000
    assert (await scaled.get_throughput()).auto_scale_max_throughput == 4000
    assert (await unsaid.get_throughput()).offer_throughput == 400


async def test_throughput_is_replaced(database: DatabaseProxy, container: ContainerProxy) -> None:
    assert (await container.replace_throughput(700)).offer_throughput == 700
    assert (await container.get_throughput()).offer_throughput == 700
    scaled = await database.create_container("scaled", PartitionKey("/pk"), offer_throughput=AUTOSCALE)
    await scaled.replace_throughput(ThroughputProperties(auto_scale_max_throughput=5000))
    assert (await scaled.get_throughput()).auto_scale_max_throughput == 5000


async def test_an_autoscale_maximum_keeps_the_increment_by_which_it_may_rise(database: DatabaseProxy) -> None:
    rising = ThroughputProperties(auto_scale_max_throughput=7000, auto_scale_increment_percent=0)
    container = await database.create_container("rising", PartitionKey("/pk"), offer_throughput=rising)
    assert (await container.get_throughput()).auto_scale_increment_percent == 0
    await container.replace_throughput(
        ThroughputProperties(auto_scale_max_throughput=8000, auto_scale_increment_percent=20)
    )
    throughput = await container.get_throughput()
    assert (throughput.auto_scale_max_throughput, throughput.auto_scale_increment_percent) == (8000, 20)


async def test_a_database_may_have_a_throughput_that_its_containers_share(raw: RawClient, client: CosmosClient) -> None:
    database = await client.create_database("shared", offer_throughput=1000)
    container = await database.create_container("c", PartitionKey("/pk"))
    assert (await database.get_throughput()).offer_throughput == 1000
    rid = (await container.read())["_rid"]
    assert rid not in [offer["offerResourceId"] for offer in raw.send("GET", "offers").body["Offers"]]


@pytest.mark.parametrize(
    ("throughput", "what"), [(399, "less than required minimum"), (450, "steps of 100"), (1_000_100, "steps of 100")]
)
async def test_a_throughput_that_the_service_does_not_have_is_refused(
    container: ContainerProxy, throughput: int, what: str
) -> None:
    with pytest.raises(CosmosHttpResponseError, match=what) as refused:
        await container.replace_throughput(throughput)
    assert refused.value.status_code == 400


async def test_offers_go_with_their_containers(raw: RawClient, client: CosmosClient) -> None:
    before = len(raw.send("GET", "offers").body["Offers"])
    database = await client.create_database("going", offer_throughput=500)
    await database.create_container("c", PartitionKey("/pk"), offer_throughput=500)
    offers = raw.send("GET", "offers").body["Offers"]
    assert len(offers) == before + 2
    assert raw.send("GET", f"offers/{offers[-1]['id']}").body == offers[-1]
    await client.delete_database("going")
    assert len(raw.send("GET", "offers").body["Offers"]) == before
    assert raw.send("GET", f"offers/{offers[-1]['id']}").status == 404
