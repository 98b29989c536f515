"""Trigger messages: envelopes, ids and delivery counts. Only `hosting` imports `azure.functions`."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import azure.functions as func

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, MalformedMessage, NewerSchema, TryAgainLater
from exactlyonce.handling.messages import message_type
from exactlyonce.transports.service_bus.binding import Content, read
from exactlyonce.values.declarations import kind_of, require, require_plain
from exactlyonce.values.envelope import (
    MAX_MESSAGE_BYTES,
    MAX_SOURCE_LENGTH,
    MOST_NESTED,
    REQUEUED,
    Envelope,
    printable,
    require_name,
)
from exactlyonce.values.frozen_json import Json, read_json
from exactlyonce.values.raised import causes_of, class_of, is_librarys
from exactlyonce.values.round_trips import ApplicationsCode

# Adapters: make envelopes from messages of other formats.


class Adapter(Protocol):
    """Makes an envelope from the body of a queue message. Raises `MalformedMessage`, as `Envelope` does for attributes that no
    receiver could read: ids with control characters, or of more than 1,024 characters.

    If all copies of a message certainly have the same time, the adapter returns `envelope.with_stable_time()`: receivers then
    need not search for copies among the marks that have left the entity.

    A message that the library returned to its queue is a marked envelope already, and bypasses the adapter.
    """

    def __call__(self, body: bytes) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class PlainJson:
    """An adapter for bodies that are one JSON object each, all of one type.

    Attributes:
        model: the registered message type of the objects.
        source: the sender; part of every message's identity.
        id: takes the message's id from the object. All copies of a message must have the same id, and different messages
            different ids, so use an order number or a request id. Do not use the id of the queue message: a sender that tries
            again gets a new id.
        time: takes the time of the message's event from the object, with a time zone. A receiver refuses messages older than
            the retention, since their marks may be gone. So do not use the time of arrival in the queue.
        stable_time: whether all copies of a message certainly have the same time. Otherwise each message costs a search for
            copies among the marks that have left the entity.

    Raises:
        ConfigurationError: an attribute has the wrong type, or `source` is no source.
    """

    model: type
    source: str
    id: Callable[[dict[str, Any]], str]
    time: Callable[[dict[str, Any]], datetime]
    stable_time: bool = False

    def __post_init__(self) -> None:
        message_type(self.model)
        require_name("source= of a PlainJson", self.source, MAX_SOURCE_LENGTH)
        require("stable_time= of a PlainJson", self.stable_time, bool, "True or False")
        for name in ("id", "time"):
            require_plain(f"{name}= of a PlainJson,", getattr(self, name), ("body",))

    def __call__(self, body: bytes) -> Envelope:
        if len(body) > MAX_MESSAGE_BYTES:
            raise MalformedMessage(f"The message has {len(body)} bytes; at most {MAX_MESSAGE_BYTES} are read.")
        try:
            content = read_json(body)
            data = Json.of(content)
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"The message is not JSON. {error}") from None
        if not isinstance(content, dict):
            raise MalformedMessage(f"The message is not a JSON object but a {type(content).__name__}.")
        if "specversion" in content:
            raise MalformedMessage(
                "The message is an envelope already, so its content would be read as another message. Send it to a queue "
                "whose function has no adapter."
            )
        with _taking("id"):
            id = self.id(content)
            if not isinstance(id, str) or not id:
                raise MalformedMessage(
                    f"The message's id is {kind_of(id)}; without an id duplicates cannot be recognized. Return a string from "
                    "id=; use str() for numbers."
                )
        with _taking("time"):
            time = self.time(content)
            if not isinstance(time, datetime) or time.utcoffset() is None:
                raise MalformedMessage(
                    f"The message's time is {kind_of(time)}, or has no time zone. Return a datetime with one from time=."
                )
        envelope = Envelope(self.source, id, message_type(self.model).name, data, time)
        return envelope.with_stable_time() if self.stable_time else envelope

    def require_own(self, envelope: Envelope) -> None:
        """Raise `MalformedMessage` unless an envelope has the source and type of this adapter.

        A sender to this queue chooses the ids of its messages, but must not pass for another source with a body marked as
        returned.
        """
        registered = message_type(self.model)
        if envelope.source != self.source or envelope.type not in (registered.name, *registered.formerly):
            raise MalformedMessage(
                f"The message was returned to a queue whose adapter makes {registered.name!r} of source {self.source!r}, but "
                "its type or source differs. Send the message to its own queue."
            )


def _taking(what: str) -> ApplicationsCode:
    """Guards the application's functions that take values from a foreign body, which need not have them."""
    return ApplicationsCode(
        lambda error: MalformedMessage(f"The message's {what} cannot be taken from it ({class_of(error)})."),
        MalformedMessage,
    )


Delivered = func.QueueMessage | func.ServiceBusMessage
"""A message as a trigger delivers it."""

_LONGEST_REASON: Final = 100


def envelope_of(message: Delivered, adapter: Adapter | None = None) -> Envelope:
    """Read the envelope of a trigger message. An adapter gets the delivered body, unless the library returned the message.

    Raises:
        MalformedMessage: naming the queue message, since the message's own id may be unknown.
    """
    try:
        return _read(message, adapter)
    except MalformedMessage as error:
        raise MalformedMessage(f"Queue message {id_of(message)}: {error}") from error


