"""A second client, which shares no code with the first, finds the same: rhea, an AMQP client for Node."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessageSizeExceededError,
    ServiceBusError,
    SessionCannotBeLockedError,
)

from local_service_bus.testing import endpoint as running_endpoint
from local_service_bus.topology import Queue, Topology
from local_service_bus_tests.node import require_node
from local_service_bus_tests.sdk import message

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

SCRIPT = Path(__file__).parent / "javascript" / "rhea_client.js"
TOPOLOGY = Topology(
    (Queue("orders", max_bytes=10_000), Queue("batches"), Queue("later"), Queue("sessions", requires_session=True))
)


def seen_by_rhea() -> Any:
    with running_endpoint(TOPOLOGY) as endpoint:
        parts = dict(part.split("=", 1) for part in endpoint.connection_string.strip(";").split(";"))
        command = ["node", str(SCRIPT), str(endpoint.port), parts["SharedAccessKeyName"], parts["SharedAccessKey"]]
        played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
    return json.loads(played.stdout)


def seen_by_the_sdk() -> dict[str, Any]:
    """The same scenario, by the client of Python."""
    with running_endpoint(TOPOLOGY) as endpoint, ThreadPoolExecutor() as pool:
        client = ServiceBusClient.from_connection_string(endpoint.connection_string, retry_total=0)
        played = {
            part.__name__: pool.submit(part, client, endpoint) for part in (settling, batches, scheduling, sessions)
        }
        seen_parts = {name: part.result() for name, part in played.items()}
        client.close()
    return {"token": 202, **seen_parts}


def settling(client: ServiceBusClient, _: RunningEndpoint) -> dict[str, Any]:
    sender, receiver = client.get_queue_sender("orders"), client.get_queue_receiver("orders")
    with sender, receiver, client.get_queue_receiver("orders", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as graves:
        for id in "abcd":
            sender.send_messages(message(f"body of {id}", message_id=id))
        with pytest.raises(MessageSizeExceededError) as large:
            sender.send_messages(message("x" * 20_000, message_id="large"))
        got = receiver.receive_messages(4, max_wait_time=5)
        received = [seen(item) for item in got]
        receiver.complete_message(got[0])
        receiver.abandon_message(got[1])
        receiver.dead_letter_message(got[2], reason="bad", error_description="it is bad")
        receiver.defer_message(got[3])
        (again,) = receiver.receive_messages(1, max_wait_time=5)
        receiver.complete_message(again)
        (dead,) = graves.receive_messages(1, max_wait_time=5)
        return {
            "sent": ["accepted"] * 4,
            "large": condition(large),
            "received": received,
            "again": seen(again),
            "deferred": got[3].sequence_number,
            "dead": seen(dead),
            "reasons": [dead.dead_letter_reason, dead.dead_letter_error_description],
        }


def batches(client: ServiceBusClient, _: RunningEndpoint) -> dict[str, Any]:
    with client.get_queue_sender("batches") as sender, client.get_queue_receiver("batches") as receiver:
        sender.send_messages([message(id, message_id=id) for id in "jk"])
        got = receiver.receive_messages(2, max_wait_time=5)
        received = [seen(item) for item in got]
        receiver.abandon_message(got[0])
        (again,) = receiver.receive_messages(1, max_wait_time=5)
        receiver.complete_message(got[1])
        receiver.complete_message(again)
        return {"received": received, "again": seen(again)}


def scheduling(client: ServiceBusClient, endpoint: RunningEndpoint) -> dict[str, Any]:
    at = datetime.fromtimestamp(endpoint.now(), timezone.utc) + timedelta(hours=1)
    with client.get_queue_sender("later") as sender:
        numbers = sender.schedule_messages([message("e"), message("f")], at)
        sender.cancel_scheduled_messages(numbers[1])
        with pytest.raises(MessageNotFoundError) as refused:
            sender.cancel_scheduled_messages(numbers[1])
    return {"numbers": numbers, "cancelled": 200, "refused": condition(refused)}


def sessions(client: ServiceBusClient, _: RunningEndpoint) -> dict[str, Any]:
    with client.get_queue_sender("sessions") as sender:
        for id, session in (("g", "one"), ("h", "two"), ("i", "one")):
            sender.send_messages(message(id, session_id=session))
    with client.get_queue_receiver("sessions", session_id="one") as receiver:
        got = receiver.receive_messages(2, max_wait_time=5)
        for item in got:
            receiver.complete_message(item)
        receiver.session.set_state("kept")
        state = receiver.session.get_state()
        following = client.get_queue_receiver("sessions", session_id=NEXT_AVAILABLE_SESSION)
        with following, pytest.raises(SessionCannotBeLockedError) as taken:
            client.get_queue_receiver("sessions", session_id="one").__enter__()
        return {
            "ids": [item.message_id for item in got],
            "state": state.decode(),
            "next": following.session.session_id,
            "taken": condition(taken),
        }


def condition(refused: pytest.ExceptionInfo[ServiceBusError]) -> str:
    """The condition on the wire; the client keeps it as bytes or as text."""
    told: Any = refused.value._condition
    return told.decode() if isinstance(told, bytes) else str(told)


def seen(found: ServiceBusReceivedMessage) -> dict[str, Any]:
    return {
        "id": found.message_id,
        "body": str(found),
        "failed": found.delivery_count,
        "number": found.sequence_number,
    }


def test_rhea_and_the_sdk_find_the_same() -> None:
    require_node("rhea")
    assert seen_by_rhea() == seen_by_the_sdk()
