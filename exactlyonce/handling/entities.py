"""Entity types: a state model with its container, its documents, and the handlers and appliers of its messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, overload

from pydantic import PydanticUserError, ValidationError

from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import (
    ConfigurationError,
    DamagedDocument,
    HandlerFailed,
    IdentityChanged,
    InvalidMessage,
    UnknownMessageType,
)
from exactlyonce.handling.context import Context
from exactlyonce.handling.documents import Declared, Save, Unknown, unknown, without
from exactlyonce.handling.messages import (
    EntityKey,
    decode,
    encode,
    entity_named,
    entity_ref,
    message_type,
    read_as,
    require_model,
    tell_unread,
)
from exactlyonce.records.companions import Event
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.declarations import kind_of, require, require_plain, require_text, require_tuple
from exactlyonce.values.envelope import ID_RULE, EntityRef, Envelope, is_document_id, message_key, require_name
from exactlyonce.values.frozen_json import Json, problems, raised_in
from exactlyonce.values.raised import class_of
from exactlyonce.values.round_trips import (
    ApplicationsCode,
    Place,
    covers,
    ignores_more,
    looks_further,
    lost,
    read_text,
    written,
    written_text,
)

# State models and entity documents: the library adds id and partition key, and keeps unknown properties.


RESERVED: Final = frozenset({LEDGER, "_kind", "_rid", "_self", "_etag", "_attachments", "_ts", "ttl"})
"""Properties of the library and the service. With `ttl` the entity would expire, and its ledger with it."""
_LARGEST_EXACT: Final = 2**53
_LONGEST_SHOWN: Final = 80
_LARGEST: Final = sys.float_info.max


class StateShape:
    """The mapping between a state model and documents with these partition key paths.

    Raises:
        ConfigurationError: the model cannot start empty, or has a reserved property or a property declared removed or foreign;
            or a path is not like `/a` or `/a/b`.
    """

    def __init__(self, state: type, paths: tuple[str, ...], declared: Declared = Declared()) -> None:  # noqa: B008
        require_model(state, "A state")
        for path in paths:
            require_text("A partition key path", path)
            if not path.startswith("/") or not all(path[1:].split("/")):
                raise ConfigurationError(f"The partition key path {path!r} is not like '/gameId' or '/game/id'.")
            if path[1:].split("/")[0] in RESERVED:
                raise ConfigurationError(
                    f"The partition key path {path!r} is in a reserved property; take another one."
                )
        self._state = state
        self._steps = tuple(tuple(path[1:].split("/")) for path in paths)
        places = [("id",), *self._steps]
        leads = any(place[: len(item)] == item for item in places for place in places if len(place) > len(item))
        if leads or len({*paths}) < len(paths):
            raise ConfigurationError(
                "Of the paths of a partition key, each names another property, and none leads into another one, or into id."
            )
        try:
            self._top = Place.of(state)
        except PydanticUserError as error:  # As for an annotation with a name that is defined later.
            raise ConfigurationError(f"{state.__name__} cannot be the state of an entity: {error.message}") from None
        self._own = frozenset({"id", *(steps[0] for steps in self._steps)}) - self._top.names
        self._declared = declared
        self._hidden = tuple(
            require_text("A name in removed= or foreign=", item) for item in (*declared.removed, *declared.foreign)
        )
        self._ignores = ignores_more(state) and not any("." in pattern for pattern in self._hidden)
        self._require_unreserved(self._top.names)
        self._require_start()
        declared.require_unread(self._top, RESERVED | self._own, state.__name__)

    def start(self, entity: EntityRef) -> Any:
        """The state of an absent entity. Raises `ConfigurationError` if the model rejects the entity's key."""
        made = f"{self._state.__name__} cannot be made from the id and the partition key of an entity of type {entity.type!r}"

        def failed(error: BaseException) -> ConfigurationError:  # A model's validator may raise anything.
            return ConfigurationError(f"{made}: the model raised {class_of(error)}. Correct the model's validators.")

        try:
            with ApplicationsCode(failed, ValidationError):
                return self._start(entity)
        except ValidationError as error:
            raise ConfigurationError(
                f"{made}: {problems(error, is_quoted=False)}. Declare the fields of id and partition key as the keys "
                "of the messages, or not at all."
            ) from raised_in(error)  # Pydantic's own error would quote the key.

    def _start(self, entity: EntityRef) -> Any:
        return self._read(self._identity(entity))

    def read(self, entity: EntityRef, body: Json) -> Any:
        """Body to state. Raises `DamagedDocument` naming every property that does not fit."""
        return read_as(
            self._state,
            self._text(body),
            DamagedDocument,
            f"The document of entity {entity}",
            raised="Nothing was changed. Correct the document, or the model's validators.",
            unfit="Nothing was changed. Correct the document, or give the model a default, or an alias or a before-validator "
            "that reads the old form.",
        )

    def write(self, entity: EntityRef, state: Any, before: Json | None, *, adopted: bool = False) -> Json:
        """State to body. Reading the body gives this state again; properties unread by the model stay.

        Args:
            before: the body that is replaced.
            adopted: whether another program may have written the body before: then absent fields were not renamed.

        Raises:
            HandlerFailed: the state would be read as another value, or holds a number that the store would round, or a reserved
                property.
            IdentityChanged: the state has an id or a partition key that differs from the entity's.
            DamagedDocument: the body before has a reserved property; or an unknown property that may be the old name of a
                field, or is in a list that was changed.
        """
        stored = {} if before is None else before.value
        if reserved := RESERVED & stored.keys():
            raise DamagedDocument(
                f"The document of entity {entity} has the reserved property {min(reserved)!r}. With 'ttl' it would expire, and "
                "its ledger with it. Nothing was changed. Remove the property from the document."
            )
        content = _AS_KEPT.decode(written_text(self._state, state))
        if not isinstance(state, self._state) or not isinstance(content, dict):
            raise self._changed(state, f"it is no {self._state.__name__}")
        if reserved := RESERVED & content.keys():
            raise HandlerFailed(
                f"The handler's result, a {type(state).__name__}, has the reserved property {min(reserved)!r}. Give the "
                "property another name."
            )
        for steps, value in self._places(entity):
            # The model may declare a key as a number, or a UUID: then it writes the key in another form.
            if (now := _get(content, steps, value)) != value and now != _get(
                written(self._state, self._start(entity)), steps, value
            ):
                raise IdentityChanged(
                    f"The handler changed {'/' + '/'.join(steps)} of entity {entity}. Id and partition key are fixed; send a "
                    "message to the other entity instead."
                )
        body = self._body(entity, stored, content)
        if before is not None and not covers(body, stored):
            body = self._body(entity, stored, self._merged(entity, state, stored, content, adopted))
        frozen = Json.of(body)
        if (what := lost(self._state, state, self._text(frozen))) is not None:
            raise self._changed(state, what)
        return frozen

    def _merged(
        self, entity: EntityRef, state: Any, stored: dict[str, Any], content: dict[str, Any], adopted: bool
    ) -> dict[str, Any]:
        """The content with the properties of the stored document that stay."""
        whole = without(self._known(stored), self._declared.removed)
        for steps, _ in self._places(entity):
            whole = without(whole, [".".join(steps)])
        base = without(whole, self._declared.foreign)
        old = self._read(stored)
        save = Save(
            str(entity),
            self._top,
            base,
            content,
            old,
            state,
            lambda some: written(self._state, self._read(some)),
            looks_further(self._state),
            lambda names: tell_unread(
                f"documents of {self._state.__name__}",
                frozenset(ascii(name[:_LONGEST_SHOWN]) for name in names),
                "stay there unread, while a field is absent",
                "Was a field renamed? Then let the model read the old name, too. Declare removed= or foreign= otherwise",
            ),
        )
        foreign, kept = unknown(whole, base, Place()), [group.of(whole) for group in save.keeps(adopted=adopted)]
        merged = save.merged([*foreign, *kept])
        if self._lost(state, merged) is None:
            return merged
        # A validator reads a property that looked foreign, as an old name whose value was a default.
        stays: list[Unknown] = foreign
        for group in kept:
            if self._lost(state, save.merged([*stays, group])) is None:
                stays = [*stays, group]
        return save.merged(stays)

    def _body(self, entity: EntityRef, stored: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
        own = {name: stored[name] for name in self._own if name in stored}
        return self._placed(entity, {**self._identity(entity), **own, **content})

    def _lost(self, state: Any, body: dict[str, Any]) -> str | None:
        return lost(self._state, state, self._text(Json.of(body)))

    def _changed(self, state: Any, what: str) -> HandlerFailed:
        return HandlerFailed(
            f"The handler's result, a {type(state).__name__}, would be read as something else: {what}. Return a "
            f"{self._state.__name__} whose values have their declared types, and that neither excludes fields nor reads and "
            "writes them under different names."
        )

    def tombstone(self, entity: EntityRef) -> Json:
        """A body with only id and partition key."""
        return Json.of(self._identity(entity))

    def _identity(self, entity: EntityRef) -> dict[str, Any]:
        return self._placed(entity, {})

    def _placed(self, entity: EntityRef, body: dict[str, Any]) -> dict[str, Any]:
        for steps, value in self._places(entity):
            _set(body, steps, value)
        return body

    def _places(self, entity: EntityRef) -> tuple[tuple[tuple[str, ...], Any], ...]:
        """The paths and the values of id and partition key."""
        return ((("id",), entity.id), *zip(self._steps, entity.partition, strict=True))

    def _read(self, properties: dict[str, Any]) -> Any:
        return read_text(self._state, self._text(Json.of(properties)))

    def _text(self, body: Json) -> str:
        """The model's part of a document."""
        return body.text if self._ignores else Json.of(without(self._known(body.value), self._hidden)).text

    def _known(self, properties: dict[str, Any]) -> dict[str, Any]:
        """The properties without id and partition key, unless the model declares them: it may forbid extra properties."""
        return {name: value for name, value in properties.items() if name not in self._own}

    def _require_start(self) -> None:
        sample = EntityRef("sample", tuple("sample" for _ in self._steps), "sample")
        unfit = f"{self._state.__name__} cannot be the state of an entity that does not exist yet"

        def failed(error: BaseException) -> ConfigurationError:
            return ConfigurationError(
                f"{unfit}: making one raised {class_of(error)}. Correct the model's validators and default factories."
            )

        try:
            with ApplicationsCode(failed, ValidationError):
                state = self._start(sample)
        except ValidationError as error:
            if all(item["type"] != "missing" for item in error.errors(include_input=False)):
                return  # Only the sample key does not fit, as where the model declares its key as a number.
            raise ConfigurationError(f"{unfit}: {problems(error)}. Give every field a default.") from None
        try:
            with ApplicationsCode(lambda error: HandlerFailed(f"A serializer raised {class_of(error)}.")):
                names = frozenset(written(self._state, state))
        except HandlerFailed:  # `write` reports it then.
            return
        self._require_unreserved(names)

    def _require_unreserved(self, names: Iterable[str]) -> None:
        if reserved := RESERVED.intersection(names):
            raise ConfigurationError(f"{self._state.__name__} uses the reserved property {min(reserved)!r}; rename it.")


def _integer(digits: str) -> int:
    number = int(digits)
    if abs(number) > _LARGEST_EXACT and (abs(number) > _LARGEST or int(float(number)) != number):
        raise HandlerFailed(
            "The handler's result has a whole number that the store would round: the store keeps doubles, exact up to "
            "2^53. Keep it as a string, or as a Decimal."
        )
    return number


def _number(digits: str) -> float:
    """A number as the store returns it: the service treats 1 and 1.0 as equal, so both are written as 1."""
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) <= _LARGEST_EXACT else number


