"""Queues whose messages are not envelopes: an adapter makes one of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.errors import MalformedMessage
from exactlyonce.handling.messages import message_type
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, Envelope
from exactlyonce.values.frozen_json import Json


class Adapter(Protocol):
    """From the body of a queue message to an envelope. Raises `MalformedMessage`.

    It never sees what is sent to its queue once more: that is an envelope already, and marked as one.
    """

    def __call__(self, body: bytes) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class PlainJson:
    """Adapter for bodies that are one JSON object each, all of one type.

    Attributes:
        model: the registered message type they are.
        source: who sends them; part of every message's identity.
        id: tells a message's id from the object. Copies of a message must give the same id, and no two messages may share
            one, so take an order number or a request id; the id of the queue message is no such thing, since a sender
            that tries again gets a new one.
        time: tells when the message came about, with a time zone. Copies of a message must give the same time, as they do if
            it stands in the object. A receiver whose records are deleted after a while refuses messages that are older, since
            it could not know their copies; so when the queue got it is no such thing.
    """

    model: type
    source: str
    id: Callable[[dict[str, Any]], str]
    time: Callable[[dict[str, Any]], datetime]

    def __call__(self, body: bytes) -> Envelope:
        if len(body) > MAX_MESSAGE_BYTES:
            raise MalformedMessage(f"The message has {len(body)} bytes; at most {MAX_MESSAGE_BYTES} are read.")
        try:
            content = json.loads(body)
            data = Json.of(content)
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"The message is not JSON ({type(error).__name__}).") from None
        if not isinstance(content, dict):
            raise MalformedMessage(f"The message is not a JSON object but a {type(content).__name__}.")
        if "specversion" in content:
            raise MalformedMessage(
                "The message is an envelope already, so its content would be read as another message. Send it to a queue "
                "whose function has no adapter."
            )
        try:
            id = self.id(content)
        except Exception as error:  # It is the application's function, on whatever somebody sent.
            raise MalformedMessage(f"The message has nothing to take its id from ({type(error).__name__}).") from None
        if not isinstance(id, str) or not id:
            raise MalformedMessage(
                f"The message's id is empty or a {type(id).__name__}, and without one duplicates cannot be known. Return a "
                "string from id=; use str() for numbers."
            )
        try:
            time = self.time(content)
        except Exception as error:
            raise MalformedMessage(f"The message has nothing to take its time from ({type(error).__name__}).") from None
        if not isinstance(time, datetime) or time.utcoffset() is None:
            raise MalformedMessage(
                f"The message's time is a {type(time).__name__} or has no time zone. Return a datetime with one from time=."
            )
        return Envelope(self.source, id, message_type(self.model).name, data, time)

    def require_own(self, envelope: Envelope) -> None:
        """Raise `MalformedMessage` unless an envelope is of the source and type that this adapter gives.

        Whoever writes bodies into its queue chooses their ids, but must not pass for another sender by marking a body as one
        that was sent once more.
        """
        known = message_type(self.model)
        if envelope.source != self.source or envelope.type not in (known.name, *known.formerly):
            raise MalformedMessage(
                f"The message was sent once more to a queue whose adapter makes {known.name!r} of source {self.source!r}, but "
                "it is another. Send it to the queue that it came from."
            )
