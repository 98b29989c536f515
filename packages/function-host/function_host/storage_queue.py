"""A storage queue as the listener sees it: the port, and the adapter to the SDK."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.storage.queue import QueueMessage, StorageErrorCode
from azure.storage.queue.aio import QueueClient, QueueServiceClient

_GONE = {
    StorageErrorCode.POP_RECEIPT_MISMATCH,
    StorageErrorCode.MESSAGE_NOT_FOUND,
    StorageErrorCode.QUEUE_NOT_FOUND,
    StorageErrorCode.QUEUE_BEING_DELETED,
    StorageErrorCode.QUEUE_DISABLED,
}


class StorageError(Exception):
    """Storage refused or could not be reached."""


class QueueMissingError(StorageError):
    """There is no such queue (yet)."""


class MessageGoneError(StorageError):
    """The pop receipt is not the latest, or the message no longer exists: someone else has it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A dequeued message. The pop receipt is good until the next renewal, which gives a new one."""

    id: str
    text: str
    dequeue_count: int
    inserted: datetime | None
    expires: datetime | None
    next_visible: datetime | None
    pop_receipt: str


class Queue(Protocol):
    """What a listener does with a queue. Everything may raise StorageError; durations are seconds."""

    async def receive(self, count: int, invisible: float) -> list[Delivery]:
        """Dequeue up to so many messages in one request. Raises QueueMissingError."""

    async def renew(self, delivery: Delivery, invisible: float) -> Delivery:
        """Keep a message invisible for so long from now on; 0 gives it back. Raises MessageGoneError."""

    async def delete(self, delivery: Delivery) -> None:
        """Remove a message. Raises MessageGoneError."""

    async def put(self, text: str) -> None:
        """Send a message with exactly this text; a missing queue is created."""


class StorageQueue:
    """The port on a real queue. Texts pass as they are: encoding is the listener's subject."""

    def __init__(self, service: QueueServiceClient, name: str) -> None:
        self._client: QueueClient = service.get_queue_client(name)

    async def receive(self, count: int, invisible: float) -> list[Delivery]:
        with _translated():
            pages = self._client.receive_messages(
                messages_per_page=count, max_messages=count, visibility_timeout=int(invisible)
            ).by_page()
            # One page is one request; iterating over the messages would ask again until `count` are there.
            async for page in pages:
                return [_delivery(message) async for message in page]
            return []

    async def renew(self, delivery: Delivery, invisible: float) -> Delivery:
        with _translated():
            # Deliberately without content: the text stays what it is.
            renewed = await self._client.update_message(
                delivery.id, delivery.pop_receipt, visibility_timeout=int(invisible)
            )
        return replace(
            delivery, pop_receipt=renewed.pop_receipt or delivery.pop_receipt, next_visible=renewed.next_visible_on
        )

    async def delete(self, delivery: Delivery) -> None:
        with _translated():
            await self._client.delete_message(delivery.id, delivery.pop_receipt)

    async def put(self, text: str) -> None:
        with _translated():
            try:
                await self._client.send_message(text)
            except ResourceNotFoundError:
                with suppress(ResourceExistsError):  # Another message's copy has created it meanwhile.
                    await self._client.create_queue()
                await self._client.send_message(text)


def _delivery(message: QueueMessage) -> Delivery:
    return Delivery(
        id=message.id,
        text=message.content or "",
        dequeue_count=message.dequeue_count or 1,
        inserted=message.inserted_on,
        expires=message.expires_on,
        next_visible=message.next_visible_on,
        pop_receipt=message.pop_receipt or "",
    )


@contextmanager
def _translated() -> Iterator[None]:
    """The SDK's errors in the port's terms."""
    try:
        yield
    except HttpResponseError as error:
        code = getattr(error, "error_code", None)
        text = f"{error.status_code} {getattr(code, 'value', code)}"
        if code == StorageErrorCode.QUEUE_NOT_FOUND:
            raise QueueMissingError(text) from error
        if code in _GONE:
            raise MessageGoneError(text) from error
        raise StorageError(text) from error
    except ServiceRequestError as error:
        raise StorageError(
            "its queue service does not answer (ServiceRequestError): start it, as 'azurite' does on this machine, or correct "
            "the connection"
        ) from error
    except AzureError as error:
        raise StorageError(type(error).__name__) from error
