"""Adapters: make envelopes of the messages of queues that carry something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.errors import MalformedMessage
from exactlyonce.handling.messages import message_type
from exactlyonce.raised import ApplicationsCode, class_of
from exactlyonce.values.declarations import kind_of, require, require_plain
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, Envelope, require_name
from exactlyonce.values.frozen_json import Json, read_json
from exactlyonce.values.identity import MAX_SOURCE_LENGTH


class Adapter(Protocol):
    """Makes an envelope of the body of a queue message. Raises `MalformedMessage`, as `Envelope` does for attributes that no
    receiver could read: ids with control characters, or of more than 1,024 characters.

    Where all copies of a message certainly have its time, the adapter returns `envelope.with_stable_time()`: so receivers need
    not look for copies in what has left the entity.

    It never gets a message that the library returned to its queue: that is a marked envelope already.
    """

    def __call__(self, body: bytes) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class PlainJson:
    """An adapter for bodies that are one JSON object each, all of one type.

    Attributes:
        model: the registered message type of the objects.
        source: the sender; part of every message's identity.
        id: takes the message's id from the object. Copies of a message must have the same id, and two messages must have
            different ones, so take an order number or a request id. The id of the queue message will not do: a sender that
            tries again gets a new one.
        time: takes the time at which the message came about from the object, with a time zone. A receiver refuses messages that
            are older than the retention, since it could not know their copies; so the time at which the queue got the message
            will not do.
        stable_time: whether all copies of a message certainly have the same time. If not, they are known all the same, but each
            message costs a look for copies in what has left the entity.

    Raises:
        ConfigurationError: an attribute is of another kind, or no source.
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
        """Raise `MalformedMessage` unless an envelope has the source and type that this adapter gives.

        A sender to this queue chooses the ids of its messages, but must not pass for another source by sending a body that is
        marked as returned.
        """
        known = message_type(self.model)
        if envelope.source != self.source or envelope.type not in (known.name, *known.formerly):
            raise MalformedMessage(
                f"The message was returned to a queue whose adapter makes {known.name!r} of source {self.source!r}, but it has "
                "another type or source. Send it to the queue that it came from."
            )


def _taking(what: str) -> ApplicationsCode:
    """For what the application's functions take from a foreign body, which need not have it."""
    return ApplicationsCode(
        lambda error: MalformedMessage(f"The message's {what} cannot be taken from it ({class_of(error)})."),
        MalformedMessage,
    )