def id_of(message: Delivered) -> str:
    """An id that is unique in its queue, and does not identify copies of a message.

    The id of a Service Bus message is the sender's, and may be absent. So the sequence number is added, and a hash of the body,
    since each queue has its own numbers.
    """
    if isinstance(message, func.ServiceBusMessage):
        number, digest = getattr(message, "sequence_number", None), hashlib.sha256(message.get_body()).hexdigest()
        return f"{printable(message.message_id or 'unknown')}/{number}/{digest[:16]}"
    return message.id or "unknown"


def delivery_of(message: Delivered) -> int | None:
    """The number of this delivery, from 1; None if the host does not say."""
    name = "delivery_count" if isinstance(message, func.ServiceBusMessage) else "dequeue_count"
    count: int | None = getattr(message, name, None)
    return count


def broker_says(message: Delivered) -> str | None:
    """The broker's reason for dead-lettering a message, such as `MaxDeliveryCountExceeded`; None without a reason.

    The description is left out: code that dead-letters a message may quote the body there.
    """
    reason = getattr(message, "dead_letter_reason", None) or _properties(message).get("DeadLetterReason")
    return str(reason)[:_LONGEST_REASON] if reason else None


def _read(message: Delivered, adapter: Adapter | None) -> Envelope:
    if adapter is not None and not _was_returned(message):
        with ApplicationsCode(
            lambda error: MalformedMessage(
                f"The adapter raised {class_of(error)}. Correct the adapter, or the sender."
            ),
            ExactlyOnceError,
        ):
            made = adapter(message.get_body())
            if not isinstance(made, Envelope):
                raise MalformedMessage(f"The adapter returned {kind_of(made)}. Let it return an Envelope.")
            return made
    envelope = Envelope.read(_structured(message))
    if isinstance(adapter, PlainJson):
        adapter.require_own(envelope)
    return envelope


def _structured(message: Delivered) -> bytes:
    if isinstance(message, func.ServiceBusMessage):
        return read(Content(message.get_body(), message.content_type, _properties(message)))
    body: bytes = message.get_body()
    return body


def _was_returned(message: Delivered) -> bool:
    """Whether a message is an envelope with the mark of `Envelope.once_more`. The body may be anything."""
    try:
        body = _structured(message)
        if REQUEUED.encode() not in body or len(body) > MAX_MESSAGE_BYTES:
            return False  # As nearly always; the body is not parsed twice.
        content = read_json(body, nesting=MOST_NESTED)
    except (MalformedMessage, ValueError):
        return False
    return isinstance(content, dict) and "specversion" in content and REQUEUED in content


def _properties(message: Delivered) -> dict[str, Any]:
    """Application properties, under the present and the former name of the attribute."""
    named = (getattr(message, name, None) for name in ("user_properties", "application_properties"))
    return {name: value for properties in named if isinstance(properties, dict) for name, value in properties.items()}


# Failures of deliveries in this process: the causes, if the host gives a message up later.


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST: Final = 1_000
"""Most messages whose failures are remembered."""

ENVIRONMENT: Final = (TryAgainLater, ConfigurationError, NewerSchema)
"""Errors without a fault of the message: the store, a queue, or the configuration or version of this process is to blame."""


class Cause(Enum):
    """The cause of a message's last failure, as far as this process knows."""

    OWN = "its own"
    """No process can process the message as it is."""
    ENVIRONMENT = "its environment's"
    """The message is not to blame, and is processed as soon as the environment answers."""
    UNKNOWN = "not known"
    """Another process saw the failure, or this process has started since."""


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: Cause
    text: str


@dataclass(frozen=True)
class Failures:
    """The last failures of messages, by entity type and key. Bodies are never kept."""

    _seen: OrderedDict[tuple[str, str], _Failure] = field(default_factory=OrderedDict)

    def note(self, entity: str, message: str, error: ExactlyOnceError, delivery: int | None) -> None:
        """Remember the failure of a delivery, with its number from 1; None if the host did not say."""
        counted = "" if delivery is None else f"delivery {delivery} "
        cause = Cause.ENVIRONMENT if isinstance(error, ENVIRONMENT) else Cause.OWN
        self._seen[entity, message] = _Failure(cause, f"{counted}failed with {described(error)}")
        self._seen.move_to_end((entity, message))
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def cause(self, entity: str, message: str) -> Cause:
        seen = self._seen.get((entity, message))
        return Cause.UNKNOWN if seen is None else seen.cause

    def reason(self, entity: str, message: str, who: str = "its queue") -> str:
        """The subject that gave a message up, and the cause as far as this process knows."""
        seen = self._seen.get((entity, message))
        return f"{who} gave it up; {'this process did not see why' if seen is None else seen.text}"


def named(error: BaseException) -> str:
    """The class of an error, and the class of the first cause, without texts: foreign errors may quote a message."""
    *_, cause = causes_of(error)
    name, deepest = class_of(error), class_of(cause)
    return name if name == deepest else f"{name} ({deepest})"


def described(error: BaseException) -> str:
    """The class of an error, and the part of its text that may be kept with a parked message."""
    for item in causes_of(error):
        if is_librarys(item) and item.kept:
            return f"{named(error)}: {item.kept}"
    return named(error)


def told(
    door: Callable[Concatenate[Any, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]:
    """Decorator of the application's methods that triggers call: the host logs the whole exception.

    So an error of the library keeps only causes that may be logged. Nothing else is changed, not even the error's class.
    """

    @wraps(door)
    async def through(self: Any, /, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return await door(self, *args, **named)
        except ExactlyOnceError as error:
            if self._parts.texts:
                raise
            failure = self._parts.show(error)
        raise failure  # Outside of the block above, whose exception would become the context.

    return through
