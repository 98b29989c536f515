"""The wiring of an application: makes the parts, and shares publishers, drivers and books among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from exactlyonce.drivers.book import Books
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime, StoreTime
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.errors import TryAgainLater
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import encode
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.hosting.accounts.port import Accounts, Startup
from exactlyonce.hosting.caller import Caller
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Returner, Settler
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.hosting.requests.asker import Asker
from exactlyonce.hosting.requests.opened_door import Requests
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.hosting.upkeep.sweeper import Sweeper
from exactlyonce.records.library import PROVED_WITHIN
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import Envelope, key_of, message_key
from exactlyonce.values.raised import Show, shown

# The sender: sends messages from outside of handlers.


@dataclass(frozen=True)
class Sender:
    """Sends messages of registered types under the caller's ids."""

    publisher: Publisher
    routes: Routes
    claims: ClaimChecks
    runtime: Runtime

    async def send(
        self, destination: str, message: object, message_id: str, source: str, time: datetime | None = None
    ) -> None:
        """Send a message; documented at `ExactlyOnce.send`."""
        stable = destination in self.routes.stable
        if time is None and stable:
            raise ValueError(
                f"Message {message_key(source, message_id)} for {destination!r} has no time=. A destination with "
                "stable_time=True needs the time when the message came about, the same in every copy."
            )
        if time is None:
            time = self.runtime.clock.now()
        elif time.utcoffset() is None:
            raise ValueError(f"The time of message {message_key(source, message_id)} has no time zone. Give it one.")
        name, data = encode(message)
        session = self.routes.session(destination, message)
        envelope = Envelope(source, message_id, name, data, time, extensions=session)
        if stable:
            envelope = envelope.with_stable_time()
        with self.runtime.observer_slot.sending(destination, key_of(envelope)) as trace:
            await self._send(destination, envelope.with_trace(trace))

    async def _send(self, destination: str, envelope: Envelope) -> None:
        wire = envelope.to_json()
        if self.routes.blobs is not None and self.routes.is_too_large(destination, wire.size):
            wire = (await self.claims.left(envelope)).to_json()
        wire = Envelope.read(wire.text).to_json()  # Raises for an envelope that no receiver could read.
        self.routes.check(destination, wire.size)
        output = Output(key_of(envelope), destination, wire)
        if await self.publisher.publish(Publish((output,))) is not PUBLISHED:
            raise TryAgainLater(f"Message {key_of(envelope)} may not have been sent. Send it again under the same id.")


SWEEP_TRIES: Final = 3
"""Tries of the sweeper on one entity. The sweeper runs every minute, so few tries are enough."""


@dataclass(frozen=True)
class Parts:
    """The parts of one application.

    Attributes:
        driver: performs the effects of processing.
        retrying: limits the tries of a delivery in number and time.
        maintenance: tends, replays and reads single entities.
        texts: whether the texts of exceptions outside of the library may be logged.
        show: reduces an exception to the part that may be logged.
    """

    resources: Accounts
    startup: Startup
    routes: Routes
    driver: AsyncDriver
    books: Books
    retrying: Retrying
    lanes: Lanes
    receiver: Receiver
    asker: Asker
    requests: Requests
    caller: Caller
    sender: Sender
    poison: PoisonSettler
    sweeper: Sweeper
    maintenance: Maintenance
    operator: Operator
    texts: bool
    show: Show


