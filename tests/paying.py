"""A payment service for tests: it honours keys for a minute, loses replies, goes down and hangs; and a desk that calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from exactlyonce import Api, Destination, Envelope, TryAgainLater
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.hosting.caller import Caller
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.records.outbox import Output
from exactlyonce.testing.world import ManualClock, World
from exactlyonce.transports.http import Received, Request
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, orders, taken

MINUTE = timedelta(seconds=60)
HONOURED = replace(
    PAYMENTS, key_lifetime=MINUTE, timeout=timedelta(seconds=5), clock_tolerance=timedelta(seconds=1), most_at_once=8
)


class Payments:
    """A wire whose other end charges.

    Attributes:
        charges: for each key, when it was charged.
        requests: as they came.
        down: whether it is, at a time.
    """

    def __init__(self, now: Callable[[], datetime], random: Random, trouble: float = 0.0) -> None:
        self._now, self._random, self._trouble = now, random, trouble
        self.charges: dict[str, list[datetime]] = {}
        self.requests: list[Request] = []
        self.down: Callable[[datetime], bool] = lambda _: False

    async def send(self, request: Request) -> Received | str:
        self.requests.append(request)
        if self.down(self._now()):
            return "ClientConnectorError"
        chance = self._random.random() / self._trouble if self._trouble else 9.0
        if chance < 0.2:
            return "ServerDisconnectedError"
        if chance < 0.3:
            return Received(503, {"retry-after": "7"}, b"")
        if chance < 0.4:
            return Received(429, {}, b"")
        times = self.charges.setdefault(request.headers["Idempotency-Key"], [])
        if not times or self._now() - times[-1] >= MINUTE:
            times.append(self._now())
        if chance < 1.0:
            return "TimeoutError"  # It has charged, and the reply is lost.
        return Received(201, {"content-type": "application/json", "set-cookie": "secret"}, b'{"charged":true}')


class Resting(ManualClock):
    """A clock that only the test moves. Nobody waits for it."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Desk(World):
    """A world in which orders are billed.

    Args:
        trouble: how often a try of a call fails, one way or another.
        losing: how often a queue does not say that it took a message.
        seed: of chance.
        api: that is called.
    """

    def __init__(self, trouble: float = 0.0, losing: float = 0.0, seed: int = 0, api: Api = HONOURED) -> None:
        chance = Random(seed)
        super().__init__(
            (ORDERS, RECEIPTS, Destination(api.name)),
            random=chance,
            clock=Resting(),
            outcome=lambda _: (True, chance.random() >= losing),
        )
        self.api = api
        self.orders = orders(api=api)
        self.payments = Payments(self.clock.now, chance, trouble)
        self.caller = self.calling(self.payments)
        self.at_work = self.process()
        self._order = count()
        self._taken: dict[str, int] = {}
        self._waiting: list[tuple[datetime, int, str, Output]] = []

    def calling(self, wire: Any, **more: Any) -> Caller:
        """A caller of this world with another wire."""
        addresses = self._addresses
        given: dict[str, Any] = {
            "apis": {self.api.name: self.api},
            "publisher": Publisher(addresses, remembers=False),
            "routes": self.routes,
            "claims": ClaimChecks(None),
            "now": self.clock.now,
            "random": self.random,
        }
        return Caller(**{**given, "wire": wire, "begin": _begun, **more})

    async def send(self, *envelopes: Envelope) -> None:
        """Let the orders handle messages that came by their queue."""
        for envelope in envelopes:
            dated = replace(envelope, time=self.clock.now())
            await self._until_taken(partial(self.at_work.deliver, self.orders, dated))

    async def run(self, copies: float = 0.0) -> None:
        """Deliver what is in the queues until they are empty.

        Args:
            copies: how often a message comes once more, up to two minutes later.
        """
        while self._collected(copies) or self._waiting:
            due, _, queue, output = heappop(self._waiting)
            self.clock.advance(max((due - self.clock.now()).total_seconds(), 0.0))  # type: ignore[attr-defined]
            if queue == self.api.name:
                await self._until_taken(partial(self.caller.take, taken(output.envelope)))
            elif queue == ORDERS.name:
                reply = Envelope.read(output.envelope.text)
                await self._until_taken(partial(self.at_work.deliver, self.orders, reply))

    def _collected(self, copies: float) -> bool:
        """Take what the queues got since the last time."""
        found = False
        for name, outputs in self.transport.queues.items():
            for output in outputs[self._taken.get(name, 0) :]:
                found = True
                times = 1 + (self.random.random() < copies)
                for copy in range(times):
                    late = output.delay + copy * self.random.uniform(0, 120)
                    due = self.clock.now() + timedelta(seconds=late)
                    heappush(self._waiting, (due, next(self._order), name, output))
            self._taken[name] = len(outputs)
        return found

    async def _until_taken(self, deliver: Callable[[], Any]) -> None:
        with suppress(TryAgainLater):
            await deliver()
            return
        await self._until_taken(deliver)

    def order(self, id: str = "a") -> dict[str, Any]:
        """The document of an order."""
        newest = self.store._entity(self.orders.ref(id)).newest(id)
        assert newest is not None
        assert newest.document is not None
        return dict(newest.document.value)


async def _begun() -> None:
    """Nothing is to begin."""
