"""An envelope as an AMQP message, and back: the AMQP protocol binding of CloudEvents 1.0.

In binary mode the data is the body, and every attribute a property with the prefix `cloudEvents:`, so that subscriptions can
filter by attributes. In structured mode the whole envelope is the body. Binary mode is written wherever possible; both modes
are read.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from exactlyonce.errors import MalformedMessage
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, MOST_NESTED, written_time
from exactlyonce.values.frozen_json import Json, read_json

# Limits of Azure Service Bus.


MAX_BYTES: Final = 256 * 1024
"""Most bytes of a message in the Standard tier, with its header."""

LONGEST_DELIVERY_LIMIT: Final = timedelta(days=49)
"""AMQP counts the milliseconds of a time to live in 32 bits."""


_STRUCTURED: Final = "application/cloudevents"
"""Beginning of the content type of structured mode."""
_AS_JSON: Final = f"{_STRUCTURED}+json"
_PREFIX: Final = "cloudEvents:"
_ATTRIBUTE: Final = re.compile(r"cloudevents[:_](.+)", re.IGNORECASE)
"""The binding has a second prefix, for clients without colons in names. Some clients write it in lower case."""
_MAX_PROPERTIES: Final = 16 * 1024
"""Most characters of all attributes as properties; the service takes 64 KiB of properties."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a message: its body with the media type, if any, and the application properties."""

    body: bytes
    type: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


def written(envelope: Json) -> Content:
    """An envelope as content; in structured mode if an attribute cannot be a property, or all attributes are too long."""
    attributes = envelope.value
    data, type = attributes.pop("data", None), attributes.pop("datacontenttype", None)
    properties = {f"{_PREFIX}{name}": value for name, value in attributes.items()}
    if not all(_plain(value) for value in (*properties.values(), type or "")) or _length(properties) > _MAX_PROPERTIES:
        return Content(envelope.text.encode(), _AS_JSON)
    return Content(Json.of(data).text.encode(), type, properties)


def read(content: Content) -> bytes:
    """The envelope in JSON, for `Envelope.read`. A body in neither mode stays unchanged.
    Raises `MalformedMessage`: the message is in binary mode, but its data is no JSON, or an attribute has two values."""
    attributes = _attributes(content.properties)
    if not attributes or len(content.body) > MAX_MESSAGE_BYTES:
        return content.body
    try:
        data = read_json(content.body, nesting=MOST_NESTED) if content.body else None
        if _is_structured(content, data):
            return content.body
        if content.type:
            attributes["datacontenttype"] = content.type
        return Json.of({**attributes, "data": data}).text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedMessage(
            f"The message is a CloudEvent in binary mode whose data ({content.type or 'of no type'}) is no JSON. {error} "
            "Handlers take JSON data only: correct the sender, or give this queue an adapter."
        ) from None


def _attributes(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes among application properties, in the form of JSON. Null is unset."""
    attributes: dict[str, Any] = {}
    for property, value in properties.items():
        named = _ATTRIBUTE.fullmatch(property)
        if named is not None and value is not None and attributes.setdefault(named[1], _json(value)) != _json(value):
            raise MalformedMessage(
                f"The message has two values for one attribute, under prefixes such as {_PREFIX!r} and 'cloudEvents_'. "
                "Correct the sender."
            )
    return attributes


def _json(value: Any) -> Any:
    """A value of AMQP in the JSON format: timestamps and bytes have no further form there."""
    if isinstance(value, datetime):
        return written_time(value if value.tzinfo else value.replace(tzinfo=timezone.utc))
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _is_structured(content: Content, data: object) -> bool:
    """Whether the body is the envelope, in spite of attributes: structured mode may have attributes, too.

    The type alone does not decide. The host sends the types of a batch without the missing types, so that a message may come
    with another message's type.
    """
    named = (content.type or "").lower().startswith(_STRUCTURED)
    return named and isinstance(data, dict) and "specversion" in data


def _plain(value: object) -> bool:
    """Whether a value has a type of both CloudEvents and AMQP."""
    return isinstance(value, str | bool) or (isinstance(value, int) and -(2**31) <= value < 2**31)


def _length(properties: Mapping[str, Any]) -> int:
    return sum(len(name) + len(str(value)) for name, value in properties.items())
