"""Stand-ins for storage and time, so that the listener's decisions are tested without either."""

import asyncio
import base64
import itertools
from collections.abc import Callable
from dataclasses import replace

from function_host.storage_queue import Delivery, MessageGoneError, StorageError


def encoded(text: str) -> str:
    """A body as base64."""
    return base64.b64encode(text.encode()).decode()


def delivery(text: str = "hello", *, dequeue_count: int = 1, raw: str | None = None) -> Delivery:
    """A dequeued message."""
    body = encoded(text) if raw is None else raw
    return Delivery(f"id-{text}", body, dequeue_count, None, None, None, pop_receipt="receipt-0")


class FakeQueue:
    """Records what is asked of it; hands out prepared batches, and prepared errors instead of replies."""

    def __init__(self, batches: list[list[Delivery] | StorageError] | None = None) -> None:
        self.batches = batches or []
        self.log: list[tuple[object, ...]] = []
        self.errors: dict[str, list[StorageError | None]] = {}
        self._receipts = itertools.count(1)

    def fail(self, operation: str, *errors: StorageError | None) -> None:
        """Prepare replies of an operation: an error, or None for one success in between."""
        self.errors[operation] = list(errors)

    async def receive(self, count: int, invisible: float) -> list[Delivery]:
        self._note("receive", count, invisible)
        batch = self.batches.pop(0) if self.batches else []
        if isinstance(batch, StorageError):
            raise batch
        return batch

    async def renew(self, delivery: Delivery, invisible: float) -> Delivery:
        self._note("renew", delivery.pop_receipt, invisible)
        return replace(delivery, pop_receipt=f"receipt-{next(self._receipts)}")

    async def delete(self, delivery: Delivery) -> None:
        self._note("delete", delivery.pop_receipt)

    async def put(self, text: str) -> None:
        self._note("put", text)

    def _note(self, operation: str, *details: object) -> None:
        self.log.append((operation, *details))
        if self.errors.get(operation) and (error := self.errors[operation].pop(0)) is not None:
            raise error


class FakeWait:
    """Waits no time: notes the pauses, and lets the other tasks run.

    Args:
        then: called with the number of each pause; may stop what waits.
    """

    def __init__(self, then: Callable[[int], None] = lambda _: None) -> None:
        self.pauses: list[float] = []
        self._then = then

    async def __call__(self, event: asyncio.Event, seconds: float) -> bool:
        self.pauses.append(seconds)
        self._then(len(self.pauses))
        await asyncio.sleep(0)
        return event.is_set()


async def wait_for_the_end(event: asyncio.Event, _: float) -> bool:
    """A wait during which the function ends before any renewal is due."""
    return await event.wait()


def gone() -> MessageGoneError:
    """The reply to a lost pop receipt."""
    return MessageGoneError("PopReceiptMismatch")
