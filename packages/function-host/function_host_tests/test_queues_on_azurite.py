"""The whole way of a message, on real queues."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import azure.functions as func
import pytest
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from function_host import HostJson, HostOptions, Point, function_host
from function_host.azurite import ACCOUNT, ACCOUNT_KEY, Azurite
from function_host.storage_queue import MessageGoneError, QueueMissingError, StorageError, StorageQueue
from function_host_tests.fakes import encoded

pytestmark = pytest.mark.acceptance

Serve = Callable[[func.QueueMessage], Awaitable[None]]


class Inbox:
    """A function that notes its messages and can be told to fail or to take its time."""

    def __init__(self, *, fail: int = 0, seconds: float = 0.0) -> None:
        self.messages: list[func.QueueMessage] = []
        self._fail = fail
        self._seconds = seconds

    async def serve(self, message: func.QueueMessage) -> None:
        self.messages.append(message)
        await asyncio.sleep(self._seconds)
        if len(self.messages) <= self._fail:
            raise ValueError("told to fail")

    async def is_called(self) -> bool:
        return bool(self.messages)

    @property
    def dequeue_counts(self) -> list[int | None]:
        return [message.dequeue_count for message in self.messages]


def app_for(queue_name: str, serve: Serve, connection: str = "AzureWebJobsStorage") -> func.FunctionApp:
    app = func.FunctionApp()

    @app.queue_trigger(arg_name="message", queue_name=queue_name, connection=connection)
    async def inbox(message: func.QueueMessage) -> None:
        await serve(message)

    return app


def settings(storage: Azurite) -> dict[str, str]:
    return {"AzureWebJobsStorage": storage.connection_string}


def host_json(**queues: Any) -> HostJson:
    return HostJson.model_validate({"extensions": {"queues": queues}})


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that the host does in its own time."""
    while not await condition():  # noqa: ASYNC110 - storage tells nobody when it changes
        await asyncio.sleep(0.02)


async def count(queue: QueueClient) -> int:
    """Messages in a queue, invisible ones included."""
    return (await queue.get_queue_properties()).approximate_message_count or 0


async def until_empty(queue: QueueClient) -> None:
    async def is_empty() -> bool:
        return await count(queue) == 0

    await until(is_empty)


async def test_a_message_is_served_once_and_deleted(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox()
    sent = await queue.send_message(encoded("hello"))
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage)) as host:
        await until_empty(queue)

    (message,) = inbox.messages
    assert host.functions == ("inbox",)
    assert (message.id, message.get_body(), message.dequeue_count) == (sent.id, b"hello", 1)
    assert (message.insertion_time, message.expiration_time) == (sent.inserted_on, sent.expires_on)


async def test_a_failing_message_comes_back_at_once_with_a_higher_count(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox(fail=2)
    await queue.send_message(encoded("hello"))
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage)):
        await until_empty(queue)

    assert inbox.dequeue_counts == [1, 2, 3]


async def test_after_the_last_delivery_it_is_in_the_poison_queue(
    storage: Azurite, queue: QueueClient, poison: QueueClient
) -> None:
    inbox = Inbox(fail=100)
    sent = await queue.send_message(encoded("hello"))
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage)):
        await until_empty(queue)

    (moved,) = [message async for message in poison.receive_messages()]
    assert inbox.dequeue_counts == [1, 2, 3, 4, 5]
    assert moved.content == encoded("hello")
    assert moved.id != sent.id


