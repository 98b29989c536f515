"""Entity types: a state model, the container it lives in, and the handlers of its messages."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, overload

from exactlyonce.attempt import Strategy
from exactlyonce.errors import ConfigurationError, InvalidMessage, UnknownMessageType
from exactlyonce.handling.context import Context
from exactlyonce.handling.documents import Declared
from exactlyonce.handling.events import Applier, Appliers
from exactlyonce.handling.keys import EntityKey, entity_named, entity_ref
from exactlyonce.handling.messages import decode, message_type
from exactlyonce.handling.states import StateShape
from exactlyonce.records.companions import Event
from exactlyonce.values.declarations import kind_of, require, require_plain, require_text, require_tuple
from exactlyonce.values.envelope import Envelope, require_name
from exactlyonce.values.identity import ID_RULE, EntityRef, is_document_id, message_key

State = TypeVar("State")
Message = TypeVar("Message")
Events = TypeVar("Events", bound="list[Any] | tuple[Any, ...]")
Handler = Callable[[State, Message, Context], Any]
"""Returns the new state; for an event-sourced entity, the events."""
MAX_PATHS: Final = 3
"""Most partition key paths of a container."""


@dataclass(frozen=True, slots=True)
class Registration(Generic[State, Message]):
    """A registered handler: the message model, the function that names the entity, and the handler."""

    model: type[Message]
    key: Callable[[Message], str | EntityKey]
    handler: Handler[State, Message]


class Registers(Protocol[State, Message]):
    """The decorator of a handler. It returns the handler as it was."""

    @overload
    def __call__(
        self, handler: Callable[[State, Message, Context], State], /
    ) -> Callable[[State, Message, Context], State]: ...
    @overload
    def __call__(
        self, handler: Callable[[State, Message, Context], Events], /
    ) -> Callable[[State, Message, Context], Events]: ...


class Entity(Generic[State]):
    """An entity type. Declare one at module level, next to its handlers.

    Args:
        name: part of the keys of its documents; it cannot be changed later.
        state: a pydantic model or dataclass in which every field has a default: an absent entity starts as `state()`.
        container: the Cosmos container of its documents.
        partition_key: path of that container's partition key, or its paths from the top.
        strategy: the protocol to use, such as `Outbox()`.
        adopts: whether documents without a ledger are taken over. Where not, such a document is damaged: another program
            removed its ledger, so late duplicates would not be known. (Where every message leaves a companion, those tell.)
        removed: names of properties of former releases, which no release reads any more. The next save of each document drops
            them, so this erases what they hold.
        foreign: names of properties that other programs keep in the documents. They stay, and the state never has them.

    A name may be of a nested property, such as `lines.*.price`: `*` stands for every key of a mapping and every item of a list.

    Raises:
        ConfigurationError: the state model, a path, a name, the container or the strategy is not valid, or the model has a
            property that is declared removed or foreign.
    """

    def __init__(
        self,
        name: str,
        *,
        state: type[State],
        container: str,
        partition_key: str | tuple[str, ...] = "/id",
        strategy: Strategy,
        adopts: bool = False,
        removed: tuple[str, ...] = (),
        foreign: tuple[str, ...] = (),
    ) -> None:
        about = f"entity {name!r}"
        self.name = require_name("The name of an entity", name)
        self.container = require_text(f"container= of {about}", container)
        if not is_document_id(self.container):
            raise ConfigurationError(f"container= of {about} is not the name of a container, which has {ID_RULE}.")
        if not isinstance(partition_key, str):
            require_tuple(f"partition_key= of {about}", partition_key, "('/tenant', '/order')")
        _require_strategy(about, strategy)
        require(f"adopts= of {about}", adopts, bool, "True or False")
        require_tuple(f"removed= of {about}", removed, "('coupon',)")
        require_tuple(f"foreign= of {about}", foreign, "('note',)")
        self.paths = (partition_key,) if isinstance(partition_key, str) else partition_key
        if not 1 <= len(self.paths) <= MAX_PATHS:
            raise ConfigurationError("A container has a partition key of one to three paths.")
        self.strategy = strategy
        self.adopts = adopts
        self.shape = StateShape(state, self.paths, Declared(removed, foreign))
        self.state = state
        self._registrations: dict[str, Registration[State, Any]] = {}
        self._appliers = Appliers(name, state)

    def __repr__(self) -> str:
        return f"Entity({self.name!r})"

    @overload
    def handles(
        self, model: type[Message], *, key: Callable[[Message], str | EntityKey]
    ) -> Registers[State, Message]: ...
    @overload
    def handles(self, model: NoReturn) -> NoReturn: ...  # Refused, as at run time: `key` is needed.
    def handles(self, model: Any, *, key: Any = None) -> Any:
        """Decorator: register the handler of a message type.

        Args:
            model: a registered message type.
            key: names the entity of a message. A string is both id and partition key.

        Raises:
            ConfigurationError: the type is not registered, or has a handler already; or the function or `key` cannot be one.
        """
        if key is None:
            raise ConfigurationError(
                f"handles of entity {self.name!r} has no key=. Write @....handles(Model, key=lambda message: message.id) above "
                "the handler."
            )
        registered = message_type(model)
        require_plain(f"key= of the handler of {model.__name__},", key, ("message",))

        def register(handler: Handler[State, Any]) -> Handler[State, Any]:
            require_plain("The handler", handler, ("state", "message", "context"))
            for name in (registered.name, *registered.formerly):
                if name in self._registrations:
                    raise ConfigurationError(f"Entity {self.name!r} has two handlers for messages of type {name!r}.")
                self._registrations[name] = Registration(model, key, handler)
            return handler

        return register

    def applies(self, model: type[Message]) -> Callable[[Applier[State, Message]], Applier[State, Message]]:
        """Decorator: register the applier of an event type. It makes the entity event-sourced.

        Handlers of an event-sourced entity return a list of events in place of the new state. A `VersionStream` keeps the
        events.

        Args:
            model: a registered message type, under whose name the event is kept.

        Raises:
            ConfigurationError: the type is not registered, or has an applier already; or the function cannot be an applier.
        """

        message_type(model)

        def register(applier: Applier[State, Message]) -> Applier[State, Message]:
            require_plain("The applier", applier, ("state", "event"))
            self._appliers.add(model, applier)
            return applier

        return register

    @property
    def event_sourced(self) -> bool:
        """Whether handlers return events."""
        return bool(self._appliers)

    def events(self, result: Any) -> tuple[Event, ...]:
        """A handler's result as events. Raises `HandlerFailed` if it is not a list of events."""
        return self._appliers.events(result)

    def apply(self, state: State, event: Event) -> State:
        """The state after an event. Raises `HandlerFailed`."""
        return self._appliers.apply(state, event)

    @property
    def handlers(self) -> tuple[Handler[State, Any], ...]:
        """The handlers of its messages."""
        return tuple(dict.fromkeys(registration.handler for registration in self._registrations.values()))

    @property
    def models(self) -> dict[str, type]:
        """The message types that this entity handles, by all of their names."""
        return {name: registration.model for name, registration in self._registrations.items()}

    def read(self, envelope: Envelope) -> tuple[Registration[State, Any], Any]:
        """The handler of a message, and the message decoded.

        Raises:
            UnknownMessageType: no handler takes it.
            InvalidMessage: its data does not fit the model.
        """
        registration = self._registrations.get(envelope.type)
        if registration is None:
            known = ", ".join(sorted(self._registrations)) or "none"
            raise UnknownMessageType(
                f"Message {message_key(envelope.source, envelope.id)} has the type {envelope.type!r}; entity {self.name!r} "
                f"handles: {known}. Was it sent to the wrong queue, or is this instance older than its sender?",
                kept=f"it has the type {envelope.type!r}; entity {self.name!r} handles: {known}",
            )
        return registration, decode(registration.model, envelope.data, source=envelope.source, id=envelope.id)

    def ref_of(self, envelope: Envelope) -> EntityRef:
        """The entity that a message is for.

        Raises:
            MessageError: as `read` does, or because the message's key is not valid for an entity.
            HandlerFailed: the function given as `key=` raised, or gave something else than a key.
        """
        registration, message = self.read(envelope)
        about = f"Message {message_key(envelope.source, envelope.id)}"
        try:
            return entity_named(f"{about}: the key= of its handler", registration.key, message, self.ref)
        except InvalidMessage as error:
            raise InvalidMessage(f"{about}: {error}") from None

    def ref_of_source(self, source: str) -> EntityRef:
        """The entity of this type that sends under a CloudEvents source.

        Raises:
            InvalidMessage: it is not the source of an entity of this type.
        """
        try:
            named = EntityRef.of_source(source)
            ref = self.ref(EntityKey(named.id, named.partition))
        except (ValueError, ConfigurationError, InvalidMessage):
            ref = None
        if ref is None or ref.source != source:
            raise InvalidMessage(f"{source!r} is not the source of an entity of type {self.name!r}.")
        return ref

    def using(self, strategy: Strategy) -> Entity[State]:
        """The same entity type with another strategy. A stored entity belongs to the strategy that its ledger names."""
        other = copy(self)
        other.strategy = strategy
        return other

    def ref(self, key: str | EntityKey) -> EntityRef:
        """The full name of an entity of this type.

        Raises:
            ConfigurationError: the key has fewer or more values than the container's partition key has paths.
            InvalidMessage: the id or the partition key is not valid in Cosmos DB.
        """
        ref = entity_ref(self.name, key)
        if len(ref.partition) != len(self.paths):
            raise ConfigurationError(
                f"Entity {self.name!r} has the partition key {', '.join(self.paths)}; the key given has {len(ref.partition)} "
                "value(s). Return an EntityKey(id, (value, ...)) from key=."
            )
        return ref

    def receiver_of(self, message: object) -> EntityRef:
        """The entity of this type that a message is for, before it is sent.

        Raises:
            ConfigurationError: no handler takes messages of its class.
            HandlerFailed: the function given as `key=` raised, or gave something else than a key.
            InvalidMessage: its key is not valid for an entity.
        """
        name = message_type(type(message)).name
        registration = self._registrations.get(name)
        if registration is None:
            raise ConfigurationError(f"Entity {self.name!r} has no handler for messages of type {name!r}.")
        return entity_named(f"The key= of entity {self.name!r} for a {name!r}", registration.key, message, self.ref)


def _require_strategy(about: str, strategy: object) -> None:
    if isinstance(strategy, type):
        raise ConfigurationError(
            f"strategy= of {about} is {kind_of(strategy)}. Give an instance: strategy={strategy.__name__}()."
        )
    if not callable(getattr(strategy, "attempt", None)):
        raise ConfigurationError(f"strategy= of {about} is {kind_of(strategy)}. Give a strategy, such as Outbox().")
