"""Routes: the destinations of messages, their limits and receivers, for business code."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypedDict, TypeVar, overload

from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import ConfigurationError, HandlerFailed, InvalidMessage, OutputTooLarge, UnknownDestination
from exactlyonce.handling.messages import EntityKey, entity_named, entity_ref, message_type
from exactlyonce.records.outbox import MOST_CARRIED, RECEIVER, Place, Sequences, channel_id, numbered
from exactlyonce.values.declarations import kind_of, require, require_plain, require_tuple
from exactlyonce.values.envelope import EntityRef, Extensions, require_name, unfit
from exactlyonce.values.raised import class_of
from exactlyonce.values.round_trips import ApplicationsCode


class Receiver(Protocol):
    """A destination's view of the entity type behind it."""

    @property
    def name(self) -> str:
        """Name of the type."""

    @property
    def strategy(self) -> Strategy:
        """The protocol of its entities."""

    @property
    def models(self) -> Mapping[str, type]:
        """The handled message types, by all of their names."""

    def receiver_of(self, message: object) -> EntityRef:
        """The receiving entity of a message."""


if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeVar as TypeVarWithDefault
    from typing_extensions import Unpack

    class _Dataclass(Protocol):
        __dataclass_fields__: ClassVar[dict[str, Any]]

    Model = BaseModel | _Dataclass
    Received = TypeVarWithDefault("Received", contravariant=True, default=Any)
    _A = TypeVar("_A")
    _B = TypeVar("_B")
    _C = TypeVar("_C")
    _D = TypeVar("_D")

    class _More(TypedDict, total=False):
        to: Receiver | str | None
        entity_by: Callable[[Any], str | EntityKey] | None
        ordered: bool
        session_by: Callable[[Any], str] | None
        stable_time: bool
else:
    Model = Any
    Received = TypeVar("Received", contravariant=True)


@dataclass(frozen=True, slots=True)
class Destination(Generic[Received]):
    """A logical name for a queue or topic; settings map it to an address.

    Messages to a receiver with order are numbered. Such a receiver has to get every message: behind a subscription that
    filters, numbers would be missing for ever.

    Attributes:
        name: for `context.send`.
        receives: message types that `context.announce` sends here.
        to: the receiving entity type, or its name; None if unknown.
        entity_by: the key of the receiving entity. Needed for an entity type of another application; else the handler's `key=`
            names the entity.
        ordered: whether the receiver takes the messages of a sender in order, as a `Resequencer` does. Needed for an entity
            type of another application.
        session_by: the session of a message, for Service Bus sessions without `to`; with `to`, the session is the entity.
        stable_time: whether callers promise that `time` is the same in all copies of a message from `once.send`. Then `time` is
            required, and receivers need not search pages for copies.

    Raises:
        ConfigurationError: the attributes contradict each other, or an attribute has a wrong type.
    """

    name: str
    receives: tuple[type, ...] = ()
    to: Receiver | str | None = None
    entity_by: Callable[[Any], str | EntityKey] | None = None
    ordered: bool = False
    session_by: Callable[[Any], str] | None = None
    stable_time: bool = False

    if TYPE_CHECKING:  # `send` takes what a destination receives; of a tuple a checker would infer the common base.

        @overload
        def __init__(self: Destination[Any], name: str, receives: tuple[()] = ..., **more: Unpack[_More]) -> None: ...
        @overload
        def __init__(self: Destination[_A], name: str, receives: tuple[type[_A]], **more: Unpack[_More]) -> None: ...
        @overload
        def __init__(
            self: Destination[_A | _B], name: str, receives: tuple[type[_A], type[_B]], **more: Unpack[_More]
        ) -> None: ...
        @overload
        def __init__(
            self: Destination[_A | _B | _C],
            name: str,
            receives: tuple[type[_A], type[_B], type[_C]],
            **more: Unpack[_More],
        ) -> None: ...
        @overload
        def __init__(
            self: Destination[_A | _B | _C | _D],
            name: str,
            receives: tuple[type[_A], type[_B], type[_C], type[_D]],
            **more: Unpack[_More],
        ) -> None: ...
        @overload
        def __init__(self: Destination[Any], name: str, receives: tuple[type, ...], **more: Unpack[_More]) -> None: ...
        def __init__(self, *arguments: Any, **more: Any) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", require_name("The name of a destination", self.name))
        about = f"of destination {self.name!r}"
        require_tuple(f"receives= {about}", self.receives, "(OrderPaid,)")
        for model in self.receives:
            message_type(model)
        if not (self.to is None or isinstance(self.to, str) or _is_receiver(self.to)):
            raise ConfigurationError(f"to= {about} is {kind_of(self.to)}. Give an Entity, or the name of one.")
        for name, function in (("entity_by", self.entity_by), ("session_by", self.session_by)):
            if function is not None:
                require_plain(f"{name}= {about},", function, ("message",))
        require(f"ordered= {about}", self.ordered, bool, "True or False")
        require(f"stable_time= {about}", self.stable_time, bool, "True or False")
        if self.to is None and (self.entity_by is not None or self.ordered):
            raise ConfigurationError(
                f"Destination {self.name!r} has entity_by= or ordered=, but does not say to which entity type. Add to=."
            )
        if self.to is not None and self.session_by is not None:
            raise ConfigurationError(
                f"Destination {self.name!r} has both to= and session_by=. The session of its messages is their entity: leave "
                "out session_by."
            )


