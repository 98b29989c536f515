"""An application on accounts in memory, and a host that delivers its messages, on virtual time."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from azure.functions.queue import QueueMessage

from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.effect import Awaited
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.accounts.ownership import Declared, Ownership
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Output
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore, MemoryApplicationStore, text_of
from exactlyonce.testing.interruptions import InterruptedStore, Interruptions, Losses
from exactlyonce.testing.loop import VirtualClock, VirtualLoop
from exactlyonce.testing.services import Service
from exactlyonce.testing.wire import CALLED, MemoryWire
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import Envelope, key_of

# Accounts in memory: store, queues and blobs of an application.


MEMORY: Final = "https://memory.invalid"
_MAX_BYTES: Final = 48 * 1024


class Queues:
    """Queues in memory: they take every message, and tell `arrived` of the destination and each output."""

    max_bytes = _MAX_BYTES

    def __init__(self, arrived: Callable[[str, Output], None], interruptions: Interruptions | None = None) -> None:
        self._arrived = arrived
        self._interruptions = interruptions

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        sender, is_entity, _ = Envelope.read(outputs[0].envelope.text).source.partition("/")
        interruptions = self._interruptions if is_entity else None
        happens = None if interruptions is None else interruptions.next(Publish.__name__, sender)
        if interruptions is not None and happens == "before":
            interruptions.kill()
        for output in outputs:
            self._arrived(address, output)
        if interruptions is not None and happens == "after":
            interruptions.kill()
        return PUBLISHED


class MemoryAccounts:
    """Store, queues and blobs in memory: `Accounts` of an application."""

    def __init__(
        self,
        settings: Settings,
        entities: Iterable[Entity[Any]],
        destinations: Iterable[Destination | Api],
        clock: Clock,
        *,
        losses: Losses,
        interruptions: Interruptions | None = None,
        queues: Queues,
        wire: MemoryWire,
        blobs: bool,
    ) -> None:
        self.documents = MemoryStore(clock.now, losses)
        store = Awaited(self.documents)
        self.store: AsyncStore = store if interruptions is None else InterruptedStore(store, interruptions)
        self.listing = MemoryListing(self.documents)
        self.ownership = Ownership(MemoryApplicationStore(clock.now), Declared.by(settings, entities), clock)
        self.addresses = {destination.name: Address(queues, destination.name) for destination in destinations}
        self.blobs = AwaitedBlobs(MemoryBlobs(clock.now), f"{MEMORY}/blobs") if blobs else None
        self.wire = wire

    async def ready(self) -> None:
        await self.ownership.ready()

    async def verify(self) -> None:
        pass

    async def lifetime(self, end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
        del end  # A host in memory kills its processes.
        yield

    async def close(self) -> None:
        pass


Result = TypeVar("Result")
MOST_DELIVERIES: Final = 5
"""Deliveries after which a queue gives a message up: the default of `maxDequeueCount` in host.json."""
MINUTE: Final = 60.0
"""Seconds between two runs of the sweeper."""


@dataclass(eq=False)
class Delivery:
    """A message in a queue, and how often it was delivered. A call is for no entity type."""

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
    """Runs an application in memory: one delivery at a time, and a sweeper every minute. No delivery waits for a call.

    A failed message goes to the end of the line, and is given up after `MOST_DELIVERIES`. So does a message whose process was
    killed; the next process knows only the stored documents.

    Args:
        services: by the name of an `Api` the function in its place.
        takers: by destination the entity type that takes the messages. Any other destination keeps its messages.

    Attributes:
        once, parts: the application of the present process.
        kills: number of times that the process was killed.
        sent: by destination the distinct messages that arrived, by source and id.
        failures: the errors of messages that were given up, in order.
        slow: by destination the delays of the next messages.
        twice: random order of deliveries, each made twice; None for single deliveries in order.
        delayed: deliveries whose time has not come.
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
        settings = Settings.model_construct(
            account_endpoint=MEMORY, database="memory", delivery_timeout=MINUTE, exception_text="on"
        )
        self.wire = MemoryWire(services, self.clock)
        self.losses, self.interruptions, self.kills = Losses(), Interruptions(self.kill), 0
        self.accounts = MemoryAccounts(
            settings,
            entities,
            destinations,
            self.clock,
            losses=self.losses,
            interruptions=self.interruptions,
            queues=Queues(self.arrive, self.interruptions),
            wire=self.wire,
            blobs=blobs,
        )
        random = Random(0)

        def process() -> ExactlyOnce:
            runtime = Runtime(self.clock, random, lambda: f"{random.getrandbits(128):032x}")
            return ExactlyOnce(
                entities, destinations=destinations, settings=settings, runtime=runtime, accounts=self.accounts
            )

        self._process_anew = process
        self.once = process()
        self.parts = self.once._parts  # noqa: SLF001
        self.sent: dict[str, dict[str, Envelope]] = {destination.name: {} for destination in destinations}
        self.failures: list[Exception] = []
        self.slow: defaultdict[str, deque[timedelta]] = defaultdict(deque)
        self.twice: Random | None = None
        self.delayed: list[Delivery] = []
        self._under_way: list[Delivery] = []
        self.takers = takers
        self.apis = {destination.name: destination for destination in destinations if isinstance(destination, Api)}
        self._calls: set[asyncio.Task[None]] = set()
        self._waiting: list[Delivery] = []
        self._delivering = False
        self._at_rest = -1
        self._rests_until: str | None = None
        self.loop.run(self.once.sweep())  # Starts the application; a swept application may answer requests.
        self.loop.call_later(MINUTE, self._every_minute)

    def kill(self) -> None:
        """End the process in the middle of its work, and start another. The book is lost, except for its stored version."""
        self.kills += 1
        self.parts.lanes.abandon()
        self.parts.driver.books.abandon()
        for call in self._calls:
            call.cancel()
        self.once = self._process_anew()
        self.parts = self.once._parts  # noqa: SLF001
        self.loop.create_task(self._sweep())

    async def take(self, entity: Entity[Any], envelope: Envelope) -> None:
        """Process a message without a queue. Raises `ExactlyOnceError`."""
        message = Delivery(entity, entity.name, envelope.to_json().text, times=1).message()
        await self._in_spite_of_kills(lambda: self.once.process(message, entity))

    async def parked(self) -> tuple[ParkedMessage, ...]:
        """All parked messages, with their bodies."""
        operator = await self.once.operator()
        listed = [item async for page in operator.parked() for item in page]
        messages = [await operator.parked_message(item.entity, item.message) for item in listed]
        return tuple(message for message in messages if message is not None)

    async def redeemed(self, envelope: Envelope) -> Envelope:
        """A message with its data, also from a blob."""
        claims = ClaimChecks(self.accounts.blobs)
        return await claims.redeemed(envelope) if claims.claims(envelope) else envelope

    async def replies(self, destination: str, call: Envelope) -> tuple[Output, ...]:
        """The possible replies to a call now: the answer, if final, and the reply for an unknown outcome. None is sent.

        Raises:
            ConfigurationError: no function plays the service. Any exception of the function except `OSError` is raised, too.
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
        over = self.clock.now() + self.apis[destination].key_lifetime + timedelta(seconds=1)
        await replace(caller, now=lambda: over).settle(message)
        return tuple(item for item in sent if item.destination != destination)

    def _require_service(self, name: str) -> None:
        if name not in self.wire.services:
            raise ConfigurationError(
                f"A handler called {name!r}, and apis= of App has no function for it. Name one there."
            )

    @property
    def unprocessed(self) -> tuple[Delivery, ...]:
        """Delayed and waiting messages, messages before their next try, and calls under way."""
        return (*self.delayed, *self._waiting, *self._under_way)

    def has_arrived(self, output: Output) -> bool:
        """Whether a message has reached its queue."""
        return key_of(Envelope.read(output.envelope.text)) in self.sent[output.destination]

    def arrive(self, destination: str, output: Output) -> None:
        """Take a message that was sent to a destination."""
        envelope = Envelope.read(output.envelope.text)
        self.sent[destination].setdefault(key_of(envelope), envelope)
        taker = self.takers.get(destination)
        if taker is not None or destination in self.apis:
            # A repeated call comes once, or each try would double its copies.
            twice = self.twice is not None and not (taker is None and envelope.requeued)
            slow = self.slow[destination].popleft().total_seconds() if self.slow[destination] else 0.0
            for _ in range(1 + twice):
                delivery = Delivery(taker, destination, output.envelope.text)
                self.delayed.append(delivery)
                self.loop.call_later(output.delay + slow, self._appear, delivery)

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
                    call = self.loop.create_task(self._deliver(delivery))
                    self._calls.add(call)
                    call.add_done_callback(self._calls.discard)
                else:
                    await self._deliver(delivery)
        finally:
            self._delivering = False

    async def _deliver(self, delivery: Delivery) -> None:
        delivery.times += 1
        kills = self.kills
        try:
            await self._process(delivery)
        except ExactlyOnceError as error:
            if delivery.times < MOST_DELIVERIES:
                self._line_up(delivery)
            else:
                await self._in_spite_of_kills(partial(self._give_up, delivery, error))
        except asyncio.CancelledError:
            if kills == self.kills:
                raise
            self._line_up(delivery)

    async def _in_spite_of_kills(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work, again for each process that was killed meanwhile."""
        while True:
            kills = self.kills
            try:
                return await work()
            except asyncio.CancelledError:
                if kills == self.kills:
                    raise

    async def _process(self, delivery: Delivery) -> None:
        self._under_way.append(delivery)
        try:
            if delivery.entity is not None:
                await self.once.process(delivery.message(), delivery.entity)
            else:
                self._require_service(delivery.destination)
                CALLED.set(self.apis[delivery.destination])
                await self.once.call(delivery.message())
        finally:
            self._under_way.remove(delivery)

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
        due = self._rests_until is not None and self._rests_until < text_of(self.clock.now())
        if due or self.accounts.documents.writes != self._at_rest:
            self.loop.create_task(self._sweep())

    async def _sweep(self) -> None:
        await self._in_spite_of_kills(self._swept)
        if not await self._is_held():
            # There is nothing to sweep until the next write, debt or due time.
            self._at_rest = self.accounts.documents.writes
            self._rests_until = self.accounts.listing.first_owing()

    async def _swept(self) -> None:
        await self.once.sweep()  # In the present process.

    async def _is_held(self) -> bool:
        """Whether a read model holds a message."""
        end = datetime.max.replace(tzinfo=self.clock.now().tzinfo)
        for entity in self.once.entities:
            async for page in self.accounts.listing.holding(entity.name, end):
                if page:
                    return True
        return False
