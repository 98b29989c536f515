"""An application in memory, for tests of flows: real handlers, strategies and receiver, on a clock that tests move."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.errors import ConfigurationError, UnknownDestination
from exactlyonce.handling.calls import Api, read_call
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey, decode, encode, model_named
from exactlyonce.handling.routes import Destination, Model, name_of
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.records.ledger import CALL_TYPE, Ledger, entity_document
from exactlyonce.records.outbox import Output
from exactlyonce.testing.interruptions import Lost
from exactlyonce.testing.runner import NOW
from exactlyonce.testing.services import Request, Service, Trouble
from exactlyonce.values.declarations import declared, require, require_callable
from exactlyonce.values.envelope import Envelope

if TYPE_CHECKING:
    from exactlyonce.hosting.application import ExactlyOnce
    from exactlyonce.hosting.requests.asker import Answered
    from exactlyonce.testing.in_memory import Host

State = TypeVar("State")
Sent = TypeVar("Sent", bound=Model)
Result = TypeVar("Result")


class Killed(Exception):
    """The process was killed before the caller had an answer."""


@dataclass(frozen=True)
class Parked:
    """A parked message.

    Attributes:
        entity: key of the entity that the message is for.
        id: key of the message.
        message: the message as sent.
        reason: the reason for parking.
    """

    entity: str
    id: str
    message: Any
    reason: str


class App:
    """An application in memory. It delivers messages as a Functions host does, one at a time, in the order of their arrival.

    The same calls give the same results: time stands still until `advance`, and ids and chance have a seed.

    Args:
        entities: the entity types, as for `ExactlyOnce`.
        destinations: the destinations of handlers, and the services that they may call. A destination with `to=` delivers
            to that entity type; any other destination keeps its messages.
        queues: for destinations without `to=`, the entity types that take their messages.
        apis: for each service that handlers call, the function that plays it. As the `Api` promises, a call with a final
            answer is not carried out again.
        now: the time of day at the start.
        blobs: whether there is a container for blobs, as by the setting `EXACTLYONCE__blobContainer`.

    Attributes:
        host: the host that delivers messages; for tools such as `explore`.

    Raises:
        ConfigurationError: as `ExactlyOnce` does; `queues` names an unknown destination or entity type; `apis` a service
            that is not among the destinations; or a package that an application needs is missing.
    """

    def __init__(
        self,
        *entities: Entity[Any],
        destinations: Iterable[Destination | Api] = (),
        queues: Mapping[str, Entity[Any]] | None = None,
        apis: Mapping[Api, Service] | None = None,
        now: datetime = NOW,
        blobs: bool = False,
    ) -> None:
        try:
            from exactlyonce.testing.in_memory import Host  # noqa: PLC0415  # Loads SDKs of Azure; `run` needs none.
        except ImportError as error:
            raise ConfigurationError(
                f"App(...) needs {error.name}: install exactlyonce[azure], as applications do."
            ) from None

        entities = declared("The entities of an App", entities, Entity, "entity types, which are instances of Entity")
        kinds = (Destination, Api)
        destinations = declared("The destinations= of an App", destinations, kinds, "destinations and services")
        require("now= of an App", now, datetime, "a datetime with a time zone")
        if now.utcoffset() is None:
            raise ConfigurationError("now= of an App has no time zone. Give it one, such as timezone.utc.")
        takers = _takers(entities, [item for item in destinations if isinstance(item, Destination)], queues or {})
        self.host: Host = Host(entities, destinations, _services(destinations, apis or {}), takers, now, blobs=blobs)
        self._queues = {entity.name: name for name, entity in reversed(takers.items())}
        self._models = {name: model for entity in entities for name, model in entity.models.items()}
        self._numbers = count(1)
        self._named: set[tuple[str, str]] = set()

    @property
    def once(self) -> ExactlyOnce:
        """The application, to pass to its functions; await them with `run`."""
        return self.host.once

    @property
    def now(self) -> datetime:
        """The time of day."""
        return self.host.clock.now()

    def send(
        self,
        to: str | Destination[Sent] | Entity[Any],
        message: Sent,
        *,
        message_id: str | None = None,
        source: str = "test",
    ) -> None:
        """Send a message. Deliver it and all messages that follow, except delayed messages.

        Args:
            to: a destination; or an entity type, whose first queue gets the message. Without a queue the type gets it directly.
            message: an instance of a registered message type.
            message_id: the same id and source mean the same message; None for a new message.
            source: the sender.

        Raises:
            ExactlyOnceError: the first message that failed was given up, with the error of its handler as the cause. It was
                delivered as often as a queue does, and is parked; all other messages are delivered.
            Exception: an exception of a function that plays a service, except `OSError`.
            UnknownDestination: there is no destination of this name.
            ConfigurationError: there is no such entity type, or the message is not of a registered type.
        """
        envelope = self.envelope(message, message_id, source)
        name = self._queues.get(to.name) if isinstance(to, Entity) else _name(to)
        if name is not None:
            self.run(self.once.send(name, message, message_id=envelope.id, source=source))
        elif isinstance(to, Entity):
            self.run(self.host.take(to, envelope))

    def given(self, entity: Entity[State], key: str | EntityKey, state: State) -> None:
        """Store an entity with a state, as if made by a message without any other trace.

        Args:
            entity: the entity type.
            key: key of the entity.
            state: the state for the next message. No message is remembered for it, and no message is kept or owed.

        Raises:
            ConfigurationError: the entity exists.
            HandlerFailed, IdentityChanged: the state cannot be stored, as if a handler had returned it.
        """
        ref = entity.ref(key)
        document = entity.shape.write(ref, state, None)
        if isinstance(entity.strategy, Outbox):  # To an Outbox a document without a ledger is damaged.
            document = entity_document(document, Ledger(version=1, type=entity.name, left=1))
        saved = self.host.accounts.documents.save_entity(SaveEntity(ref, document, None))
        if not isinstance(saved, Saved):
            raise ConfigurationError(
                f"Entity {ref} exists, so it cannot begin with another state. Give its state first."
            )

    def envelope(self, message: object, id: str | None = None, source: str = "test") -> Envelope:
        """A message from outside, as an envelope; None for a new id."""
        name, data = encode(message)
        fresh = (number for number in map("m-{}".format, self._numbers) if (source, number) not in self._named)
        id = id or next(fresh)
        self._named.add((source, id))
        return Envelope(source, id, name, data, self.now)

    def ask(self, entity: Entity[Any], message: object, *, key: str | None = None, source: str = "test") -> Answered:
        """Process a message as a request. Return the committed answer, and deliver the messages that follow.

        Args:
            entity: the type whose handler takes the message.
            message: an instance of a registered message type.
            key: the same key and source mean the same request; None for a new request.
            source: the caller.

        Raises:
            As `ExactlyOnce.ask`, and as `send`.
        """
        envelope = self.envelope(message, key, source)
        fingerprint = sha256(f"{envelope.type} {envelope.data.text}".encode()).hexdigest()
        return self.run(self.once.ask(entity, message, key=envelope.id, fingerprint=fingerprint, source=source))

    def advance(self, by: timedelta | None = None, **parts: float) -> None:
        """Move the clock: delayed messages are delivered at their times, and the sweeper runs every minute.

        Args:
            by: the time to advance.
            parts: the parts of a `timedelta` in place of `by`, such as `minutes=15`.

        Raises:
            ExactlyOnceError: as `send` does.
            ValueError: time would go back.
        """
        span = timedelta(**parts) if by is None else by
        if span < timedelta(0):
            raise ValueError(f"Time goes forward only, so it cannot be advanced by {span}.")
        self.host.loop.run_for(span.total_seconds())
        self._raise_failure()

    def run(self, job: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine, such as an HTTP function of the application, and deliver the messages that it sends.

        Raises:
            ExactlyOnceError: as `send` does; also any exception of the coroutine.
            Killed: the process was killed during the run.
        """
        kills = self.host.kills
        try:
            result = self.host.loop.run(job)
        except CancelledError:
            if kills == self.host.kills:
                raise
            self.host.loop.run_for(0)
            raise Killed("The process was killed before it answered. A caller asks again, with the same key.") from None
        self.host.loop.run_for(0)
        self._raise_failure()
        return result

    def duplicate_everything(self, seed: int = 0) -> None:
        """From now on deliver every message twice, and waiting messages in an order drawn by the seed."""
        self.host.twice = Random(seed)

    def send_again(self, destination: str | Destination, which: int = -1) -> None:
        """Deliver another copy of an arrived message, as a queue or its sender may do at any time.

        Args:
            destination: the destination; messages from outside arrive there, too.
            which: position of the message in `outputs(destination)`; by default the latest.

        Raises:
            UnknownDestination: there is no destination of this name.
            IndexError: no such message arrived.
            ExactlyOnceError: as `send` does.
        """
        name = _name(destination)
        envelope = list(self._arrived(name).values())[which]

        async def arrives() -> None:
            self.host.arrive(name, Output(envelope.id, name, envelope.to_json()))

        self.run(arrives())

    def kill(
        self, when: Literal["before", "after"], step: str, *, of: Entity[Any] | None = None, skip: int = 0
    ) -> None:
        """Kill the process at a step. The next process knows only the stored documents; messages under way come again.

        Args:
            when: before the step, or after it, before the process has the reply.
            step: the effect, as in [the protocols](../docs/protocols/README.md): "SaveEntity", "Publish", "SaveBatch",
                "WritePage", "Stage", "Park" or "WriteOnce".
            of: the entity type of the step; None for all types.
            skip: number of such steps that go on before.

        Raises:
            ConfigurationError: there is no such step.
        """
        self.host.interruptions.plan(when, step, None if of is None else of.name, skip)

    def lose(self, *writes: Lost | None, times: int = 1, of: Entity[Any] | None = None) -> None:
        """Lose the replies to the next writes to the store, in this order; later writes are answered.

        A correct application only needs more time: after a lost reply an attempt reads the outcome.

        Args:
            writes: for each write "reply" (applied, but the reply is lost), "request" (not applied, and no reply), or None
                (applied and answered).
            times: repetitions of the whole sequence.
            of: the entity type of the writes; None for all writes.
        """
        if of is None:
            self.host.losses.planned.extend(writes * times)
            return
        for skip, lost in enumerate(writes * times):
            if lost is not None:
                self.host.interruptions.plan(lost, None, of.name, skip)

    def trouble(self, api: Api, *troubles: Trouble, times: int = 1) -> None:
        """Disturb the next tries of calls to a service, in this order; later tries are undisturbed.

        Args:
            api: the service.
            troubles: for each try "down" (the request does not arrive), "lost" (carried out, but the answer is lost), the time
                until the answer, or an answer in place of the service's.
            times: repetitions of the whole sequence.
        """
        self.host.wire.troubles[api.name].extend(troubles * times)

    def slow(self, destination: str | Destination, *delays: timedelta, times: int = 1) -> None:
        """Delay the next messages to a destination, in this order; later messages arrive at once.

        So messages overtake each other, and are handled at different times. `advance` delivers them.

        Args:
            destination: the destination.
            delays: the delay of each message, on top of its handler's delay.
            times: repetitions of the whole sequence.

        Raises:
            UnknownDestination: there is no destination of this name.
        """
        name = _name(destination)
        self._arrived(name)
        self.host.slow[name].extend(delays * times)

    def tries(self, api: Api) -> tuple[Request, ...]:
        """All tries of calls to a service, in order."""
        return tuple(self.host.wire.tries[api.name])

    def state(self, entity: Entity[State], key: str | EntityKey) -> State | None:
        """The state of an entity; None for an absent or deleted entity."""
        reading = self.once.read(entity, key)
        return self.run(reading)

    def outputs(self, destination: str | Destination | Api) -> tuple[Any, ...]:
        """The messages that arrived at a destination, or the calls to a service, in order; copies count once.

        Raises:
            UnknownDestination: there is no destination of this name.
        """
        return tuple(map(self.read, self._arrived(_name(destination)).values()))

    def _arrived(self, name: str) -> Mapping[str, Envelope]:
        if name not in self.host.sent:
            names = ", ".join(sorted(self.host.sent)) or "none"
            raise UnknownDestination(f"There is no destination {name!r}; known are: {names}. Add it to destinations=.")
        return self.host.sent[name]

    def parked(self) -> tuple[Parked, ...]:
        """The parked messages, in order."""
        return tuple(
            Parked(item.entity, item.message, self.read(Envelope.read(item.envelope.text)), item.reason)
            for item in self.run(self.host.parked())
        )

    def taker(self, to: str | Destination | Entity[Any]) -> Entity[Any]:
        """The entity type that takes the messages for a destination, or that type itself.

        Raises:
            ConfigurationError: no type of this application takes the messages.
        """
        name = to.name if isinstance(to, Entity) else _name(to)
        takers = {entity.name: entity for entity in self.once.entities} if isinstance(to, Entity) else self.host.takers
        if name not in takers:
            raise ConfigurationError(
                f"{to!r} is no entity type of this application, and no destination that leads to one."
            )
        return takers[name]

    def read(self, envelope: Envelope) -> Any:
        """A message as its sender made it; the data, if there is no model of the message."""
        model = self._models.get(envelope.type) or model_named(envelope.type)
        envelope = self.host.loop.run(self.host.redeemed(envelope))
        if envelope.type == CALL_TYPE:
            return read_call(envelope)
        if model is None:
            return envelope.data.value
        return decode(model, envelope.data, source=envelope.source, id=envelope.id)

    def _raise_failure(self) -> None:
        failures = [*self.host.wire.errors, *self.host.failures]
        self.host.wire.errors, self.host.failures = [], []
        for error in failures:
            raise error


