"""The application: the entry for functions, timers and scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import azure.functions as func

from exactlyonce.drivers.observer import Observer
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey
from exactlyonce.handling.routes import Destination, Model, Routes, name_of
from exactlyonce.hosting.accounts.ownership import Ownership
from exactlyonce.hosting.accounts.port import Accounts, Needs
from exactlyonce.hosting.accounts.resources import AzureResources
from exactlyonce.hosting.config.checks import leading_to, receiver_of, require_declared, require_led_to
from exactlyonce.hosting.config.connections import Connections, ServiceBusConnection, StorageConnection
from exactlyonce.hosting.config.functions import EVERY_MINUTE, Served, register_sweeper, require_own_queues
from exactlyonce.hosting.config.settings import Settings, load_all
from exactlyonce.hosting.deliveries.settlement import Outcome
from exactlyonce.hosting.deliveries.triggers import Adapter, Delivered, told
from exactlyonce.hosting.requests.asker import Answered, Keys, Request, require_answers
from exactlyonce.hosting.requests.door import Door
from exactlyonce.hosting.requests.opened_door import OpenedDoor, require_requests
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.hosting.upkeep.sweeper import Swept
from exactlyonce.hosting.wiring import wire
from exactlyonce.stores.port import Condition
from exactlyonce.values.declarations import declared
from exactlyonce.values.envelope import PartitionValue

State = TypeVar("State")
Sent = TypeVar("Sent", bound=Model)
PROVED_SOON = timedelta(minutes=2)
"""Time within which a process that answers requests writes its book, unless settings say otherwise."""
_ENTITIES = "entity types, which are instances of Entity"
_DESTINATIONS = "destinations, each a Destination, which may lead to an Entity by to=, or an Api"


class ExactlyOnce:
    """The entry of an application. Make one per process; its clients open on first use.

    Args:
        entities: the entity types whose messages this application processes.
        destinations: the destinations of handlers, and the services that they may call. Destinations that only `send` and
            `context.send` name need no types.
        settings: the library's settings.
        storage: the account for queues and blobs; None if settings name neither.
        service_bus: the namespace for queues and topics; None if settings name none.
        runtime: time and chance.
        accounts: replaces the accounts that settings name, for example by accounts in memory.

    Raises:
        ConfigurationError: entities or message types contradict each other, or a setting is missing.
    """

    def __init__(
        self,
        entities: Iterable[Entity[Any]],
        *,
        destinations: Iterable[Destination | Api] = (),
        settings: Settings,
        storage: StorageConnection | None = None,
        service_bus: ServiceBusConnection | None = None,
        runtime: Runtime | None = None,
        accounts: Accounts | None = None,
    ) -> None:
        self._entities = declared("The entities of an application", entities, Entity, _ENTITIES)
        named = declared("The destinations= of an application", destinations, (Destination, Api), _DESTINATIONS)
        self._destinations = tuple(item.queue if isinstance(item, Api) else item for item in named)
        require_declared(self._entities, self._destinations)
        self._settings = settings
        connections = self._connections = Connections(storage, service_bus)

        def opened(runtime: Runtime, dated: Callable[[datetime], None]) -> Accounts:
            declared = self._entities, self._destinations
            return accounts or AzureResources(settings, connections, *declared, runtime=runtime, dated=dated)

        self._parts = wire(self._entities, named, settings, runtime or Runtime(), opened)
        self._is_swept = False

    @classmethod
    def from_environment(
        cls, *entities: Entity[Any], destinations: Iterable[Destination | Api] = (), transport: str | None = None
    ) -> ExactlyOnce:
        """An application with the settings of the environment; `Settings` lists the names.

        Args:
            entities, destinations: as for the constructor.
            transport: `storage` or `servicebus`; overrides `EXACTLYONCE__transport`.

        Raises:
            ConfigurationError: naming every missing or wrong setting.
        """
        destinations = declared("The destinations= of an application", destinations, (Destination, Api), _DESTINATIONS)
        settings, connections = load_all((destination.name for destination in destinations), transport)
        storage, bus = connections.storage, connections.service_bus
        return cls(entities, destinations=destinations, settings=settings, storage=storage, service_bus=bus)

    @property
    def entities(self) -> tuple[Entity[Any], ...]:
        """The entity types whose messages this application processes."""
        return self._entities

    @property
    def destinations(self) -> tuple[Destination | Api, ...]:
        """The destinations of handlers, and the services that handlers may call."""
        apis = self._parts.caller.apis
        return tuple(apis.get(destination.name, destination) for destination in self._destinations)

    @property
    def needs(self) -> Needs:
        """The containers, queues and topics that the application requires."""
        return Needs.of(self._entities, self._destinations, self._settings)

    @property
    def configuration(self) -> tuple[Settings, Connections]:
        """The settings and connections of the application, for tools that examine its accounts."""
        return self._settings, self._connections

    @property
    def routes(self) -> Routes:
        """The destinations: limits, and the entities that they lead to."""
        return self._parts.routes

    def observe(self, observer: Observer) -> None:
        """Report to an observer, not to the process's OpenTelemetry SDK. After the first use this has no effect."""
        self._parts.sender.runtime.observer_slot.look(lambda: observer)

    @told
    async def process(self, message: Delivered, entity: Entity[Any], *, adapter: Adapter | None = None) -> None:
        """Process a message of a storage queue, or of Service Bus. Returning acknowledges the message; raising gives it back.

        Args:
            message: the message as the trigger delivers it.
            entity: the type whose handlers take the queue's messages.
            adapter: makes an envelope from a body of another format.

        Raises:
            ExactlyOnceError: naming message and entity. The next delivery continues from the stored documents.
        """
        self._require_own(entity)
        await self._parts.receiver.take(message, entity, adapter)

    @told
    async def process_batch(
        self,
        messages: Sequence[Delivered],
        entity: Entity[Any],
        *,
        queue: str,
        adapter: Adapter | None = None,
        give_up_after: int = 5,
    ) -> None:
        """Process the messages of a trigger with `cardinality="many"`. Messages for one entity share commits.

        The host acknowledges all messages or none. So a failing message brings all messages of the batch back, processed
        messages as duplicates at the cost of a read each. A message with too many deliveries is settled, as by `settle`, and no
        longer fails its batch.

        Args:
            messages: the messages as the trigger delivers them.
            entity, queue, adapter: as for `settle`.
            give_up_after: the number of deliveries in which a message is processed; later deliveries settle it. Set it below
                the queue's `maxDeliveryCount`.

        Raises:
            ExactlyOnceError: of the class of the first failure; all messages come again.
        """
        self._require_own(entity)
        await self._parts.receiver.take_all(messages, entity, queue, adapter, give_up_after)

    @told
    async def settle(
        self, message: Delivered, entity: Entity[Any], *, queue: str, adapter: Adapter | None = None
    ) -> Outcome:
        """Decide about a message that its queue gave up on. Returning acknowledges the message.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`, or on the dead letters of a
        subscription. A processed message is finished: its outputs are published. A message that failed because of the store, a
        queue or settings returns to its queue, after a longer delay each time, until it is too old. A message whose failure
        this process did not see returns for a few rounds. Any other message, also an unreadable message, is parked, for
        `exactlyonce ops` to list with the reason.

        Args:
            message: the message as the trigger delivers it.
            entity: the type whose handlers take the queue's messages.
            queue: the destination of the message's queue.
            adapter: the adapter of the queue's function.

        Raises:
            TryAgainLater: neither the store nor the queue answered. The message stays.
            ConfigurationError: there is no destination of this name. The message stays.
        """
        self._require_own(entity)
        await self._parts.startup.begin()
        return await self._parts.poison.settle(entity, message, queue, adapter)

    @told
    async def call(self, message: Delivered) -> None:
        """Make the call that a handler committed with `context.call`. For the trigger on the queue of an `Api`.

        Returning acknowledges the message: the reply was sent, or the call was sent to its queue once more, for a later try.

        Args:
            message: the message as the trigger delivers it.

        Raises:
            TryAgainLater: a queue did not take the reply or the call. The call comes again, under the same idempotency key.
            InvalidMessage, MalformedMessage: the message is no call.
            ConfigurationError: this application has no such `Api`, or no destination for the reply.
        """
        await self._parts.caller.take(message)

    @told
    async def settle_call(self, message: Delivered) -> None:
        """Decide about a call that its queue gave up on: it returns to its queue for the lifetime of its key; then it is
        answered.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`. The reply has the outcome "unknown".

        Args:
            message: the message as the trigger delivers it.

        Raises:
            As `call` does; the message stays. A call to an `Api` that this process does not have is answered after the lifetime
            of its key.
        """
        await self._parts.caller.settle(message)

    @told
    async def sweep(
        self, entity: Entity[Any] | None = None, older_than: timedelta | None = None, limit: int | None = None
    ) -> Swept:
        """Publish owed outputs of processes that died, release messages that are due, and tend read models with gaps.

        Call `sweep` from a timer, every minute, at any time and on several instances. A failed entity does not stop the run.

        Args:
            entity: the type whose entities are swept; None for all types.
            older_than: the least age of outputs owed by records beside an entity, and of messages held by a read model; None
                for the setting.
            limit: most entities to sweep; None for as many as fit into a minute.

        Raises:
            ConfigurationError: there is no such entity type, the limit is below 1, or an account is not set up as required.
            TryAgainLater: an account did not answer.
        """
        if limit is not None and limit < 1:
            raise ConfigurationError(f"The limit of a sweep has to be at least 1 entity; it is {limit}.")
        if entity is not None:
            self._require_own(entity)
        await self._parts.startup.ready()
        self._is_swept = True
        chosen = self._entities if entity is None else (entity,)
        age = timedelta(seconds=self._settings.sweep_after) if older_than is None else older_than
        return await self._parts.sweeper.sweep(chosen, age, limit, whole=entity is None)

    async def operator(self) -> Operator:
        """Operators' actions on single entities and parked messages.

        Raises:
            ConfigurationError: an account is not set up as required.
            TryAgainLater: an account did not answer.
        """
        await self._parts.startup.ready()
        return self._parts.operator

    async def ownership(self) -> Ownership:
        """The owner of the library's container, which may be another application. Raises as `operator` does."""
        await self._parts.startup.begin()
        await self._parts.resources.verify()
        return self._parts.resources.ownership

    async def send(
        self,
        destination: str | Destination[Sent],
        message: Sent,
        *,
        message_id: str,
        source: str = "external",
        time: datetime | None = None,
    ) -> None:
        """Send a message from outside of handlers. Data too large for its queue travels as a blob, if there is a container.

        To send a message again, give the `time` of the first send. Without it, copies sent further apart than the retention
        less a day are processed as two messages: the first may be forgotten. A destination with `stable_time=True` promises the
        same time in all copies to receivers, which then recognize copies at less cost.

        Args:
            destination: a destination of the application, or its logical name.
            message: an instance of a registered message type.
            message_id: the caller's id; the same id and source mean the same message in every send.
            source: the sender.
            time: the time of the message's event, with a time zone; None for the present.

        Raises:
            UnknownDestination, OutputTooLarge, ValueError: as for `context.send`; or the time has no time zone, or is missing
                for a destination with `stable_time=True`.
            TryAgainLater: the queue, or the container for blobs, may not have taken the message; send it again under the same
                id.
        """
        await self._parts.startup.begin()
        await self._parts.sender.send(name_of(destination), message, message_id, source, time)

    @told
    async def answer(
        self,
        request: func.HttpRequest,
        entity: Entity[Any],
        message: object,
        *,
        scope: str | None = None,
        keys: Keys = "any",
    ) -> func.HttpResponse:
        """Answer an HTTP request with the reply of the message's handler.

        The header `Idempotency-Key` identifies the request. A retry gets the committed answer, byte for byte; errors are
        problem+json. A key is recognized for the application's retention, within the entity and the caller.

        Args:
            request: the request as the trigger gives it.
            entity: the type whose handler takes the message; any strategy except `Resequencer` keeps answers.
            message: an instance of a registered message type; or a function that makes the message, with an argument for the
                content of the body, as `read_json` reads it (None for an empty body), or without arguments. Exceptions of the
                function for an unexpected body, such as `ValidationError`, `ValueError` or `KeyError`, are answered with 400.
                So is a number with more digits than a double keeps, unless the function takes the content.
            scope: the caller; None for the authenticated caller, if there is one. Callers do not share keys.
            keys: "uuid7" to take only keys that carry their time: a key too old to be recognized is refused, so none is
                applied twice. "any" takes all keys, and may apply a key again after the retention; a UUID of version 7 is
                judged by its time here, too. So give each request a fresh key, not the id of an older thing.

        Raises:
            ConfigurationError: as `ask` does.
        """
        self._require_swept(entity)
        return await Door(self._parts.asker, self._parts.show).answer(request, entity, message, scope, keys)

    @told
    async def ask(
        self,
        entity: Entity[Any],
        message: object,
        *,
        key: str,
        fingerprint: str,
        source: str = "external",
        time: datetime | None = None,
    ) -> Answered:
        """Process a message without a queue, and return the committed answer of its handler.

        Args:
            entity: the type whose handler takes the message; any strategy except `Resequencer` keeps answers.
            message: an instance of a registered message type.
            key: the caller's id for the request; with the same source and entity it means the same request.
            fingerprint: a hash of the request as sent, at most 128 characters, the same in every retry.
            source: the caller.
            time: the time of the request, the same in every retry; None for the present. Then a key may be applied again
                after the retention. A key that is a UUID of version 7 is judged by the key's own time.

        Raises:
            KeyReused: another request had the key.
            ValueError: the key, the fingerprint, the source or the time is impossible.
            TooOldToJudge, MessageFromTheFuture: by its time the request cannot be told from a retry.
            TryAgainLater: the outcome is unknown. Repeat the request with the same key.
            HandlerError: nothing was changed; the key may be used again.
            ConfigurationError: no timer sweeps, so outputs could stay owed if the caller does not come back; or the entity
                keeps no answers.
        """
        self._require_swept(entity)
        return await self._parts.asker.ask(entity, message, Request(key, fingerprint, source, time))

    def serve_on(
        self,
        app: func.FunctionApp | func.Blueprint,
        *destinations: Destination | Api,
        sessions: bool = False,
        batches: bool = False,
        subscription: str | None = None,
    ) -> None:
        """Register the functions of all queues that lead here, and a timer as by `sweep_on`, unless there is a timer.

        A destination that leads to an entity type of the application gets `process_<name>` on its queue, and `settle_<name>` on
        its poison queue or dead letters; an `Api` gets `call_<name>` and `settle_<name>`. Transport, connection and queue
        follow the settings. A queue whose function has options, such as an adapter, needs functions of your own: then name all
        other destinations.

        Args:
            app: the function app, or a blueprint of the app.
            destinations: the destinations to serve; none for all that lead here.
            sessions: whether the Service Bus queues that lead to entities have sessions.
            batches: whether functions take messages for entities from Service Bus in batches.
            subscription: the application's subscription, if destinations that lead to entities are topics.

        Raises:
            ConfigurationError: it is unknown which destinations lead here, or where a destination leads; two destinations share
                a queue; or an option does not fit the transport.
        """
        named = declared("The destinations of serve_on", destinations, (Destination, Api), _DESTINATIONS)
        if self._settings.transport == "storage" and (sessions or batches or subscription is not None):
            raise ConfigurationError(
                "sessions=, batches= and subscription= are of Service Bus, and this application is on storage queues. Leave "
                "them out, or set EXACTLYONCE__transport to servicebus."
            )
        if not named:
            require_led_to(self._entities, (item for item in self.destinations if isinstance(item, Destination)))
        chosen = named or leading_to(self._entities, self.destinations)
        served = [self._served(item, sessions, batches, subscription) for item in chosen]
        require_own_queues(served, self._settings)
        for item in served:
            item.register(app, self._settings)
        if not self._is_swept:
            self.sweep_on(app)

    @told
    async def open_request(self, request: func.HttpRequest, entity: Entity[Any], message: object) -> func.HttpResponse:
        """Open a request: store its message, and give it an address. Nothing is carried out yet.

        The response is 201 with the address in `Location`, which `serve_request` serves. Clean-up deletes an opened request
        that is never carried out. Errors are problem+json.

        Args:
            request: the request as the trigger gives it; its path is the collection of the addresses.
            entity: the type whose handler takes the message, with the strategy `Outbox`.
            message: as for `answer`.

        Raises:
            ConfigurationError: no timer sweeps this application, or the entity has another strategy.
        """
        return await self._opened_door(entity).open(request, entity, message)

    @told
    async def serve_request(
        self, request: func.HttpRequest, entity: Entity[Any], key: str | EntityKey
    ) -> func.HttpResponse:
        """Serve an opened request, at the address that `open_request` gave.

        POST carries the request out, exactly once, at any time and in any number of tries, and answers with the reply of the
        handler. GET gives the answer again, or 409 before there is one, and HEAD the same without a body. DELETE closes the
        request; from then on POST, GET and HEAD answer 404, and DELETE 204. Other methods are 405 with `Allow`.

        Args:
            request: the request as the trigger gives it; the route has a parameter `request`.
            entity: the type whose handler takes the message.
            key: key of the entity, from the route.

        Raises:
            ConfigurationError: as `open_request` does; or the route has no parameter `request`.
        """
        return await self._opened_door(entity).serve(request, entity, key)

    def sweep_on(self, app: func.FunctionApp | func.Blueprint, schedule: str = EVERY_MINUTE) -> None:
        """Register a timer that calls `sweep`. An application that answers requests needs the timer: no queue redelivers a
        request.

        Args:
            app: the function app, or a blueprint of the app.
            schedule: six fields of NCRONTAB.
        """
        register_sweeper(app, self.sweep, schedule)
        self._is_swept = True

    async def read(self, entity: Entity[State], key: str | EntityKey) -> State | None:
        """The state of an entity in some replica, for display; None for an absent or deleted entity.

        Raises:
            TryAgainLater: the store did not answer.
            StoredDataError: the document does not fit the state model.
        """
        ref = entity.ref(key)
        await self._parts.startup.ready()
        return await self._parts.maintenance.state(entity, ref)

    async def query(
        self,
        entity: Entity[State],
        where: str = "",
        /,
        *,
        partition: PartitionValue | tuple[PartitionValue, ...] | None = None,
        **parameters: Any,
    ) -> AsyncIterator[tuple[EntityKey, State]]:
        """The present entities of a type, each with its key, as replicas have them; for display.

        Args:
            entity: the type.
            where: a condition in the SQL of Cosmos DB, with `c` for the document, such as `c.total > @least`. The condition is
                part of the program: values from other people go into parameters.
            partition: the value of the partition key, or its values from the top; None for all partitions, at a higher cost.
            parameters: values of the parameters, such as `least=100`.

        Raises:
            ConfigurationError: the store does not take the condition; or the partition has too few or too many values.
            TryAgainLater: the store did not answer.
            StoredDataError: a document does not fit the state model.
        """
        await self._parts.startup.ready()
        within = partition if isinstance(partition, tuple) or partition is None else (partition,)
        if within is not None and len(within) != len(entity.paths):
            raise ConfigurationError(
                f"Entity {entity.name!r} has the partition key {', '.join(entity.paths)}; "
                f"partition= has {len(within)} value(s)."
            )
        async for page in self._parts.resources.listing.bodies(entity.name, Condition(where, parameters), within):
            for ref, body in page:
                yield EntityKey(ref.id, ref.partition), entity.shape.read(ref, body)

    async def tend(self, entity: Entity[Any], key: str | EntityKey) -> None:
        """Handle the gaps of a read model, and release messages without a gap. For timers and operators.

        Raises:
            ConfigurationError: the entity is not a resequenced read model.
            TryAgainLater: the store or a queue did not answer.
            HandlerError: the handler of a held message still raises; the message stays held.
        """
        await self._parts.startup.ready()
        finished = await self._parts.maintenance.tend(entity, entity.ref(key))
        for _, error in finished.stopped:
            raise error

    async def replay(self, entity: Entity[Any], key: str | EntityKey, first: int, last: int) -> int:
        """Send the outputs of a stream's versions again, with the same ids and numbers; return the number of messages.

        Raises:
            ConfigurationError: the entity keeps no version stream.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give the same outputs again.
        """
        await self._parts.startup.ready()
        return await self._parts.maintenance.replay(entity, entity.ref(key), (first, last))

    async def quiesce(self) -> None:
        """Finish the work under way, and write the book at once. For scripts and measurements."""
        await self._parts.lanes.quiesce()

    async def close(self) -> None:
        """Finish the work under way, write the end of the process into its book, and close the clients."""
        await self._parts.lanes.quiesce()
        await self._parts.books.end()
        await self._parts.resources.close()

    def _served(
        self, destination: Destination | Api, sessions: bool, batches: bool, subscription: str | None
    ) -> Served:
        name = destination.name
        if all(name != item.name for item in self._destinations):
            raise ConfigurationError(f"Destination {name!r} is not of this application. Add it to destinations=.")
        if isinstance(destination, Api):
            return Served(name, "call", self.call, self.settle_call)
        entity = receiver_of(destination, self._entities)
        if entity is None:
            raise ConfigurationError(
                f"Destination {name!r} leads to no entity of this application. Give it to=, with an entity type of this "
                "application, or leave it out of serve_on."
            )
        take = partial(self.process_batch, queue=name) if batches else self.process
        settle = partial(self.settle, entity=entity, queue=name)
        return Served(name, "process", partial(take, entity=entity), settle, sessions, batches, subscription)

    def _opened_door(self, entity: Entity[Any]) -> OpenedDoor:
        self._require_swept(entity)
        require_requests(entity)
        return OpenedDoor(self._parts.requests, self._parts.show)

    def _require_swept(self, entity: Entity[Any]) -> None:
        self._require_own(entity)
        require_answers(entity)
        if not self._is_swept:
            raise ConfigurationError(
                "No timer sweeps this application, so outputs of a request would stay owed if its caller does not come back. "
                "Call once.serve_on(app), or once.sweep_on(app), where the functions are declared."
            )
        if self._settings.proved_within is None:
            # No queue redelivers a request, so the sweeper must not wait for long.
            self._parts.books.within = PROVED_SOON

    def _require_own(self, entity: Entity[Any]) -> None:
        if entity not in self._entities:
            raise ConfigurationError(f"{entity} is not among the entities this application was made with.")
