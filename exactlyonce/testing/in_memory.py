"""An application on accounts in memory, and the host that delivers its messages, on virtual time."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, Final

from azure.functions.queue import QueueMessage

from exactlyonce.attempt import key_of
from exactlyonce.blobs.memory import AwaitedBlobs, MemoryBlobs
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.port import Awaited
from exactlyonce.effects.publish import PUBLISHED
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.ownership import Declared, Ownership
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outputs import Output
from exactlyonce.stores.application import MemoryApplicationStore
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.loop import VirtualClock, VirtualLoop
from exactlyonce.testing.services import Service
from exactlyonce.testing.wire import CALLED, MemoryWire
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import Envelope

MOST_DELIVERIES: Final = 5
"""Deliveries after which a queue gives a message up, as `maxDequeueCount` of host.json says by default."""
MINUTE: Final = 60.0
"""Seconds between two runs of the sweeper."""
_MAX_BYTES: Final = 48 * 1024
_MEMORY: Final = "https://memory.invalid"


class Queues:
    """Queues in memory: they take everything, and tell the host.

    Args:
        arrived: called with the destination and each output.
    """

    max_bytes = _MAX_BYTES

    def __init__(self, arrived: Callable[[str, Output], None]) -> None:
        self._arrived = arrived

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        for output in outputs:
            self._arrived(address, output)
        return PUBLISHED


class MemoryAccounts:
    """Store, queues and blobs in memory: `Accounts` of an application.

    Args:
        settings: of the application.
        entities, destinations: of the application.
        clock: of the accounts.
        queues: of all destinations.
        wire: to the services that it calls.
        blobs: whether there is a container for blobs.
    """

    def __init__(
        self,
        settings: Settings,
        entities: Iterable[Entity[Any]],
        destinations: Iterable[Destination | Api],
        clock: Clock,
        *,
        queues: Queues,
        wire: MemoryWire,
        blobs: bool,
    ) -> None:
        self.documents = MemoryStore(clock.now)
        self.store = Awaited(self.documents)
        self.listing = MemoryListing(self.documents)
        self.ownership = Ownership(MemoryApplicationStore(clock.now), Declared.by(settings, entities), clock)
        self.addresses = {one.name: Address(queues, one.name) for one in destinations}
        self.blobs = AwaitedBlobs(MemoryBlobs(clock.now), f"{_MEMORY}/blobs") if blobs else None
        self.wire = wire

    async def ready(self) -> None:
        await self.ownership.ready()

    async def verify(self) -> None:
        pass

    async def lifetime(self) -> AsyncGenerator[None, None]:
        yield

    async def close(self) -> None:
        pass


@dataclass(eq=False)
class Delivery:
    """A message in a queue.

    Attributes:
        entity: the type whose handlers take it; None for a call.
        destination: the queue.
        body: the envelope, as JSON.
        times: how often it was delivered.
    """

    entity: Entity[Any] | None
    destination: str
    body: str
    times: int = 0

    @property
    def envelope(self) -> Envelope:
        """The message itself."""
        return Envelope.read(self.body)

    def message(self) -> QueueMessage:
        """The message as a trigger gets it."""
        return QueueMessage(id=f"{self.destination}-1", body=self.body, dequeue_count=self.times)  # type: ignore[no-untyped-call]


class Host:
    """Runs an application in memory: one delivery at a time, and a sweeper every minute. Nobody waits for a call.

    A message that fails goes to the end of the line, and is given up after `MOST_DELIVERIES`.

    Args:
        entities, destinations: of the application.
        services: by the name of an `Api` the function in its place.
        takers: by destination the entity type whose handlers take its messages. Others keep what arrives.
        start: the time of day at the start.
        blobs: whether there is a container for blobs.

    Attributes:
        once: the application.
        loop, clock: its time.
        wire: to the services that it calls.
        sent: by destination the distinct messages that arrived, by source and id.
        failures: why messages were given up, in order.
        twice: chance that orders deliveries, each of which comes twice; None while each comes once, in order.
        takers: as given.
        apis: the services that it calls, by name.
        parts: of the application.
        delayed: deliveries whose time has not come.
        calling: those of calls that are under way.
    """

    def __init__(
        self,
        entities: tuple[Entity[Any], ...],
        destinations: tuple[Destination | Api, ...],
        services: Mapping[str, Service],
        takers: Mapping[str, Entity[Any]],
        start: datetime,
        *,
        blobs: bool,
    ) -> None:
        self.loop = VirtualLoop(sys.maxsize)  # type: ignore[abstract]  # It has no I/O.
        self.clock = VirtualClock(self.loop, start=start)
        settings = Settings.model_construct(account_endpoint=_MEMORY, database="memory", delivery_timeout=MINUTE)
        self.wire = MemoryWire(services, self.clock)
        self.accounts = MemoryAccounts(
            settings,
            entities,
            destinations,
            self.clock,
            queues=Queues(self._arrived),
            wire=self.wire,
            blobs=blobs,
        )
        random = Random(0)
        runtime = Runtime(self.clock, random, lambda: f"{random.getrandbits(128):032x}")
        self.once = ExactlyOnce(
            entities, destinations=destinations, settings=settings, runtime=runtime, accounts=self.accounts
        )
        self.parts = self.once._parts  # noqa: SLF001
        self.sent: dict[str, dict[str, Envelope]] = {one.name: {} for one in destinations}
        self.failures: list[Exception] = []
        self.twice: Random | None = None
        self.delayed: list[Delivery] = []
        self.calling: list[Delivery] = []
        self.takers = takers
        self.apis = {one.name: one for one in destinations if isinstance(one, Api)}
        self._waiting: list[Delivery] = []
        self._delivering = False
        self._at_rest = -1
        self.loop.run(self.once.sweep())  # Starts the application; one that is swept may answer.
        self.loop.call_later(MINUTE, self._every_minute)

    async def take(self, entity: Entity[Any], envelope: Envelope) -> None:
        """Process a message that is in no queue. Raises `ExactlyOnceError`."""
        await self.once.process(Delivery(entity, entity.name, envelope.to_json().text, times=1).message(), entity)

    async def parked(self) -> tuple[ParkedMessage, ...]:
        """All parked messages, with their bodies."""
        operator = await self.once.operator()
        listed = [one async for page in operator.parked() for one in page]
        found = [await operator.parked_message(one.entity, one.message) for one in listed]
        return tuple(one for one in found if one is not None)

    async def redeemed(self, envelope: Envelope) -> Envelope:
        """A message with its data, which may be in a blob."""
        claims = ClaimChecks(self.accounts.blobs)
        return await claims.redeemed(envelope) if claims.claims(envelope) else envelope

    async def replies(self, destination: str, call: Envelope) -> tuple[Output, ...]:
        """The replies that a call may get now: its answer, if that is final, and that its outcome is unknown. None is sent.

        Raises:
            ConfigurationError: no function stands for the service. Whatever that function raises but `OSError`.
        """
        self._require_service(destination)
        sent: list[Output] = []
        queues = Queues(lambda _, output: sent.append(output))
        publisher = Publisher({name: Address(queues, name) for name in self.sent}, remembers=False)
        wire = MemoryWire(self.wire.services, self.clock)
        caller = replace(self.parts.caller, publisher=publisher, wire=wire, random=Random(0))
        message = Delivery(None, destination, call.to_json().text, times=1).message()
        CALLED.set(self.apis[destination])
        await caller.take(message)
        for error in wire.errors:
            raise error
        await replace(caller, apis={}).settle(message)
        return tuple(one for one in sent if one.destination != destination)

    def _require_service(self, name: str) -> None:
        if name not in self.wire.services:
            raise ConfigurationError(
                f"A handler called {name!r}, and no service stands for it: name one in apis= of App."
            )

    def _arrived(self, destination: str, output: Output) -> None:
        envelope = Envelope.read(output.envelope.text)
        self.sent[destination].setdefault(key_of(envelope), envelope)
        taker = self.takers.get(destination)
        if taker is not None or destination in self.apis:
            # A call that comes again comes once, or each of its tries would double its copies.
            twice = self.twice is not None and not (taker is None and envelope.requeued)
            for _ in range(1 + twice):
                delivery = Delivery(taker, destination, output.envelope.text)
                self.delayed.append(delivery)
                self.loop.call_later(output.delay, self._appear, delivery)

    def _appear(self, delivery: Delivery) -> None:
        self.delayed.remove(delivery)
        self._line_up(delivery)

    def _line_up(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        if not self._delivering:
            self._delivering = True
            self.loop.create_task(self._deliver_all())

    async def _deliver_all(self) -> None:
        try:
            while self._waiting:
                place = 0 if self.twice is None else self.twice.randrange(len(self._waiting))
                delivery = self._waiting.pop(place)
                if delivery.entity is None:
                    self.loop.create_task(self._deliver(delivery))
                else:
                    await self._deliver(delivery)
        finally:
            self._delivering = False

    async def _deliver(self, delivery: Delivery) -> None:
        delivery.times += 1
        try:
            await self._process(delivery)
        except ExactlyOnceError as error:
            if delivery.times < MOST_DELIVERIES:
                self._line_up(delivery)
            else:
                await self._give_up(delivery, error)

    async def _process(self, delivery: Delivery) -> None:
        if delivery.entity is not None:
            await self.once.process(delivery.message(), delivery.entity)
        else:
            self._require_service(delivery.destination)
            CALLED.set(self.apis[delivery.destination])
            self.calling.append(delivery)
            try:
                await self.once.call(delivery.message())
            finally:
                self.calling.remove(delivery)

    async def _give_up(self, delivery: Delivery, error: ExactlyOnceError) -> None:
        poison = Delivery(delivery.entity, delivery.destination, delivery.body, times=1).message()
        try:
            if delivery.entity is None:
                await self.once.settle_call(poison)
                self.failures.append(error)
            elif await self.once.settle(poison, delivery.entity, queue=delivery.destination) == "parked":
                self.failures.append(error)
        except ExactlyOnceError as unsettled:
            self.failures.append(unsettled)

    def _every_minute(self) -> None:
        self.loop.call_later(MINUTE, self._every_minute)
        if self.accounts.documents.writes != self._at_rest:
            self.loop.create_task(self._sweep())

    async def _sweep(self) -> None:
        await self.once.sweep()
        if not await self._is_unfinished():
            self._at_rest = self.accounts.documents.writes  # Until the next write there is nothing to sweep.

    async def _is_unfinished(self) -> bool:
        listing, end = self.accounts.listing, datetime.max.replace(tzinfo=self.clock.now().tzinfo)
        for entity in self.once.entities:
            for listed in (listing.owing, listing.holding):
                async for page in listed(entity.name, end):
                    if page:
                        return True
        return False