_AS_KEPT: Final = json.JSONDecoder(parse_int=_integer, parse_float=_number)
"""Reads a state as the store returns it, so that a message sees the same state in a group as alone."""


def _get(properties: dict[str, Any], steps: tuple[str, ...], default: Any) -> Any:
    for step in steps:
        if not isinstance(properties, dict) or step not in properties:
            return default
        properties = properties[step]
    return properties


def _set(properties: dict[str, Any], steps: tuple[str, ...], value: Any) -> None:
    for step in steps[:-1]:
        properties = properties.setdefault(step, {})
    properties[steps[-1]] = value


# Events of event-sourced entities, and their appliers.


State = TypeVar("State")
Message = TypeVar("Message")
Applier = Callable[[State, Message], State]
"""Returns the state after an event."""


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
    """The decorator of a handler. It returns the handler unchanged."""

    @overload
    def __call__(
        self, handler: Callable[[State, Message, Context], State], /
    ) -> Callable[[State, Message, Context], State]: ...
    @overload
    def __call__(
        self, handler: Callable[[State, Message, Context], Events], /
    ) -> Callable[[State, Message, Context], Events]: ...


class Entity(Generic[State]):
    """An entity type. Declare it at module level, next to its handlers.

    Args:
        name: part of the keys of the documents; it cannot be changed later.
        state: a pydantic model or dataclass in which every field has a default: an absent entity starts as `state()`.
        container: the Cosmos container of the documents.
        partition_key: path of the container's partition key, or its paths from the top.
        strategy: the protocol to use, such as `Outbox()`.
        adopts: whether documents without a ledger are taken over. Without `adopts` such a document is damaged: another program
            removed its ledger, so late duplicates would not be recognized. (Where every message leaves a companion, companions
            prove duplicates.)
        removed: names of properties of former releases, unread by every release. The next save of each document drops and so
            erases them.
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
        self._appliers: dict[str, tuple[type, Applier[State, Any]]] = {}

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
            ConfigurationError: the type is not registered, or has a handler already; or the function or `key` is not valid.
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
        """Decorator: register the applier of an event type. The entity becomes event-sourced.

        Handlers of an event-sourced entity return a list of events in place of the new state. A `VersionStream` keeps the
        events.

        Args:
            model: a registered message type, under whose name the event is kept.

        Raises:
            ConfigurationError: the type is not registered, or has an applier already; or the function is not valid.
        """

        registered = message_type(model)

        def register(applier: Applier[State, Message]) -> Applier[State, Message]:
            require_plain("The applier", applier, ("state", "event"))
            for name in (registered.name, *registered.formerly):
                if name in self._appliers:
                    raise ConfigurationError(f"Entity {self.name!r} applies events of type {name!r} twice.")
                self._appliers[name] = (model, applier)
            return applier

        return register

    @property
    def event_sourced(self) -> bool:
        """Whether handlers return events."""
        return bool(self._appliers)

    def events(self, result: Any) -> tuple[Event, ...]:
        """A handler's result as events. Raises `HandlerFailed` if it is not a list of events."""
        if not isinstance(result, (list, tuple)):
            raise HandlerFailed(
                f"The handler returned {kind_of(result)}. Entity {self.name!r} is event-sourced: return a list of "
                "events, which may be empty."
            )
        try:
            return tuple(Event(*encode(event)) for event in result)
        except (ConfigurationError, InvalidMessage) as error:
            raise HandlerFailed(f"The handler's result has an item that is not an event: {error}") from error

    def apply(self, state: State, event: Event) -> State:
        """The state after an event.
        Raises `HandlerFailed`: the event has no applier, or data that does not fit; or the applier raised, or returned no
        state."""
        if event.type not in self._appliers:
            types = ", ".join(sorted(self._appliers))
            raise HandlerFailed(
                f"Entity {self.name!r} has no applier of events of type {event.type!r}; known are: {types}. Register one "
                "with applies(), and keep it as long as streams hold such events."
            )
        model, applier = self._appliers[event.type]
        advice = "Give the model defaults, or a before-validator that reads old events."
        about = f"An event of type {event.type!r}"
        read: Any = read_as(model, event.data.text, HandlerFailed, about, raised=advice, unfit=advice)
        with ApplicationsCode(
            lambda error: HandlerFailed(f"Applying an event of type {event.type!r} raised {class_of(error)}."),
            HandlerFailed,
        ):
            after = applier(state, read)
            if not isinstance(after, self.state):
                raise HandlerFailed(
                    f"The applier of events of type {event.type!r} returned {kind_of(after)}. Return the new "
                    f"{self.state.__name__}."
                )
            return after

    @property
    def handlers(self) -> tuple[Handler[State, Any], ...]:
        """The handlers of the entity's messages."""
        return tuple(dict.fromkeys(registration.handler for registration in self._registrations.values()))

    @property
    def models(self) -> dict[str, type]:
        """The handled message types, by all of their names."""
        return {name: registration.model for name, registration in self._registrations.items()}

    def read(self, envelope: Envelope) -> tuple[Registration[State, Any], Any]:
        """The handler of a message, and the message decoded.

        Raises:
            UnknownMessageType: no handler takes the type.
            InvalidMessage: its data does not fit the model.
        """
        registration = self._registrations.get(envelope.type)
        if registration is None:
            types = ", ".join(sorted(self._registrations)) or "none"
            raise UnknownMessageType(
                f"Message {message_key(envelope.source, envelope.id)} has the type {envelope.type!r}; entity {self.name!r} "
                f"handles: {types}. Was it sent to the wrong queue, or is this instance older than its sender?",
                kept=f"it has the type {envelope.type!r}; entity {self.name!r} handles: {types}",
            )
        return registration, decode(registration.model, envelope.data, source=envelope.source, id=envelope.id)

    def ref_of(self, envelope: Envelope) -> EntityRef:
        """The receiving entity of a message.

        Raises:
            MessageError: as `read` does, or because the message's key is not valid for an entity.
            HandlerFailed: the function `key=` raised, or returned no key.
        """
        registration, message = self.read(envelope)
        about = f"Message {message_key(envelope.source, envelope.id)}"
        try:
            return entity_named(f"{about}: the key= of its handler", registration.key, message, self.ref)
        except InvalidMessage as error:
            raise InvalidMessage(f"{about}: {error}") from None

    def ref_of_source(self, source: str) -> EntityRef:
        """The entity of this type that sends under a CloudEvents source.
        Raises `InvalidMessage`: no entity of this type has this source."""
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
        """The receiving entity of a message, before the message is sent.

        Raises:
            ConfigurationError: no handler takes messages of its class.
            HandlerFailed: the function `key=` raised, or returned no key.
            InvalidMessage: the key is not valid for an entity.
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
