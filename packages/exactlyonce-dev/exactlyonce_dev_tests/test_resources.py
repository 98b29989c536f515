"""What an app declares is created: containers of any partition key, queues, and the topology of Service Bus."""

from __future__ import annotations

import azure.functions as func
from azure.cosmos import CosmosClient

from exactlyonce.hosting import Needs
from exactlyonce_dev.host import create_containers, topology
from function_host.app_settings import AppSettings
from function_host.loading import describe_functions
from local_cosmos.inprocess import running_emulator


def test_containers_are_created_once_with_their_partition_keys() -> None:
    needs = Needs("shop", {"orders": ("/order",), "places": ("/tenant", "/place")}, "exactlyonce", (), None)
    with running_emulator() as emulator:
        settings = {"COSMOS__accountEndpoint": emulator.endpoint, "COSMOS__accountKey": emulator.key}
        create_containers(needs, settings)
        create_containers(needs, settings)
        with CosmosClient(emulator.endpoint, emulator.key) as client:
            made = {container["id"]: container for container in client.get_database_client("shop").list_containers()}
    assert {name: item["partitionKey"]["paths"] for name, item in made.items()} == {
        "orders": ["/order"],
        "places": ["/tenant", "/place"],
        "exactlyonce": ["/pk"],
    }
    assert made["exactlyonce"]["defaultTtl"] == -1


def test_a_trigger_on_a_subscription_makes_a_topic_and_other_names_are_queues() -> None:
    app = func.FunctionApp()

    @app.service_bus_queue_trigger(arg_name="message", queue_name="orders", connection="ServiceBus")
    async def one(message: func.ServiceBusMessage) -> None: ...

    @app.service_bus_queue_trigger(
        arg_name="message", queue_name="stocks", connection="ServiceBus", is_sessions_enabled=True
    )
    async def two(message: func.ServiceBusMessage) -> None: ...

    @app.service_bus_queue_trigger(arg_name="message", queue_name="stocks/$DeadLetterQueue", connection="ServiceBus")
    async def three(message: func.ServiceBusMessage) -> None: ...

    @app.service_bus_topic_trigger(
        arg_name="message", topic_name="events", subscription_name="all", connection="ServiceBus"
    )
    async def four(message: func.ServiceBusMessage) -> None: ...

    settings = AppSettings({"ServiceBus": "Endpoint=sb://localhost;SharedAccessKeyName=a;SharedAccessKey=b"})
    (namespace,) = topology(describe_functions(app, settings), ["orders", "events", "mail"])["UserConfig"]["Namespaces"]
    assert {item["Name"]: item["Properties"]["RequiresSession"] for item in namespace["Queues"]} == {
        "orders": False,
        "stocks": True,
        "mail": False,
    }
    (topic,) = namespace["Topics"]
    assert (topic["Name"], [item["Name"] for item in topic["Subscriptions"]]) == ("events", ["all"])
