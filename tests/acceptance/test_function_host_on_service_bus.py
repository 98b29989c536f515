"""The whole way, on a local endpoint that Microsoft's client talks to: from the broker to a function, and back."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, List  # noqa: UP035  # The worker takes no list[...].
from uuid import UUID

import azure.functions as func
import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from function_host import HostJson, function_host
from local_service_bus.faults import FaultRule
from local_service_bus.testing import endpoint as running_endpoint
from local_service_bus.topology import Queue, Subscription, Topic, Topology
from tests.acceptance.hosting import SECONDS

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

# The SDK forgets the sockets of connections that were cut, or that nobody waited for, and leaves them to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

OPTIONS = {"sessionIdleTimeout": "00:00:01", "maxConcurrentCalls": 4, "maxConcurrentSessions": 3}


@pytest.fixture
def endpoint() -> Iterator[RunningEndpoint]:
    """A broker with a queue of each kind, and a topic."""
    queues = (Queue("orders", max_delivery_count=3), Queue("games", requires_session=True, max_delivery_count=3))
    with running_endpoint(Topology(queues=queues, topics=(Topic("events", (Subscription("all"),)),))) as running:
        yield running


class Serving:
    """What functions note, and how a test waits for it."""

    def __init__(self, endpoint: RunningEndpoint, client: ServiceBusClient) -> None:
        self.endpoint = endpoint
        self.client = client
        self.app = func.FunctionApp()
        self.calls: Counter[str] = Counter()
        self.messages: list[func.ServiceBusMessage] = []
        self.failing = False

    async def serve(self, message: func.ServiceBusMessage) -> None:
        self.messages.append(message)
        self.calls[message.message_id] += 1
        if self.failing:
            raise ValueError("no")

    async def send(self, entity: str, *names: str, session: Callable[[str], str | None] = lambda _: None) -> None:
        async with self.client.get_queue_sender(entity) as sender:
            await sender.send_messages(
                [ServiceBusMessage(name, message_id=name, session_id=session(name)) for name in names]
            )

    @asynccontextmanager
    async def hosted(self) -> AsyncIterator[None]:
        host_json = HostJson.model_validate({"extensions": {"serviceBus": OPTIONS}})
        async with function_host(self.app, {"Bus": self.endpoint.connection_string}, host_json=host_json):
            yield

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a real broker and a real host have got so far."""
        async with asyncio.timeout(SECONDS):
            while not reached():  # noqa: ASYNC110 - a broker of another process notifies nobody
                await asyncio.sleep(0.02)

    async def until_empty(self, entity: str) -> None:
        await self.until(lambda: self.left(entity) == 0)

    def left(self, entity: str) -> int:
        counts = self.endpoint.counts(entity)
        return counts.active + counts.locked


@pytest.fixture
async def serving(endpoint: RunningEndpoint) -> AsyncIterator[Serving]:
    async with ServiceBusClient.from_connection_string(endpoint.connection_string) as client:
        yield Serving(endpoint, client)
    gc.collect()


def queue_function(serving: Serving, queue: str, **binding: Any) -> None:
    @serving.app.service_bus_queue_trigger(arg_name="message", queue_name=queue, connection="Bus", **binding)
    async def serve(message: func.ServiceBusMessage) -> None:
        await serving.serve(message)


async def test_each_message_is_processed_and_completed(serving: Serving) -> None:
    queue_function(serving, "orders")
    names = [f"m{number}" for number in range(10)]
    async with serving.hosted():
        await serving.send("orders", *names)
        await serving.until_empty("orders")

    assert serving.calls == Counter(names)
    assert {message.get_body().decode() for message in serving.messages} == set(names)
    assert {message.delivery_count for message in serving.messages} == {1}


async def test_a_message_that_always_fails_becomes_a_dead_letter_and_goes_to_the_function_there(
    serving: Serving,
) -> None:
    queue_function(serving, "orders")
    dead: list[func.ServiceBusMessage] = []

    @serving.app.service_bus_queue_trigger(arg_name="message", queue_name="orders/$DeadLetterQueue", connection="Bus")
    async def bury(message: func.ServiceBusMessage) -> None:
        dead.append(message)

    serving.failing = True
    async with serving.hosted():
        await serving.send("orders", "m")
        await serving.until(lambda: bool(dead))
        await serving.until_empty("orders/$DeadLetterQueue")

    assert serving.calls == {"m": 3}
    assert [message.delivery_count for message in serving.messages] == [1, 2, 3]
    properties = dead[0].application_properties
    assert properties["DeadLetterReason"] == "MaxDeliveryCountExceeded"


