"""The message envelope: CloudEvents 1.0, in its JSON event format on the wire.

Inside the library an envelope is a frozen value; `read` and `to_json` are the edge, where the official `cloudevents`
package checks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cloudevents.core.exceptions import BaseCloudEventException
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from exactlyonce.errors import MalformedMessage
from exactlyonce.values.frozen_json import MAX_NESTING, Json, read_json

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Longest envelope that is read. What may be sent is the transport's limit, which is lower on most queues."""

MAX_ATTRIBUTE_LENGTH: Final = 1024
"""Longest `id`, `source` and `type`, in characters: they become part of every record."""

MOST_NESTED: Final = MAX_NESTING + 10
"""Levels of an envelope. What was read by itself, such as a request's body, is some levels deeper in a message."""

DATAREF: Final = "dataref"

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
MAX_TRACESTATE_LENGTH: Final = 512
"""Longest `tracestate` that is passed on; W3C Trace Context asks for that many characters at least."""

REQUEUED: Final = "requeued"
"""Extension attribute: how often a message was sent to its queue once more, by the library or by an operator."""
UNEXPLAINED: Final = "unexplained"
"""Extension attribute: how often of these nobody knew why its queue had given it up."""

_REQUIRED_ATTRIBUTES: Final = ("specversion", "id", "source", "type")

