"""Settlers of poison messages, in worlds of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from azure.functions.queue import QueueMessage

from exactlyonce import Destination, Entity, Envelope, TryAgainLater
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.effect import Awaited
from exactlyonce.effects.library import FoundParked, LoadParked
from exactlyonce.errors import HandlerFailed
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Returner, Settler
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Output
from exactlyonce.testing.world import InstantClock, ManualClock, World
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import Deposited
from tests.unit.boards import Shown

SECRET = "what-the-body-says"


def dated(envelope: Envelope, ago: timedelta = timedelta(0)) -> Envelope:
    """The message, with the time at which the clocks of tests start, or so long before."""
    return replace(envelope, time=ManualClock().now() - ago)


async def ready() -> None:
    """The accounts pass."""


def maintenance(world: World, tries: int = 2) -> Maintenance:
    """Maintenance of this world's entities."""
    driver = AsyncDriver(Awaited(world.store), world._publisher, Runtime(world.clock, world.random))
    return Maintenance(driver, Retrying(Backoff(tries=tries), world.random), world.routes)


def parked(world: World, place: EntityRef, message: str) -> ParkedMessage | None:
    """A parked message; None if it is not parked."""
    found = world.store.perform(LoadParked(place, message))
    assert isinstance(found, FoundParked)
    return found.message


def settler(
    world: World,
    failures: Failures | None = None,
    claims: ClaimChecks | None = None,
    ready: Callable[[], Awaitable[None]] = ready,
    lifetimes: Callable[[], Lifetimes] = Lifetimes,
) -> PoisonSettler:
    """A settler of this world."""
    claims, runs = claims or ClaimChecks(None), maintenance(world)
    returner = Returner(runs, claims, world.random)
    return PoisonSettler(Settler(runs, failures or Failures(), returner, lifetimes, ready, world.clock.now), claims)


def receiver(
    world: World, runs: Maintenance, failures: Failures, poison: PoisonSettler, clock: Clock | None = None
) -> Receiver:
    """A receiver of this world, with lanes of its own."""
    lanes, claims = Lanes(runs.driver, runs.retrying, clock or InstantClock()), ClaimChecks(None)
    return Receiver(lanes, runs, claims, failures, poison, ready, ready, Lifetimes, world.clock.now)


class Place(World):
    """A world whose queues take nothing while they are not open, and its settler.

    Attributes:
        wrong: error of the start-up checks; None if they pass.
        started: whether they ever passed; before that, nobody knows the retention.
    """

    def __init__(self, **more: Any) -> None:
        self.open = True
        self.wrong: Exception | None = None
        self.started = True
        self.failures = Failures()
        queues = (Destination("receipts", (Deposited,)), Destination("screens", (Shown,)), Destination("accounts"))
        super().__init__(queues, outcome=lambda _: (self.open, self.open), **more)

    @property
    def settler(self) -> PoisonSettler:
        return settler(self, self.failures, ready=self.ready, lifetimes=self.known)

    async def ready(self) -> None:
        if self.wrong is not None:
            raise self.wrong

    def known(self) -> Lifetimes:
        if not self.started:
            raise TryAgainLater("The retention is not known yet.")
        return Lifetimes()

    async def settle(
        self,
        kind: Entity[Any],
        message: Envelope | bytes,
        queue: str = "accounts",
        times: int = 1,
        *,
        by: PoisonSettler | None = None,
        **more: Any,
    ) -> str:
        """Settle the poison copy of a message, which comes for the `times`-th time."""
        body = message if isinstance(message, bytes) else message.to_json().text.encode()
        given_up = QueueMessage(id="q-1", body=body, dequeue_count=times)  # type: ignore[no-untyped-call]
        return await (by or self.settler).settle(kind, given_up, queue, **more)

    def saw_fail(self, kind: Entity[Any], *messages: str) -> None:
        """Note failures of messages for their own sake."""
        for key in messages:
            self.failures.note(kind.name, key, HandlerFailed(SECRET), 5)

    async def crashed_after_commit(self, kind: Entity[Any], message: Envelope) -> None:
        self.open = False
        process = self.process(backoff=Backoff(tries=1))
        with pytest.raises(TryAgainLater):
            await process.deliver(kind, message)
        await process.crash()
        self.open = True

    def parked(self, place: EntityRef, message: str) -> ParkedMessage | None:
        return parked(self, place, message)

    def reason(self, place: EntityRef, message: str) -> str | None:
        """Why a message was parked; None if it is not parked."""
        found = self.parked(place, message)
        return None if found is None else found.reason

    @property
    def queue(self) -> Sequence[Output]:
        """The messages that were returned, as their queue got them."""
        return self.transport.queues["accounts"]

    @property
    def returned(self) -> list[Envelope]:
        return [Envelope.read(output.envelope.text) for output in self.queue]