def wire(
    entities: tuple[Entity[Any], ...],
    named: tuple[Destination | Api, ...],
    settings: Settings,
    runtime: Runtime,
    accounts: Callable[[Runtime, Callable[[datetime], None]], Accounts],
) -> Parts:
    """Make the parts of an application. `accounts` takes a runtime, and a callback for the store's time. No client is opened.

    Raises:
        ConfigurationError: settings do not fit the destinations or the connections; the text names all problems.
    """
    destinations = tuple(item.queue if isinstance(item, Api) else item for item in named)
    store_time = StoreTime(runtime.clock)
    runtime = replace(runtime, present=store_time.now)
    resources = accounts(runtime, store_time.compare)
    lifetimes = resources.ownership.lifetimes
    claims, failures = ClaimChecks(resources.blobs), Failures()
    texts = settings.exception_text == "on"
    show = partial(shown, text=texts)
    publisher = Publisher(resources.addresses)
    blob_address = None if resources.blobs is None else resources.blobs.address
    routes = Routes.to(destinations, publisher.limits, settings.delivery_limit, blob_address, entities)
    process, resume, again = _drivers(resources, publisher, runtime)
    books = process.books
    books.within = settings.proved_within or PROVED_WITHIN
    startup = Startup(resources, runtime, books.end)
    retrying = Retrying(Backoff(seconds=settings.delivery_timeout), runtime.random)
    types = frozenset(entity.name for entity in entities)
    maintenance = Maintenance(again, retrying, routes, lifetimes, types)
    settling = replace(maintenance, driver=resume)
    brief = Retrying(Backoff(tries=SWEEP_TRIES, seconds=settings.delivery_timeout), runtime.random)
    lanes = Lanes(process, retrying, runtime.clock, settings.memory, show=show)
    returner = Returner(settling, claims, runtime.random)
    settler = Settler(settling, failures, returner, lifetimes, ready=startup.ready, now=runtime.clock.now)
    poison = PoisonSettler(settler, claims, show)
    receiver = Receiver(
        lanes, maintenance, claims, failures, poison, startup.begin, startup.ready, lifetimes, store_time.now, show
    )
    return Parts(
        resources=resources,
        startup=startup,
        routes=routes,
        driver=process,
        books=books,
        retrying=retrying,
        lanes=lanes,
        receiver=receiver,
        asker=Asker(receiver, startup.ready, store_time.now),
        requests=Requests(receiver, maintenance),
        caller=replace(_caller(named, resources, routes, startup, runtime), show=show),
        sender=Sender(publisher, routes, claims, runtime),
        poison=poison,
        sweeper=Sweeper(replace(settling, retrying=brief), resources.listing, runtime, show),
        maintenance=maintenance,
        operator=Operator(maintenance, resources.listing, lifetimes, entities),
        texts=texts,
        show=show,
    )


def _caller(
    named: tuple[Destination | Api, ...], resources: Accounts, routes: Routes, startup: Startup, runtime: Runtime
) -> Caller:
    """The caller. It repeats calls on purpose, so its publisher marks every send, and remembers nothing."""
    return Caller(
        apis={item.name: item for item in named if isinstance(item, Api)},
        wire=resources.wire,
        publisher=Publisher(resources.addresses, runtime.new_transaction, remembers=False),
        routes=routes,
        claims=ClaimChecks(resources.blobs),
        begin=startup.begin,
        now=runtime.now,
        random=runtime.random,
        observer_slot=runtime.observer_slot,
    )


def _drivers(
    resources: Accounts, publisher: Publisher, runtime: Runtime
) -> tuple[AsyncDriver, AsyncDriver, AsyncDriver]:
    """Drivers of processing, of settling and sweeping, and of replays: each with its publisher, on the books of the process.

    Replay resends on purpose, so its publisher remembers nothing. Settling and sweeping resume a half-finished publish, so
    their publisher remembers the accepted messages. Both mark every send, or a broker that drops copies would drop the message.
    """
    resuming = Publisher(resources.addresses, runtime.new_transaction)
    replaying = Publisher(resources.addresses, runtime.new_transaction, remembers=False)

    def driver(publisher: Publisher, books: Books | None = None) -> AsyncDriver:
        lifetimes = resources.ownership.lifetimes
        return AsyncDriver(resources.store, publisher, runtime, resources.blobs, lifetimes, books=books)

    process = driver(publisher)
    return process, driver(resuming, process.books), driver(replaying, process.books)
