"""What a function gets for its messages: made by Microsoft's decoder from what the host would send it.

The host sends texts of a batch without the empty ones, since the Python worker does not ask for them. So where some messages of
a batch lack a property, that of another is at their place; a message without a body makes the whole batch undecodable.
"""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from azure.functions.meta import Datum
from azure.functions.servicebus import ServiceBusMessage, ServiceBusMessageInConverter

from .receiver import Delivery

_NUMBERS: Final = {"SequenceNumber"}
"""What the host sends of a batch as a collection of its own; other numbers go as JSON."""
_AS_JSON: Final = {"ApplicationProperties", "UserProperties", "DeliveryCount", "ExpiresAtUtc", "EnqueuedTimeUtc"}


def value_of(delivery: Delivery, *, binary: bool) -> ServiceBusMessage:
    """The value for a function that takes one message.

    Args:
        binary: whether its binding says `data_type=BINARY`; otherwise bodies travel as texts.

    Raises:
        UnicodeDecodeError: a body that is to be a text is none; the real host fails the invocation, too.
    """
    body = Datum(delivery.body, "bytes") if binary else Datum(delivery.body.decode(), "string")
    metadata = {name: _datum(value) for name, value in delivery.metadata.items() if value is not None}
    return ServiceBusMessageInConverter.decode_single_message(body, trigger_metadata=metadata)


def values_of(deliveries: Sequence[Delivery], *, binary: bool) -> list[ServiceBusMessage]:
    """The value for a function that takes a batch.

    Raises:
        UnicodeDecodeError: as `value_of`.
        IndexError: a message has no body.
    """
    if binary:
        body = Datum(SimpleNamespace(bytes=[delivery.body for delivery in deliveries]), "collection_bytes")
    else:
        body = _texts([delivery.body.decode() for delivery in deliveries])
    metadata = {
        f"{name}Array": _column(name, [delivery.metadata[name] for delivery in deliveries])
        for name in deliveries[0].metadata
    }
    return ServiceBusMessageInConverter.decode_multiple_messages(body, trigger_metadata=metadata)


def _datum(value: object) -> Datum:
    return Datum(value, "string") if isinstance(value, str) else Datum(json.dumps(value), "json")


def _column(name: str, values: list[Any]) -> Datum:
    if name in _NUMBERS:
        return Datum(SimpleNamespace(sint64=values), "collection_sint64")
    return Datum(json.dumps(values), "json") if name in _AS_JSON else _texts(values)


def _texts(values: list[str | None]) -> Datum:
    return Datum(SimpleNamespace(string=[value for value in values if value]), "collection_string")