_MOST_COUNTED: Final = 1_000_000
"""Far more than a lifetime has room for, and far less than AMQP's integers hold."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_LONGEST_SHOWN: Final = 40

_OWN_ATTRIBUTES: Final = frozenset({"specversion", "id", "source", "type", "time", "subject", "datacontenttype"})

Extension = str | int | bool
Extensions = tuple[tuple[str, Extension], ...]
"""Attributes beyond those of every CloudEvent, sorted by name."""


def has_control(text: str) -> bool:
    """Whether a text has a control character, which no attribute may have."""
    return _CONTROL.search(text) is not None


def written_time(time: datetime) -> str:
    """A time as it is on the wire."""
    text = time.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message: what CloudEvents calls an event. Its identity is the pair (`source`, `id`).

    Attributes:
        source: who sent it, a URI reference.
        id: unique within the source; the same id means the same message.
        type: the registered name of the message type, such as `shooting-range.fire-at`.
        data: the message itself.
        time: when it came about; with a time zone.
        subject: what it is about, for people and routers; the library does not use it.
        extensions: further attributes (`traceparent` and the like) as sorted pairs.
        asked: fingerprint of the request that it came by; None if it came by a queue. It never travels.
        opened: of a request that was opened, the session token of a view that shows its document. It never travels.
    """

    source: str
    id: str
    type: str
    data: Json
    time: datetime | None = None
    subject: str | None = None
    extensions: Extensions = ()
    asked: str | None = None
    opened: str | None = None

    def to_json(self) -> Json:
        """The envelope in the JSON event format of CloudEvents 1.0, as the package writes it but for blanks and escapes.

        Raises:
            CloudEventValidationError: the package does not take its attributes.
        """
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "datacontenttype": "application/json",
        }
        if self.time is not None:
            attributes["time"] = self.time
        if self.subject is not None:
            attributes["subject"] = self.subject
        attributes.update(self.extensions)
        # A copy: the package fills in the present where there is no time, which must not leak into a pure value.
        CloudEvent(dict(attributes))
        if self.time is not None:
            attributes["time"] = written_time(self.time)
        written = Json.of(attributes)
        return written if self.data.text == "null" else written.plus("data", self.data)

    def by_reference(self, address: str) -> Envelope:
        """The envelope without its data, which is at this address ("Dataref" extension of CloudEvents: the claim check)."""
        return replace(self, data=Json("null"), extensions=tuple(sorted((*self.extensions, (DATAREF, address)))))

    @property
    def reference(self) -> str | None:
        """Where the data is, if it does not travel in the envelope."""
        address = dict(self.extensions).get(DATAREF)
        return address if isinstance(address, str) else None

    def with_data(self, data: Json) -> Envelope:
        """The envelope with the data it refers to."""
        extensions = tuple(one for one in self.extensions if one[0] != DATAREF)
        return replace(self, data=data, extensions=extensions)

    @property
    def requeued(self) -> int:
        """How often it was sent to its queue once more; 0 if it is as its sender sent it."""
        return self._count(REQUEUED)

    @property
    def unexplained(self) -> int:
        """How often of these nobody knew why its queue had given it up."""
        return self._count(UNEXPLAINED)

    def once_more(self, unexplained: int = 0) -> Envelope:
        """The envelope as it is sent to its queue once more: the identity and the time stay, so it is a copy like any other.

        Every message that is sent again is marked by this, so that a queue with an adapter does not take it for a foreign body.

        Args:
            unexplained: how often its queue had given it up for no known reason; 0 once an operator has looked at it.
        """
        counted = {**dict(self.extensions), REQUEUED: self.requeued + 1, UNEXPLAINED: unexplained}
        if not unexplained:
            del counted[UNEXPLAINED]
        return replace(self, extensions=tuple(sorted(counted.items())))

    def _count(self, name: str) -> int:
        """An attribute that counts; what a stranger put in its place counts as 0."""
        number = dict(self.extensions).get(name)
        return number if type(number) is int and 0 <= number <= _MOST_COUNTED else 0

    @property
    def trace(self) -> Extensions:
        """The attributes of the "Distributed Tracing" extension of CloudEvents: the context in which the message came about.

        Empty if there is none, or none that can be: what is passed on must not grow with what a stranger sends.
        """
        given = dict(self.extensions)
        parent, state = given.get(TRACEPARENT), given.get(TRACESTATE)
        if not isinstance(parent, str) or not _TRACEPARENT.fullmatch(parent):
            return ()
        if not isinstance(state, str) or not 0 < len(state) <= MAX_TRACESTATE_LENGTH:
            return ((TRACEPARENT, parent),)
        return ((TRACEPARENT, parent), (TRACESTATE, state))

    def with_trace(self, trace: Extensions) -> Envelope:
        """The envelope with these attributes for its trace, as another one's `trace` says them."""
        others = (one for one in self.extensions if one[0] not in (TRACEPARENT, TRACESTATE))
        return replace(self, extensions=tuple(sorted((*others, *trace))))

    @classmethod
    def read(cls, body: bytes | str, *, limit: int = MAX_MESSAGE_BYTES) -> Envelope:
        """Read an envelope from the wire, or from where the library keeps one.

        Args:
            body: the envelope in JSON.
            limit: bytes that it may have. What came in by reference is longer than what comes over a queue.

        Raises:
            MalformedMessage: it is not JSON, not a CloudEvents 1.0 envelope, carries binary data, or is over a limit.
        """
        size = len(body.encode(errors="surrogatepass")) if isinstance(body, str) else len(body)
        if size > limit:
            raise MalformedMessage(
                f"The message has {size} bytes; at most {limit} are read. Send what is large as a blob and "
                "its address in the message."
            )
        try:
            attributes = read_json(body, nesting=MOST_NESTED)
        except ValueError as error:
            raise MalformedMessage(
                f"The message is not a CloudEvents 1.0 envelope in JSON. {error} Send it as one, or give this queue an adapter "
                "for foreign bodies."
            ) from None
        try:
            # Apart from its data: the package's parser knows doubles only.
            data = Json.of(attributes.pop("data", None))
            event = JSONFormat().read(_AsGiven, Json.of(attributes).text)
            return cls._from_event(event.get_attributes(), event.get_data(), data)
        except MalformedMessage:
            raise
        except BaseCloudEventException as error:
            raise MalformedMessage(
                f"The message is not a CloudEvents 1.0 envelope: {error}. Send it as one, or give this queue an adapter "
                "for foreign bodies."
            ) from error
        # A list in place of an object, nesting without end, and whatever the package meets.
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise MalformedMessage(
                f"The message is not a CloudEvents 1.0 envelope in JSON ({type(error).__name__}). Send it as one, or give "
                "this queue an adapter for foreign bodies."
            ) from error

    @classmethod
    def _from_event(cls, attributes: dict[str, Any], binary: object, data: Json) -> Envelope:
        if binary is not None:
            raise MalformedMessage("The message carries binary data (data_base64); handlers take JSON data only.")
        for name, value in attributes.items():
            if isinstance(value, str):
                value.encode()  # JSON can escape half a surrogate pair, which no store and no queue takes.
                if has_control(value):  # Ids are written to logs.
                    raise MalformedMessage(
                        f"The message's attribute {_shown(name)} has a control character, which CloudEvents forbids."
                    )
        for name in ("id", "source", "type"):
            if len(attributes[name]) > MAX_ATTRIBUTE_LENGTH:
                raise MalformedMessage(
                    f"The message's {name} has {len(attributes[name])} characters; at most {MAX_ATTRIBUTE_LENGTH} are allowed."
                )
        extensions = {name: value for name, value in attributes.items() if name not in _OWN_ATTRIBUTES}
        if bad := [name for name, value in extensions.items() if not isinstance(value, (str, int, bool))]:
            raise MalformedMessage(
                f"The extension attribute {_shown(bad[0])} is neither a string, an integer nor a boolean."
            )
        return cls(
            source=attributes["source"],
            id=attributes["id"],
            type=attributes["type"],
            data=data,
            time=attributes.get("time"),
            subject=attributes.get("subject"),
            extensions=tuple(sorted(extensions.items())),
        )


def _shown(name: str) -> str:
    """The name of an attribute, as errors quote it: a stranger may have chosen it."""
    return repr(name[:_LONGEST_SHOWN])


class _AsGiven(CloudEvent):
    """An event with no attributes but those that its sender gave it.

    The package makes up a time, and an id, which would let every copy of the message pass as a new one.
    """

    def __init__(self, attributes: dict[str, Any], data: Any = None) -> None:
        if missing := [name for name in _REQUIRED_ATTRIBUTES if not attributes.get(name)]:
            raise MalformedMessage(
                f"The message is not a CloudEvents 1.0 envelope: it has no {' and no '.join(missing)}. Send it as one, or "
                "give this queue an adapter for foreign bodies."
            )
        super().__init__(dict(attributes), data)
        self._given = attributes

    def get_attributes(self) -> dict[str, Any]:
        return self._given