def name_of(destination: str | Destination) -> str:
    """The logical name of a destination. Raises `ConfigurationError` if the argument is no destination."""
    if isinstance(destination, str):
        return destination
    if not isinstance(destination, Destination):
        raise ConfigurationError(
            f"A message goes to a destination, and this is {kind_of(destination)}. Give the Destination that leads there, or "
            "its name."
        )
    return destination.name


def subscribers_of(destinations: Iterable[Destination]) -> dict[str, tuple[str, ...]]:
    """For each message type name the destinations that receive announcements."""
    subscribers: dict[str, tuple[str, ...]] = {}
    for destination in destinations:
        for name in dict.fromkeys(message_type(model).name for model in destination.receives):
            subscribers[name] = (*subscribers.get(name, ()), destination.name)
    return subscribers


def unheard(model: type, handled: Container[str]) -> str | None:
    """The reason not to announce a type that no destination receives, given the names of all message types that handlers of the
    application take; None for an event without receivers yet."""
    name, is_event = message_type(model).name, message_type(model).event
    if name in handled:
        why, otherwise = "; a handler of this application takes it", ""
    elif is_event:
        return None
    else:
        why, otherwise = "", f'; or, if it is an event for later, declare it with @message("{name}", event=True)'
    return (
        f"No destination receives {model.__name__}, so announcing it would lose it{why}. Name it in receives= of a "
        f"Destination, or send it with context.send(destination, ...){otherwise}."
    )


