"""The application as its functions, timers and scripts see it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import azure.functions as func

from exactlyonce.drivers.observer import Observer
from exactlyonce.drivers.retry import Runtime
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey
from exactlyonce.handling.routes import Destination, Model, Routes, name_of
from exactlyonce.hosting.accounts.ownership import Ownership
from exactlyonce.hosting.accounts.port import Accounts, Needs
from exactlyonce.hosting.accounts.resources import AzureResources
from exactlyonce.hosting.config.checks import (
    require_announced,
    require_destinations,
    require_distinct,
    require_rebuilds,
)
from exactlyonce.hosting.config.connections import Connections, ServiceBusConnection, StorageConnection
from exactlyonce.hosting.config.settings import Settings, load_all
from exactlyonce.hosting.deliveries.settlement import Outcome
from exactlyonce.hosting.deliveries.triggers import Adapter, Delivered, told
from exactlyonce.hosting.operators.operator import Operator
from exactlyonce.hosting.requests.asker import Answered, Keys, Request, require_answers
from exactlyonce.hosting.requests.door import Door
from exactlyonce.hosting.requests.opened_door import OpenedDoor, require_requests
from exactlyonce.hosting.upkeep.sweeper import EVERY_MINUTE, Swept, register_sweeper
from exactlyonce.hosting.wiring import Parts, wire
from exactlyonce.stores.port import AsyncListing, Condition
from exactlyonce.values.declarations import declared
from exactlyonce.values.envelope import PartitionValue

# Queries of entities: what is there, without tombstones and the library's own documents.


State = TypeVar("State")


async def queried(
    listing: AsyncListing,
    entity: Entity[State],
    condition: Condition,
    partition: PartitionValue | tuple[PartitionValue, ...] | None,
) -> AsyncIterator[tuple[EntityKey, State]]:
    """As `ExactlyOnce.query`, which documents it."""
    within = partition if isinstance(partition, tuple) or partition is None else (partition,)
    if within is not None and len(within) != len(entity.paths):
        raise ConfigurationError(
            f"Entity {entity.name!r} has the partition key {', '.join(entity.paths)}; partition= has {len(within)} value(s)."
        )
    async for page in listing.bodies(entity.name, condition, within):
        for ref, body in page:
            yield EntityKey(ref.id, ref.partition), entity.shape.read(ref, body)


# The part of an application that looks after single entities.


class SingleEntities:
    """An application whose read models may have gaps, and whose streams may send again."""

    _parts: Parts

    async def tend(self, entity: Entity[Any], key: str | EntityKey) -> None:
        """Handle the gaps of a read model, and release the messages that can be released. For timers and operators.

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
        """Send the outputs of a stream's versions again, with their ids and numbers; return how many messages were sent.

        Raises:
            ConfigurationError: the entity keeps no version stream.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give the outputs that it gave before.
        """
        await self._parts.startup.ready()
        return await self._parts.maintenance.replay(entity, entity.ref(key), (first, last))


# The part of an application that serves requests which callers open.


class OpenedRequests:
    """An application that other services call: OPEN, POST, GET, DELETE."""

    _parts: Parts

    @told
    async def open_request(self, request: func.HttpRequest, entity: Entity[Any], message: object) -> func.HttpResponse:
        """Open a request: store its message, and give it an address. Nothing is carried out yet.

        The response is 201 with the address in `Location`, which `serve_request` serves. A request that is opened and never
        carried out is deleted by clean-up. Errors are problem+json.

        Args:
            request: as the trigger gives it; its path is the collection that the address lies in.
            entity: the type whose handler takes the message; its strategy is `Outbox`.
            message: as for `answer`.

        Raises:
            ConfigurationError: no timer sweeps this application, or the entity has another strategy.
        """
        self._require_served(entity)
        return await OpenedDoor(self._parts.requests, self._parts.show).open(request, entity, message)

    @told
    async def serve_request(
        self, request: func.HttpRequest, entity: Entity[Any], key: str | EntityKey
    ) -> func.HttpResponse:
        """Serve a request that was opened, at the address that opening it gave.

        POST carries it out, once however often it comes and however late, and answers with what the handler replied; GET gives
        the answer once more, or 409 while there is none, and HEAD the same without a body; DELETE closes the request. From then
        on nothing is known of it, and all of them answer 404, but DELETE 204. Other methods are 405 with `Allow`.

        Args:
            request: as the trigger gives it; the route has a parameter `request`.
            entity: the type whose handler takes the message.
            key: of the entity, from the route.

        Raises:
            ConfigurationError: as `open_request` does; or the route has no parameter `request`.
        """
        self._require_served(entity)
        return await OpenedDoor(self._parts.requests, self._parts.show).serve(request, entity, key)

    def _require_served(self, entity: Entity[Any]) -> None:
        self._require_swept(entity)
        require_requests(entity)

    def _require_swept(self, entity: Entity[Any]) -> None:
        raise NotImplementedError


