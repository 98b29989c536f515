"""Messages of Service Bus as the host delivers them."""

from __future__ import annotations

from typing import Any

from azure.functions.servicebus import ServiceBusMessage

from exactlyonce import Envelope
from exactlyonce.transports.service_bus.binding import Content, written


def delivered(message: Envelope | Content, **more: Any) -> ServiceBusMessage:
    """One delivery, the first unless it says otherwise."""
    content = written(message.to_json()) if isinstance(message, Envelope) else message
    given: dict[str, Any] = {
        "message_id": "o-1",
        "delivery_count": 1,
        "sequence_number": 7,
        "content_type": content.type,
        "application_properties": dict(content.properties),
        "user_properties": {},
    }
    return ServiceBusMessage(body=content.body, **{**given, **more})