@dataclass(frozen=True)
class Routes:
    """The rules for a handler's outputs.

    Attributes:
        limits: for each destination the longest envelope in bytes.
        subscribers: for each message type name the destinations that receive announcements.
        max_delay: longest delay of a message; the message has to appear before it expires.
        receivers: for each destination with a declared receiver, the function that names the entity.
        ordered: the destinations whose receivers take messages in order.
        blobs: address of the container for blobs; None if there is none.
        sessions: for each destination with sessions of other kinds, the function that gives the session of a message.
        handled: names of the message types that handlers of the application take.
        stable: the destinations to which callers send with a time that is the same in all copies.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    subscribers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_delay: timedelta = timedelta(days=7)
    receivers: Mapping[str, Callable[[Any], EntityRef]] = field(default_factory=dict)
    ordered: frozenset[str] = frozenset()
    blobs: str | None = None
    sessions: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    handled: frozenset[str] = frozenset()
    stable: frozenset[str] = frozenset()

    @classmethod
    def to(
        cls,
        destinations: tuple[Destination, ...],
        limits: Mapping[str, int],
        max_delay: timedelta = timedelta(days=7),
        blobs: str | None = None,
        entities: Iterable[Receiver] = (),
    ) -> Routes:
        """Routes to these destinations.

        Args:
            destinations: the application's destinations.
            entities: the application's entity types, which destinations may name.

        Raises:
            ConfigurationError: a destination leads to an unknown type, and has no `entity_by`.
        """
        types = {entity.name: entity for entity in entities}
        leading = [destination for destination in destinations if destination.to is not None]
        return cls(
            dict(limits),
            subscribers_of(destinations),
            max_delay,
            {item.name: _naming(item, types) for item in leading},
            frozenset(item.name for item in leading if _is_ordered(item, types)),
            blobs,
            {item.name: item.session_by for item in destinations if item.session_by is not None},
            frozenset(name for kind in types.values() for name in kind.models),
            frozenset(item.name for item in destinations if item.stable_time),
        )

    def subscribed(self, model: type) -> tuple[str, ...]:
        """The destinations that receive announcements of a type; none for an event without receivers.
        Raises `UnknownDestination`: no destination receives it, and it is no event, or a handler of this application takes
        it."""
        subscribed = self.subscribers.get(message_type(model).name, ())
        if not subscribed and (refusal := unheard(model, self.handled)) is not None:
            raise UnknownDestination(refusal, kept=refusal)
        return subscribed

    def receiver(self, destination: str, message: object) -> EntityRef | None:
        """The receiving entity of a message to a destination; None if the destination names none.

        Raises:
            ConfigurationError: no handler of the entity type takes messages of its class.
            HandlerFailed: the naming function raised, or returned no key.
            ValueError: the key is not valid for an entity.
        """
        name = self.receivers.get(destination)
        if name is None:
            return None
        try:
            return name(message)
        except InvalidMessage as error:
            raise ValueError(f"The receiver of a message to {destination!r} cannot be named: {error}") from None

    def number(
        self, sequences: Sequences, destination: str, receiver: str, at: datetime, tx: str, *, begun: int = 0
    ) -> tuple[Sequences, Place]:
        """Give out the next number for a receiver in the commit of `tx` at `at`; return the sequences afterwards, and the
        place of the output. Earlier outputs of the message have `begun` channels."""
        return numbered(sequences, destination, receiver, channel_id(at, tx, begun))

    def replies(self, then: type) -> str:
        """The destination of replies of a type. Raises `ConfigurationError`: not exactly one destination receives them."""
        destinations = self.subscribers.get(message_type(then).name, ())
        if len(destinations) != 1:
            raise ConfigurationError(
                f"Replies of type {then.__name__} need exactly one destination; this application has {len(destinations)}. Name "
                "the type in receives= of the destination that leads to the calling entity."
            )
        return destinations[0]

    def session(self, destination: str, message: object) -> Extensions:
        """The session of a message to a destination, as attributes of its envelope; none without sessions.
        Raises `ConfigurationError`, `HandlerFailed`, `ValueError`: as `receiver` does; or the function that names the
        session raised, or returned no string, or a string that cannot be a session."""
        receiver = self.receiver(destination, message)
        if receiver is not None:
            return ((RECEIVER, receiver.source),)
        if destination not in self.sessions:
            return ()
        what = f"The session_by= of destination {destination!r}"
        with ApplicationsCode(lambda error: HandlerFailed(f"{what} raised {class_of(error)}.")):
            key = self.sessions[destination](message)
        if not issubclass(type(key), str):
            raise HandlerFailed(f"{what} gave {kind_of(key)}. Return a string.")
        if (why := unfit(key) or (None if key else "is empty")) is not None:
            raise ValueError(f"The session of a message to {destination!r} {why}. Return another one from session_by=.")
        return ((RECEIVER, key),)

    def is_too_large(self, destination: str, size: int) -> bool:
        """Whether an envelope of `size` bytes is over the limit of an existing destination."""
        return size > self.limits.get(destination, size)

    def goes_apart(self, destination: str, size: int) -> bool:
        """Whether the data of an output travels in a blob: an entry would carry it through every commit until it is paid.

        Without a container for blobs, never.
        """
        return self.blobs is not None and (size > MOST_CARRIED or self.is_too_large(destination, size))

    def check(self, destination: str, size: int) -> None:
        """Raise `UnknownDestination` or `OutputTooLarge` unless an envelope of `size` bytes may go there."""
        if destination not in self.limits:
            names = ", ".join(sorted(self.limits)) or "none"
            raise UnknownDestination(
                f"There is no destination {destination!r}; known are: {names}. Declare it where the application is composed."
            )
        if size > self.limits[destination]:
            sizes = f"A message for {destination!r} has {size} bytes; its queue takes {self.limits[destination]}"
            raise OutputTooLarge(
                f"{sizes}. Send less; or name a container for blobs in EXACTLYONCE__blobContainer, so that the data "
                "travels by reference.",
                kept=sizes,
            )


def _is_receiver(to: object) -> bool:
    return not isinstance(to, type) and callable(getattr(to, "receiver_of", None))


def _naming(destination: Destination, types: Mapping[str, Receiver]) -> Callable[[Any], EntityRef]:
    """The function that names the receiving entity of a message to a destination."""
    entity_by, receiver = destination.entity_by, _receiver(destination, types)
    if entity_by is not None:
        type = receiver.name if receiver is not None else str(destination.to)
        what = f"The entity_by= of destination {destination.name!r}"
        return lambda message: entity_named(what, entity_by, message, partial(entity_ref, type))
    if receiver is None:
        raise ConfigurationError(
            f"Destination {destination.name!r} leads to entity {destination.to!r}, which is not of this application. Let "
            "entity_by= name the entity that a message is for."
        )
    return receiver.receiver_of


def _is_ordered(destination: Destination, types: Mapping[str, Receiver]) -> bool:
    """Whether the receiver takes messages in order: declared, or because it holds messages that come too early."""
    receiver = _receiver(destination, types)
    return destination.ordered or (receiver is not None and "holding" in receiver.strategy.unfinished)


def _receiver(destination: Destination, types: Mapping[str, Receiver]) -> Receiver | None:
    """The entity type behind a destination, as this application uses it; None for another application's type."""
    to = destination.to
    return types.get(to) if isinstance(to, str) else None if to is None else types.get(to.name, to)