# The part of an application that makes calls to other services.


class ServiceCalls:
    """An application whose handlers call other services."""

    _parts: Parts
    _destinations: tuple[Destination, ...]

    @property
    def destinations(self) -> tuple[Destination | Api, ...]:
        """Where handlers may send to, and the services that they may call."""
        apis = self._parts.caller.apis
        return tuple(apis.get(one.name, one) for one in self._destinations)

    @told
    async def call(self, message: Delivered) -> None:
        """Make the call that a handler committed with `context.call`. For the trigger on the queue of an `Api`.

        Returning acknowledges it: its reply was sent, or the call was sent to its queue once more, to be tried again later.

        Args:
            message: as the trigger delivers it.

        Raises:
            TryAgainLater: a queue did not take what was sent. The call comes again, under the same idempotency key.
            InvalidMessage, MalformedMessage: the message is no call.
            ConfigurationError: this application has no such `Api`, or no destination for the reply.
        """
        await self._parts.caller.take(message)

    @told
    async def settle_call(self, message: Delivered) -> None:
        """Decide about a call that its queue gave up on: it returns to its queue while its key is known, and is answered then.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`. The reply has the outcome "unknown".

        Args:
            message: as the trigger delivers it.

        Raises:
            As `call` does; the message stays. A call to an `Api` that this process does not know is answered once its key is
            known no more.
        """
        await self._parts.caller.settle(message)


Sent = TypeVar("Sent", bound=Model)
PROVED_SOON = timedelta(minutes=2)
"""Time within which a process writes its book that answers requests, unless settings say otherwise."""
_ENTITIES = "entity types, which are instances of Entity"
_DESTINATIONS = "destinations, each a Destination, which may lead to an Entity by to=, or an Api"