def _name(destination: str | Destination | Api) -> str:
    return destination.name if isinstance(destination, Api) else name_of(destination)


def _services(destinations: tuple[Destination | Api, ...], apis: Mapping[Api, Service]) -> dict[str, Service]:
    """The function for each service, by the name of the `Api`."""
    require("apis= of an App", apis, Mapping, "a dict from each Api to the function that plays it")
    for api, service in apis.items():
        require("A service in apis=", api, Api, "the Api that destinations= has")
        require_callable(f"What plays {api.name!r} in apis=", service, "a function of (request)")
    if missing := {item.name for item in apis if item not in destinations}:
        raise ConfigurationError(f"apis= names {min(missing)!r}, which is no Api of destinations=. Add it there.")
    return {api.name: service for api, service in apis.items()}


def _takers(
    entities: tuple[Entity[Any], ...], destinations: list[Destination], queues: Mapping[str, Entity[Any]]
) -> dict[str, Entity[Any]]:
    """By destination the entity type of this application that takes the messages."""
    types = {entity.name: entity for entity in entities}
    require("queues= of an App", queues, Mapping, "a dict from destinations to entity types")
    for entity in queues.values():
        require("A receiver in queues=", entity, Entity, "the Entity that takes the messages")
    if unknown := set(queues) - {destination.name for destination in destinations}:
        raise ConfigurationError(f"queues= names {min(unknown)!r}, which is no destination. Add it to destinations=.")
    leading = {item.name: item.to for item in destinations if item.to is not None} | dict(queues)
    named = {name: to if isinstance(to, str) else to.name for name, to in leading.items()}
    if missing := {name for name in queues if named[name] not in types}:
        raise ConfigurationError(
            f"queues= gives {min(missing)!r} an entity type that is not among the entities. Add it."
        )
    return {name: types[to] for name, to in named.items() if to in types}
