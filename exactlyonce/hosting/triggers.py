"""From what a trigger delivers to envelopes, and what else it tells: the only import of `azure.functions`."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import azure.functions as func

from exactlyonce.errors import MalformedMessage
from exactlyonce.hosting.adapters import Adapter, PlainJson
from exactlyonce.transports.service_bus.binding import Content, read
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, REQUEUED, Envelope

Delivered = func.QueueMessage | func.ServiceBusMessage
"""What a trigger delivers."""

_LONGEST_REASON: Final = 100


def envelope_of(message: Delivered, adapter: Adapter | None = None) -> Envelope:
    """Read what a trigger delivers. An adapter gets the body as it came, unless that was sent to its queue once more.

    Raises:
        MalformedMessage: naming the queue message, since the message's own id may not be known.
    """
    try:
        return _read(message, adapter)
    except MalformedMessage as error:
        raise MalformedMessage(f"Queue message {id_of(message)}: {error}") from error


def id_of(message: Delivered) -> str:
    """What tells a queue message from all others in its queue. It says nothing about whether two are copies of one message.

    The id of a Service Bus message is its sender's choice, if it has one at all; so its number is added, and a hash of its
    body, since numbers begin anew in every queue.
    """
    if isinstance(message, func.ServiceBusMessage):
        number, digest = getattr(message, "sequence_number", None), hashlib.sha256(message.get_body()).hexdigest()
        return f"{message.message_id or 'unknown'}/{number}/{digest[:16]}"
    return message.id or "unknown"


def delivery_of(message: Delivered) -> int | None:
    """Which delivery of a message this is, from 1; None if the host does not say."""
    name = "delivery_count" if isinstance(message, func.ServiceBusMessage) else "dequeue_count"
    count: int | None = getattr(message, name, None)
    return count


def broker_says(message: Delivered) -> str | None:
    """Why the broker took a message out of its queue, such as `MaxDeliveryCountExceeded`; None if it does not say.

    Its description is left out: whoever puts a message there by hand may quote it.
    """
    given = getattr(message, "dead_letter_reason", None) or _properties(message).get("DeadLetterReason")
    return str(given)[:_LONGEST_REASON] if given else None


def _read(message: Delivered, adapter: Adapter | None) -> Envelope:
    if adapter is not None and not _was_sent_again(message):
        return adapter(message.get_body())
    envelope = Envelope.read(_structured(message))
    if isinstance(adapter, PlainJson):
        adapter.require_own(envelope)
    return envelope


def _structured(message: Delivered) -> bytes:
    if isinstance(message, func.ServiceBusMessage):
        return read(Content(message.get_body(), message.content_type, _properties(message)))
    body: bytes = message.get_body()
    return body


def _was_sent_again(message: Delivered) -> bool:
    """Whether a message is an envelope that `Envelope.once_more` has marked. It may be any foreign body."""
    try:
        body = _structured(message)
        if REQUEUED.encode() not in body or len(body) > MAX_MESSAGE_BYTES:
            return False  # Nearly always, and told without reading it twice.
        content = json.loads(body)
    except (MalformedMessage, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "specversion" in content and REQUEUED in content


def _properties(message: Delivered) -> dict[str, Any]:
    """Application properties, under the name of today and that of before."""
    named = (getattr(message, name, None) for name in ("user_properties", "application_properties"))
    return {name: value for properties in named if isinstance(properties, dict) for name, value in properties.items()}