class ExactlyOnce(ServiceCalls, OpenedRequests, SingleEntities):
    """The entry of an application. Make one per process; its clients open on first use.

    Args:
        entities: the entity types whose messages this application processes.
        destinations: where handlers may send to, and the services that they may call. Destinations that only `send` and
            `context.send` name need no types.
        settings: of the library.
        storage: the account for queues and blobs; None if settings name neither.
        service_bus: the namespace for queues and topics; None if settings name none.
        runtime: time and chance.
        accounts: in place of those that settings name, such as accounts in memory.

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
        self._destinations = tuple(one.queue if isinstance(one, Api) else one for one in named)
        require_distinct(self._entities, self._destinations)
        require_rebuilds(self._entities, self._destinations)
        require_destinations(self._entities, self._destinations)
        require_announced(self._entities, self._destinations)
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
        """An application with the settings of this environment; `Settings` lists their names.

        Args:
            entities, destinations: as for the constructor.
            transport: `storage` or `servicebus`, in place of `EXACTLYONCE__transport`.

        Raises:
            ConfigurationError: naming everything that is missing or wrong.
        """
        destinations = declared("The destinations= of an application", destinations, (Destination, Api), _DESTINATIONS)
        settings, connections = load_all((one.name for one in destinations), transport)
        storage, bus = connections.storage, connections.service_bus
        return cls(entities, destinations=destinations, settings=settings, storage=storage, service_bus=bus)

    @property
    def entities(self) -> tuple[Entity[Any], ...]:
        """The entity types whose messages this application processes."""
        return self._entities

    @property
    def needs(self) -> Needs:
        """What has to exist in its accounts: containers, queues and topics."""
        return Needs.of(self._entities, self._destinations, self._settings)

    @property
    def configuration(self) -> tuple[Settings, Connections]:
        """The settings and connections that it was made with, for tools that look at its accounts."""
        return self._settings, self._connections

    @property
    def routes(self) -> Routes:
        """Its destinations: their limits, and the entities that they lead to."""
        return self._parts.routes

    def observe(self, observer: Observer) -> None:
        """Report to an observer, in place of one for the process's OpenTelemetry SDK. After the first use it has no effect."""
        self._parts.sender.runtime.observer_slot.look(lambda: observer)

    @told
    async def process(self, message: Delivered, entity: Entity[Any], *, adapter: Adapter | None = None) -> None:
        """Process a message of a storage queue, or of Service Bus. Returning acknowledges it; raising gives it back.

        Args:
            message: as the trigger delivers it.
            entity: the type whose handlers take this queue's messages.
            adapter: makes an envelope of a body that is not one.

        Raises:
            ExactlyOnceError: naming message and entity. The next delivery finds whatever this one changed.
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

        The host acknowledges all of them or none. So a message that fails brings the others back as duplicates, each of which
        costs a read. A message that was delivered too often is settled, as by `settle`, so that it no longer fails its batch.

        Args:
            messages: as the trigger delivers them.
            entity, queue, adapter: as for `settle`.
            give_up_after: deliveries in which a message is processed; later deliveries settle it. Set it below the queue's
                `maxDeliveryCount`.

        Raises:
            ExactlyOnceError: of the class of the first failure; all messages come again.
        """
        self._require_own(entity)
        await self._parts.receiver.take_all(messages, entity, queue, adapter, give_up_after)

    @told
    async def settle(
        self, message: Delivered, entity: Entity[Any], *, queue: str, adapter: Adapter | None = None
    ) -> Outcome:
        """Decide about a message that its queue gave up on. Returning acknowledges it.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`, or on that of a subscription.
        A message that was processed is finished: its outputs are published. A message that failed because of the store, a queue
        or settings returns to its queue, after a longer delay each time, until it is too old; so does, for a few rounds, a
        message that this process did not see fail. Any other message is parked with the reason, and so is a message that cannot
        be read: `exactlyonce ops` lists them.

        Args:
            message: as the trigger delivers it.
            entity: the type whose handlers take the queue's messages.
            queue: the destination whose queue the message comes from.
            adapter: the one that the queue's function uses.

        Raises:
            TryAgainLater: neither the store nor the queue answered. The message stays.
            ConfigurationError: there is no such destination. The message stays.
        """
        self._require_own(entity)
        await self._parts.startup.begin()
        return await self._parts.poison.settle(entity, message, queue, adapter)

    @told
    async def sweep(
        self, entity: Entity[Any] | None = None, older_than: timedelta | None = None, limit: int | None = None
    ) -> Swept:
        """Publish what processes that died have left owed, release messages that are due, and tend read models with gaps.

        Call it from a timer, every minute. It may run at any time, on several instances. An entity that fails does not stop the
        others.

        Args:
            entity: the type whose entities are swept; None for all types.
            older_than: how long records beside an entity must have owed outputs, and a read model have held messages; None for
                the setting.
            limit: sweep at most this many entities; None for as many as fit into a minute.

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
        """The owner of the library's container, also where it is not this application. Raises as `operator` does."""
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

        Sending a message again requires the `time` of the first send. Without it, copies that are sent further apart than the
        retention less a day are processed as two messages: the first may be forgotten by then. A destination with
        `stable_time=True` promises that time to receivers, for whom copies are cheaper to know then.

        Args:
            destination: a destination of the application, or its logical name.
            message: an instance of a registered message type.
            message_id: the caller's id; the same id and source mean the same message, however often it is sent.
            source: the sender.
            time: when the message came about, with a time zone; None for the present.

        Raises:
            UnknownDestination, OutputTooLarge, ValueError: as for `context.send`; or the time has no time zone, or is missing
                for a destination with `stable_time=True`.
            TryAgainLater: the queue, or the container for blobs, may not have taken it; send it again under the same id.
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
        """Answer an HTTP request with what the handler of its message replies.

        The header `Idempotency-Key` identifies the request. A retry gets the committed answer, byte for byte; errors are
        problem+json. A key is known for the application's retention, within the entity and the caller.

        Args:
            request: as the trigger gives it.
            entity: the type whose handler takes the message; its strategy keeps answers, as all but `Resequencer` do.
            message: an instance of a registered message type; or a function that makes one, with the content of the body as
                its argument, as `read_json` reads it (None for an empty body), or without arguments. What a body of another
                form makes it raise, such as `ValidationError`, `ValueError` or `KeyError`, is answered with 400. So is a number
                that has more digits than a double keeps, unless the function takes the content.
            scope: the caller; None for the authenticated one, if there is one. Callers do not share keys.
            keys: "uuid7" to take only keys that carry their time: a key that is too old to be known is refused, so none is
                applied twice. "any" takes all keys, and may apply one again after the retention; a UUID of version 7 is judged
                by its time here, too. So give each request a key of its own, and not the id of something older.

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
            entity: the type whose handler takes the message; its strategy keeps answers, as all but `Resequencer` do.
            message: an instance of a registered message type.
            key: the caller's id of the request; with the same source and entity it means the same request.
            fingerprint: of the request as it was sent, at most 128 characters; a retry has the same.
            source: the caller.
            time: when the request came about, the same in every retry; None for the present. Then a key may be applied again
                after the retention. A key that is a UUID of version 7 is judged by the time that it carries.

        Raises:
            KeyReused: another request had the key.
            ValueError: the key, the fingerprint, the source or the time cannot be.
            TooOldToJudge, MessageFromTheFuture: the time does not let anybody judge whether it is a retry.
            TryAgainLater: the outcome is not known. Repeat the request with the same key.
            HandlerError: nothing was changed; the key may be used again.
            ConfigurationError: no timer sweeps, so a caller that does not come back could leave outputs owed; or the entity
                keeps no answers.
        """
        self._require_swept(entity)
        return await self._parts.asker.ask(entity, message, Request(key, fingerprint, source, time))

    def sweep_on(self, app: func.FunctionApp | func.Blueprint, schedule: str = EVERY_MINUTE) -> None:
        """Register a timer that calls `sweep`. An application that answers requests needs one: nobody redelivers a request.

        Args:
            app: the function app, or a blueprint of it.
            schedule: six fields of NCRONTAB.
        """
        register_sweeper(app, self.sweep, schedule)
        self._is_swept = True

    async def read(self, entity: Entity[State], key: str | EntityKey) -> State | None:
        """The state of an entity as some replica has it, for display; None if it is absent or deleted.

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
        **given: Any,
    ) -> AsyncIterator[tuple[EntityKey, State]]:
        """The entities of a type that are there, each with its key, as replicas have them; for display.

        Args:
            entity: the type.
            where: a condition in the SQL of Cosmos DB, with `c` for the document, such as `c.total > @least`. Part of the
                program: never made from what somebody else sends, which goes into parameters.
            partition: the value of the partition key, or its values from the top; None for all, which costs more.
            given: values of the parameters, such as `least=100`.

        Raises:
            ConfigurationError: the store does not take the condition; or the partition has too few values, or too many.
            TryAgainLater: the store did not answer.
            StoredDataError: a document does not fit the state model.
        """
        await self._parts.startup.ready()
        condition = Condition(where, given)
        async for key, state in queried(self._parts.resources.listing, entity, condition, partition):
            yield key, state

    async def quiesce(self) -> None:
        """Finish what is under way, and write down at once what was sent. For scripts and measurements."""
        await self._parts.lanes.quiesce()

    async def close(self) -> None:
        """Finish what is under way, write down that this process has ended, and close the clients."""
        await self._parts.lanes.quiesce()
        await self._parts.books.end()
        await self._parts.resources.close()

    def _require_swept(self, entity: Entity[Any]) -> None:
        self._require_own(entity)
        require_answers(entity)
        if not self._is_swept:
            raise ConfigurationError(
                "Nothing sweeps this application. If a caller does not come back, nobody else would publish what its request "
                "owes. Call once.sweep_on(app) where the functions are declared."
            )
        if self._settings.proved_within is None:
            self._parts.books.within = (
                PROVED_SOON  # Nobody redelivers a request, so the sweeper is not to wait for long.
            )

    def _require_own(self, entity: Entity[Any]) -> None:
        if entity not in self._entities:
            raise ConfigurationError(f"{entity} is not among the entities this application was made with.")