async def test_a_subscription_has_its_function(serving: Serving) -> None:
    @serving.app.service_bus_topic_trigger(
        arg_name="message", topic_name="events", subscription_name="all", connection="Bus"
    )
    async def serve(message: func.ServiceBusMessage) -> None:
        await serving.serve(message)

    async with serving.hosted():
        await serving.send("events", "m")  # A sender to a topic is no different.
        await serving.until_empty("events/Subscriptions/all")
        await serving.until(lambda: bool(serving.calls))

    assert serving.calls == {"m": 1}


@pytest.mark.parametrize("many", [False, True])
async def test_messages_of_a_session_are_never_in_work_at_the_same_time(serving: Serving, many: bool) -> None:
    working: Counter[str] = Counter()
    order: dict[str, list[str]] = {"a": [], "b": [], "c": []}

    async def work(messages: list[func.ServiceBusMessage]) -> None:
        for message in messages:
            session = str(message.session_id)
            working[session] += 1
            assert working[session] == 1
            await asyncio.sleep(0)
            working[session] -= 1
            order[session].append(message.get_body().decode())

    if many:

        @serving.app.service_bus_queue_trigger(
            arg_name="messages", queue_name="games", connection="Bus", is_sessions_enabled=True, cardinality="many"
        )
        async def serve_many(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006
            await work(messages)
    else:

        @serving.app.service_bus_queue_trigger(
            arg_name="message", queue_name="games", connection="Bus", is_sessions_enabled=True
        )
        async def serve(message: func.ServiceBusMessage) -> None:
            await work([message])

    names = [f"{session}{number}" for number in range(5) for session in order]
    async with serving.hosted():
        await serving.send("games", *names, session=lambda name: name[0])
        await serving.until_empty("games")

    assert order == {session: [f"{session}{number}" for number in range(5)] for session in order}


async def test_one_bad_message_brings_its_whole_batch_back(serving: Serving) -> None:
    batches: list[list[str]] = []

    @serving.app.service_bus_queue_trigger(
        arg_name="messages", queue_name="orders", connection="Bus", cardinality="many"
    )
    async def serve(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006
        batches.append([message.get_body().decode() for message in messages])
        if "bad" in batches[-1]:
            raise ValueError("no")

    await serving.send("orders", "good", "bad")
    async with serving.hosted():
        await serving.until(lambda: serving.endpoint.counts("orders").dead_letters >= 1)

    assert batches[0] == ["good", "bad"]
    assert (
        sum("good" in batch for batch in batches) > 1
    )  # Later batches may be smaller: a message given back comes at once.
    assert sum("bad" in batch for batch in batches) == 3


async def test_a_completion_that_raises_although_it_worked_does_not_bring_the_message_back(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    fault = _add(serving, operation="complete", action="cut_after")
    queue_function(serving, "orders")
    with caplog.at_level(logging.WARNING):
        async with serving.hosted():
            await serving.send("orders", "m", "n")
            await serving.until_empty("orders")

    assert serving.endpoint.fault_hits(fault) == 1
    assert serving.calls == {"m": 1, "n": 1}


@pytest.mark.parametrize(("operation", "action"), [("complete", "redeliver"), ("receive", "lock_lost")])
async def test_a_lock_that_is_lost_in_work_brings_the_message_again(
    serving: Serving, operation: str, action: str, caplog: pytest.LogCaptureFixture
) -> None:
    fault = _add(serving, operation=operation, action=action)
    queue_function(serving, "orders")
    with caplog.at_level(logging.WARNING):
        async with serving.hosted():
            await serving.send("orders", "m")
            await serving.until(lambda: serving.calls["m"] >= 2)
            await serving.until_empty("orders")

    assert serving.endpoint.fault_hits(fault) == 1
    assert serving.calls == {"m": 2}
    if action == "lock_lost":
        assert "message m was processed, but not completed: MessageLockLostError" in caplog.text


async def test_after_connections_break_everything_goes_on(serving: Serving) -> None:
    queue_function(serving, "orders")
    async with serving.hosted():
        await serving.send("orders", "m")
        await serving.until_empty("orders")
        serving.endpoint.drop_connections()
        await serving.send("orders", "n")
        await serving.until_empty("orders")

    assert serving.calls["n"] == 1


def _add(serving: Serving, **rule: Any) -> int:
    return serving.endpoint.add_fault(FaultRule(entity="orders", times=1, **rule))


async def test_properties_come_as_the_hosts_json_has_them(serving: Serving) -> None:
    queue_function(serving, "orders")
    id = UUID(int=7)
    given: dict[Any, Any] = {"text": "x", "number": 1, "share": 1.5, "flag": True, "id": id, "none": None}
    async with serving.hosted(), serving.client.get_queue_sender("orders") as sender:
        await sender.send_messages(ServiceBusMessage("m", message_id="m", application_properties=given))
        await serving.until_empty("orders")

    found = serving.messages[0].application_properties
    assert found == {**given, "id": str(id)}
