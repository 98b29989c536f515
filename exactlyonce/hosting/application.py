"""The application: entities, destinations, and the store and queues that settings name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.drivers.store_time import StoreTime
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity, EntityKey
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.hosting.adapters import Adapter
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.config.checks import require_distinct, require_rebuilds
from exactlyonce.hosting.config.connections import Connections, ServiceBusConnection, StorageConnection
from exactlyonce.hosting.config.environment import load_all
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.hosting.event_loop import OneLoop
from exactlyonce.hosting.failures import Failures
from exactlyonce.hosting.maintenance import Maintenance
from exactlyonce.hosting.operator import Operator
from exactlyonce.hosting.ownership import Ownership
from exactlyonce.hosting.poison import PoisonSettler
from exactlyonce.hosting.receiver import Receiver
from exactlyonce.hosting.resources import AzureResources
from exactlyonce.hosting.returner import Returner
from exactlyonce.hosting.sender import Sender
from exactlyonce.hosting.settlement import Outcome, Settler
from exactlyonce.hosting.sweeper import Sweeper, Swept
from exactlyonce.hosting.triggers import Delivered
from exactlyonce.telemetry.discovery import observer_of_this_process

State = TypeVar("State")


class ExactlyOnce:
    """The entry of an application. One per process; clients open on first use.

    Args:
        entities: the entity types whose messages this application processes.
        destinations: where handlers may send to. Names that only `send` and `context.send` use need no types.
        settings: where things are.
        storage: the account for queues and blobs; None if settings name neither.
        service_bus: the namespace for queues and topics; None if settings name none.
        runtime: time and chance.

    Raises:
        ConfigurationError: entities or message types contradict each other, or a setting is missing.
    """

    def __init__(
        self,
        entities: Iterable[Entity[Any]],
        *,
        destinations: Iterable[Destination] = (),
        settings: Settings,
        storage: StorageConnection | None = None,
        service_bus: ServiceBusConnection | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._entities, self._destinations = tuple(entities), tuple(destinations)
        require_distinct(self._entities, self._destinations)
        require_rebuilds(self._entities, self._destinations)
        present = StoreTime((runtime or Runtime()).clock)
        around = self._runtime = replace(runtime or Runtime(), present=present.now)
        joined, connections = (self._entities, self._destinations), Connections(storage, service_bus)
        self._resources = AzureResources(settings, connections, *joined, runtime=around, dated=present.tell)
        self._loop, lifetimes = OneLoop(self._resources.lifetime()), self._resources.ownership.lifetimes
        store, addresses, blobs = self._resources.store, self._resources.addresses, self._resources.blobs
        publisher, claims = Publisher(addresses), ClaimChecks(blobs)
        address = None if blobs is None else blobs.address
        self._routes = Routes.to(self._destinations, publisher.limits, settings.delivery_limit, address)
        self._driver = AsyncDriver(store, publisher, self._runtime, blobs, lifetimes)
        # What is sent beside processing is often sent again on purpose; but who finishes what is owed goes on where it was.
        marks, limit, random = self._runtime.new_transaction, settings.delivery_timeout, self._runtime.random
        again = AsyncDriver(store, Publisher(addresses, marks, remembers=False), self._runtime, blobs, lifetimes)
        finishing = AsyncDriver(store, Publisher(addresses, marks), self._runtime, blobs, lifetimes)
        self._retrying = Retrying(Backoff(seconds=limit), random)
        self._maintenance = Maintenance(again, self._retrying, self._routes)
        failures, clock, ready = Failures(), self._runtime.clock, self._ready
        settling = Maintenance(finishing, self._retrying, self._routes)
        returner = Returner(settling, claims, random)
        poison = PoisonSettler(Settler(settling, failures, returner, lifetimes, ready, clock.now), claims)
        # It comes again every minute, so it need not try for long.
        sweeping = Maintenance(finishing, Retrying(Backoff(tries=3, seconds=limit), random), self._routes)
        self._sweeper = Sweeper(sweeping, self._resources.listing, self._runtime)
        self._sweep_after = timedelta(seconds=settings.sweep_after)
        self._operator = Operator(self._maintenance, self._resources.listing, lifetimes, self._entities)
        self._lanes = Lanes(self._driver, self._retrying, clock, settings.mark_after)
        self._receiver = Receiver(
            self._lanes, self._maintenance, claims, failures, poison, self._begin, ready, lifetimes, present.now
        )
        self._sender = Sender(publisher, self._routes, claims, self._runtime)

    @classmethod
    def from_environment(
        cls, *entities: Entity[Any], destinations: Iterable[Destination] = (), transport: str | None = None
    ) -> ExactlyOnce:
        """An application with the settings of this environment; see `Settings` for their names.

        Its transport may be told (`storage`, `servicebus`) in place of what `EXACTLYONCE__transport` says.
        """
        destinations = tuple(destinations)
        settings, connections = load_all((one.name for one in destinations), transport)
        storage, bus = connections.storage, connections.service_bus
        return cls(entities, destinations=destinations, settings=settings, storage=storage, service_bus=bus)

    async def process(self, message: Delivered, entity: Entity[Any], *, adapter: Adapter | None = None) -> None:
        """Process a message of a storage queue, or of Service Bus. Returning acknowledges it; raising gives it back.

        Args:
            message: as the trigger delivers it.
            entity: the type whose handlers take this queue's messages.
            adapter: makes an envelope of a body that is none.

        Raises:
            ExactlyOnceError: naming message and entity; what was changed, if anything, is known to the next delivery.
        """
        self._require_own(entity)
        await self._receiver.take(message, entity, adapter)

    async def process_batch(
        self,
        messages: Sequence[Delivered],
        entity: Entity[Any],
        *,
        queue: str,
        adapter: Adapter | None = None,
        give_up_after: int = 5,
    ) -> None:
        """Process the messages of a trigger with `cardinality="many"`. Those for one entity share commits.

        The host acknowledges all of them or none. So those that are done come again with one that failed, are known, and cost
        a look each. What has come too often is not processed any more but settled, as by `settle`: the others are rid of it.

        Args:
            messages: as the trigger delivers them.
            entity, queue, adapter: as for `settle`.
            give_up_after: deliveries in which a message is processed; later ones settle it. Some below `maxDeliveryCount`.

        Raises:
            ExactlyOnceError: of the class of the first that failed; all of them come again.
        """
        self._require_own(entity)
        await self._receiver.take_all(messages, entity, queue, adapter, give_up_after)

    async def settle(
        self, message: Delivered, entity: Entity[Any], *, queue: str, adapter: Adapter | None = None
    ) -> Outcome:
        """Decide about a message that its queue gave up on. Returning acknowledges it.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`, or a subscription's.
        What was processed is finished: its outputs are published. What failed because the store, a queue or settings did goes
        back to its queue, later each time, until it is too old; so does, for some rounds, what this process did not see fail.
        The rest is parked with the reason, and so is what cannot be read: `python -m exactlyonce.cli` shows it.

        Args:
            message: as the trigger delivers it.
            entity: the type whose handlers take the queue's messages.
            queue: the destination whose queue they come from.
            adapter: that the queue's function uses.

        Raises:
            TryAgainLater, ConfigurationError: neither store nor queue answered, or there is no such destination. It stays.
        """
        self._require_own(entity)
        await self._begin()
        return await self._receiver.poison.settle(entity, message, queue, adapter)

    async def sweep(
        self, entity: Entity[Any] | None = None, older_than: timedelta | None = None, limit: int = 1_000
    ) -> Swept:
        """Publish what has been owed for long, and look after read models that are stuck: for a timer, every minute.
        It may run at any time, on several instances. An entity that fails does not stop the others.

        Args:
            entity: whose entities; None for all types.
            older_than: for how long they have owed; None for what settings say.
            limit: most entities to look after.

        Raises:
            ConfigurationError: there is no such entity, the limit is below 1, or the accounts are not as they have to be.
            TryAgainLater: the accounts could not be asked.
        """
        if limit < 1:
            raise ConfigurationError(f"A sweep looks after 1 entity at least; its limit is {limit}.")
        if entity is not None:
            self._require_own(entity)
        await self._ready()
        chosen = self._entities if entity is None else (entity,)
        return await self._sweeper.sweep(chosen, self._sweep_after if older_than is None else older_than, limit)

    @property
    def entities(self) -> tuple[Entity[Any], ...]:
        """The entity types whose messages this application processes."""
        return self._entities

    async def operator(self) -> Operator:
        """What people do about single entities and parked messages.

        Raises:
            ConfigurationError, TryAgainLater: the accounts are not as they have to be, or could not be asked.
        """
        await self._ready()
        return self._operator

    async def ownership(self) -> Ownership:
        """Whose the library's container is; it answers also where that refuses this application. Raises as `operator`."""
        await self._begin()
        await self._resources.verify()
        return self._resources.ownership

    async def tend(self, entity: Entity[Any], key: str | EntityKey) -> None:
        """Do what is to be done about the gaps of a read model, and release what can be. For timers and operators.

        Raises:
            ConfigurationError: the entity is no resequenced read model.
            TryAgainLater: the store or a queue did not answer.
            HandlerError: the handler of a held message still raises; the message stays held.
        """
        await self._ready()
        finished = await self._maintenance.tend(entity, entity.ref(key))
        for _, error in finished.stopped:
            raise error

    async def replay(self, entity: Entity[Any], key: str | EntityKey, first: int, last: int) -> int:
        """Send again what a stream sent in these versions, with the ids and numbers it had; return how many messages.

        Raises:
            ConfigurationError, TryAgainLater: the entity keeps no version stream; the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give what it gave before.
        """
        await self._ready()
        return await self._maintenance.replay(entity, entity.ref(key), (first, last))

    async def send(
        self,
        destination: str,
        message: object,
        *,
        message_id: str,
        source: str = "external",
        time: datetime | None = None,
    ) -> None:
        """Send a message from outside of any handler. What is too large for its queue travels as a blob, if there can be any.

        Who sends a message again under its id should give the time of the first. Without one, copies that are sent further
        apart than the retention less a day are processed as two messages: the record of the first may be gone by then.

        Args:
            destination: logical name.
            message: an instance of a registered message type.
            message_id: the caller's id; the same id (and source) means the same message, however often it is sent.
            source: who sends it.
            time: when it came about, with a time zone; the present if not given.

        Raises:
            UnknownDestination, OutputTooLarge, ValueError: as `context.send` does; or the time has no time zone.
            TryAgainLater: whether the queue, or the container for blobs, took it is not known; send it again under the same id.
        """
        await self._begin()
        await self._sender.send(destination, message, message_id, source, time)

    async def read(self, entity: Entity[State], key: str | EntityKey) -> State | None:
        """The state of an entity as some replica has it, for showing; None if it is absent or deleted.

        Raises:
            TryAgainLater: the store did not answer.
            StoredDataError: the document does not fit the state model.
        """
        ref = entity.ref(key)
        await self._ready()
        return await self._maintenance.state(entity, ref)

    async def _ready(self) -> None:
        await self._begin()
        await self._resources.ready()

    def _require_own(self, entity: Entity[Any]) -> None:
        if entity not in self._entities:
            raise ConfigurationError(f"{entity} is not among the entities this application was made with.")

    async def _begin(self) -> None:
        await self._loop.require()
        self._runtime.observer_slot.look(lambda: observer_of_this_process(self._runtime.clock.now))

    async def quiesce(self) -> None:
        """Finish what is under way, and mark at once what was published. For scripts and measurements."""
        await self._lanes.quiesce()

    async def close(self) -> None:
        """Finish what is under way, mark what was published, close the clients."""
        await self._lanes.quiesce()
        await self._resources.close()