async def test_without_encoding_plain_texts_are_served(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox()
    await queue.send_message('{"plain": "json"}')
    app = app_for(queue.queue_name, inbox.serve)
    async with function_host(app, settings(storage), host_json=host_json(messageEncoding="none")):
        await until_empty(queue)

    assert [message.get_json() for message in inbox.messages] == [{"plain": "json"}]


async def test_renewal_keeps_a_long_message_from_coming_back(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox(seconds=6.0)
    await queue.send_message(encoded("hello"))
    app = app_for(queue.queue_name, inbox.serve)
    async with function_host(app, settings(storage), options=HostOptions(invisible=5)):
        await until_empty(queue)

    assert inbox.dequeue_counts == [1]


async def test_a_queue_created_later_is_served_from_then_on(
    storage: Azurite, queue: QueueClient, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox()
    caplog.set_level("DEBUG", logger="function_host")

    async def missed() -> bool:
        return "inbox: its queue does not exist yet" in caplog.messages

    await queue.delete_queue()
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage)):
        await until(missed)
        await queue.create_queue()
        await queue.send_message(encoded("hello"))
        await until_empty(queue)

    assert len(inbox.messages) == 1


async def test_stopping_lets_a_running_function_end(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox(seconds=0.5)

    await queue.send_message(encoded("hello"))
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage)):
        await until(inbox.is_called)

    assert await count(queue) == 0


async def test_after_the_grace_a_running_function_is_dropped_and_its_message_stays(
    storage: Azurite, queue: QueueClient
) -> None:
    inbox = Inbox(seconds=3600)

    await queue.send_message(encoded("hello"))
    options = HostOptions(grace=0.1)
    async with function_host(app_for(queue.queue_name, inbox.serve), settings(storage), options=options):
        await until(inbox.is_called)

    assert await count(queue) == 1


async def test_a_connection_by_uri_needs_no_key_for_azurite(storage: Azurite, queue: QueueClient) -> None:
    inbox = Inbox()
    await queue.send_message(encoded("hello"))
    app = app_for(queue.queue_name, inbox.serve, connection="Games")
    async with function_host(app, {"Games__queueServiceUri": storage.queue_uri}):
        await until_empty(queue)

    assert len(inbox.messages) == 1


async def test_a_defect_of_the_host_reaches_its_operator(storage: Azurite, queue: QueueClient) -> None:
    passed: list[Point] = []

    def defect(point: Point) -> None:
        passed.append(point)
        raise RuntimeError("defect")

    async def happened() -> bool:
        return bool(passed)

    await queue.send_message(encoded("hello"))
    app = app_for(queue.queue_name, Inbox().serve)
    with pytest.raises(RuntimeError, match="defect"):
        async with function_host(app, settings(storage), options=HostOptions(checkpoint=defect)):
            await until(happened)


async def test_messages_that_are_put_aside_at_once_find_the_queue_that_one_of_them_creates(
    storage: Azurite, poison: QueueClient
) -> None:
    async with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        port = StorageQueue(service, poison.queue_name)
        await asyncio.gather(*(port.put(encoded(f"hello {number}")) for number in range(16)))
        assert len(await port.receive(32, 60)) == 16


async def test_storage_replies_are_distinguished(storage: Azurite, queue: QueueClient) -> None:
    async with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        port = StorageQueue(service, queue.queue_name)
        await port.put(encoded("hello"))
        (first,) = await port.receive(16, 60)
        renewed = await port.renew(first, 60)
        assert renewed.pop_receipt != first.pop_receipt
        with pytest.raises(MessageGoneError, match="PopReceiptMismatch"):
            await port.delete(first)
        with pytest.raises(MessageGoneError, match="PopReceiptMismatch"):
            await port.renew(first, 0)
        await port.delete(renewed)
        with pytest.raises(MessageGoneError, match="MessageNotFound"):
            await port.delete(renewed)
        assert await port.receive(16, 60) == []
        with pytest.raises(QueueMissingError):
            await StorageQueue(service, "no-such-queue").receive(16, 60)


async def test_a_service_that_does_not_answer_is_told_with_what_to_start() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    nowhere = f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};QueueEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    async with QueueServiceClient.from_connection_string(nowhere, retry_total=0) as service:
        with pytest.raises(StorageError, match=r"does not answer .*'azurite'"):
            await StorageQueue(service, "orders").receive(1, 30)
