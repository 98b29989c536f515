"""What a team writes first: read, handle, write, send. For contrast only; it breaks under the demo's trouble."""

import os
from datetime import datetime, timezone
from functools import cache

import azure.functions as func
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from azure.storage.queue import BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from exactlyonce import Entity, Envelope
from exactlyonce.effects.attempt import Before
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards
from handlers.shooting_range import ranges

app = func.FunctionApp()
ROUTES = Routes(
    limits={"leader-board": 48_000, "audience": 48_000},
    subscribers=dict.fromkeys(("shooting-range.hit", "shooting-range.missed"), ("leader-board", "audience")),
)


@app.queue_trigger(arg_name="message", queue_name="shooting-range", connection="AzureWebJobsStorage")
async def process_shots(message: func.QueueMessage) -> None:
    """Every delivery changes its game."""
    await process(message, ranges)


@app.queue_trigger(arg_name="message", queue_name="leader-board", connection="AzureWebJobsStorage")
async def process_outcomes(message: func.QueueMessage) -> None:
    """Every delivery counts."""
    await process(message, boards)


async def process(message: func.QueueMessage, entity: Entity) -> None:  # type: ignore[type-arg]
    """Read, handle, write, send."""
    envelope = Envelope.read(message.get_body())
    ref = entity.ref_of(envelope)
    container = _container(entity.container)
    try:
        found = await container.read_item(ref.id, partition_key=ref.id)
        document = Json.of(
            {name: value for name, value in found.items() if not name.startswith("_")}
        )  # The store's own.
    except CosmosResourceNotFoundError:
        document = None
    handled = Runner(entity, ref, ROUTES)(Before(document, datetime.now(timezone.utc), "naive"), envelope)
    await container.upsert_item(handled.body.value)
    for output in handled.outputs:
        await _queue(output.destination).send_message(output.envelope.text.encode())


@cache
def _container(name: str) -> ContainerProxy:
    client = CosmosClient(os.environ["COSMOS__accountEndpoint"], os.environ["COSMOS__accountKey"])
    return client.get_database_client(os.environ["COSMOS__database"]).get_container_client(name)


@cache
def _queue(name: str) -> QueueClient:
    return QueueClient.from_connection_string(
        os.environ["AzureWebJobsStorage"], name, message_encode_policy=BinaryBase64EncodePolicy()
    )
