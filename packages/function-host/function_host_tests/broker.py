"""Stand-ins for a broker and its clock, so that the listener's decisions are tested without either."""

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

from function_host.service_bus.receiver import BrokerError, Delivery

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def delivered(text: str = "hello", **metadata: Any) -> Delivery:
    """A locked message, with what every message has."""
    always = {
        "DeliveryCount": 1,
        "LockToken": f"token-{text}",
        "ExpiresAtUtc": "9999-12-31T23:59:59.999999",
        "EnqueuedTimeUtc": "2026-01-01T12:00:00",
        "MessageId": f"id-{text}",
        "ContentType": None,
        "SequenceNumber": 7,
        "ApplicationProperties": {},
        "UserProperties": {},
        "SessionId": None,
    }
    return Delivery(text.encode(), {**always, **metadata})


class FakeReceiver:
    """Hands out prepared batches, and prepared errors in place of replies, or is silent; records what is asked of it."""

    def __init__(self, *batches: list[Delivery] | BrokerError, lock: timedelta = timedelta(minutes=1)) -> None:
        self.batches = list(batches)
        self.log: list[tuple[object, ...]] = []
        self.errors: dict[str, list[BrokerError]] = {}
        self.now = NOON
        self.lock = lock
        self.silent = False
        self._until = NOON + lock

    def fail(self, operation: str, *errors: BrokerError) -> None:
        """Prepare errors of an operation's first calls."""
        self.errors[operation] = list(errors)

    async def receive(self, count: int, seconds: float) -> list[Delivery]:
        self._note("receive", count, seconds)
        if self.silent:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        batch = self.batches.pop(0) if self.batches else []
        if isinstance(batch, BrokerError):
            raise batch
        return batch

    async def complete(self, delivery: Delivery) -> None:
        self._note("complete", delivery.id)

    async def abandon(self, delivery: Delivery) -> None:
        self._note("abandon", delivery.id)

    async def renew(self, delivery: Delivery | None) -> datetime:
        self._note("renew", "session" if delivery is None else delivery.id)
        self._until = self.now + self.lock
        return self._until

    def locked_until(self, delivery: Delivery | None) -> datetime:
        return self._until

    async def close(self) -> None:
        self._note("close")

    @property
    def settled(self) -> list[tuple[object, ...]]:
        """What became of its messages."""
        return [entry for entry in self.log if entry[0] in {"complete", "abandon"}]

    def _note(self, operation: str, *details: object) -> None:
        self.log.append((operation, *details))
        if self.errors.get(operation):
            raise self.errors[operation].pop(0)


class FakeSource:
    """Hands out prepared receivers one after the other, None or errors where they are prepared; then stops the listener."""

    def __init__(self, stop: asyncio.Event, *prepared: FakeReceiver | BrokerError | None) -> None:
        self.prepared = list(prepared)
        self.opened = 0
        self._stop = stop

    async def open(self, seconds: float) -> FakeReceiver | None:
        await asyncio.sleep(0)
        self.opened += 1
        if not self.prepared:
            self._stop.set()
            return None
        receiver = self.prepared.pop(0)
        if isinstance(receiver, BrokerError):
            raise receiver
        return receiver
