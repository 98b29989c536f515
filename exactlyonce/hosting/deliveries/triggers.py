"""Trigger messages: their envelopes, ids and delivery counts. Only `hosting` imports `azure.functions`."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import azure.functions as func

from exactlyonce.errors import ExactlyOnceError, MalformedMessage
from exactlyonce.hosting.deliveries.adapters import Adapter, PlainJson
from exactlyonce.raised import ApplicationsCode, class_of
from exactlyonce.transports.service_bus.binding import Content, read
from exactlyonce.values.declarations import kind_of
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, MOST_NESTED, REQUEUED, Envelope, printable
from exactlyonce.values.frozen_json import read_json

Delivered = func.QueueMessage | func.ServiceBusMessage
"""A message as a trigger delivers it."""

_LONGEST_REASON: Final = 100


def envelope_of(message: Delivered, adapter: Adapter | None = None) -> Envelope:
    """Read the envelope of a trigger message. An adapter gets the delivered body, unless the library returned it to the queue.

    Raises:
        MalformedMessage: naming the queue message, since the message's own id may not be known.
    """
    try:
        return _read(message, adapter)
    except MalformedMessage as error:
        raise MalformedMessage(f"Queue message {id_of(message)}: {error}") from error


def id_of(message: Delivered) -> str:
    """An id that is unique in its queue. It does not identify copies of one message.

    The sender chooses the id of a Service Bus message, if it has one at all. So the sequence number is added, and a hash of the
    body, since each queue numbers its own messages.
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
    """Why the broker dead-lettered a message, such as `MaxDeliveryCountExceeded`; None if it does not say.

    Its description is left out: code that dead-letters a message may quote the body there.
    """
    given = getattr(message, "dead_letter_reason", None) or _properties(message).get("DeadLetterReason")
    return str(given)[:_LONGEST_REASON] if given else None


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
    """Whether a message is an envelope that `Envelope.once_more` has marked. Its body may be anything."""
    try:
        body = _structured(message)
        if REQUEUED.encode() not in body or len(body) > MAX_MESSAGE_BYTES:
            return False  # As nearly always; the body is not parsed twice.
        content = read_json(body, nesting=MOST_NESTED)
    except (MalformedMessage, ValueError):
        return False
    return isinstance(content, dict) and "specversion" in content and REQUEUED in content


def _properties(message: Delivered) -> dict[str, Any]:
    """Application properties, under their present and their former name."""
    named = (getattr(message, name, None) for name in ("user_properties", "application_properties"))
    return {name: value for properties in named if isinstance(properties, dict) for name, value in properties.items()}
