"""Messages on the wire: a row of sections, of which all but the header and the annotations pass unread.

AMQP 1.0, part 3, section 3.2. What a sender wrote is given on byte for byte; proton's codec is asked for the few
sections that the broker reads or writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from proton import Data, Described, symbol, timestamp, uint, ulong

from local_service_bus.broker.messages import Content, Stored
from local_service_bus.broker.refusals import ARGUMENT_ERROR, RefusedError

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
FOOTER: Final = 0x78

REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"
"""Application properties of a dead letter."""

_STATES: Final = {"active": 0, "deferred": 1, "scheduled": 2}
_SMALL_CODE: Final = b"\x00\x53"
_LARGE_CODE: Final = b"\x00\x80"
"""What a section begins with: a descriptor, of one byte or of eight."""

_WIDTHS: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
"""Bytes of a value by the first half of its format code; other codes are followed by a size, of 1 or 4 bytes."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of an encoded message, its descriptor included."""

    code: int
    encoded: bytes

    @property
    def value(self) -> Any:
        """What it says, in proton's types."""
        return decode(self.encoded).value


def decode(encoded: bytes) -> Any:
    """Read one AMQP value.

    Raises:
        RefusedError: if it is none.
    """
    data = Data()
    try:
        data.decode(encoded)
    except Exception as error:
        raise _malformed() from error
    data.rewind()
    data.next()
    return owned(data.get_object())


def encode(value: Any) -> bytes:
    """Write one AMQP value."""
    data = Data()
    data.put_object(value)
    encoded: bytes = data.encode()
    return encoded


def owned(value: Any) -> Any:
    """A value of proton's whose binaries are ours: proton's own are windows into memory that it frees."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {owned(name): owned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [owned(item) for item in value]
    if isinstance(value, Described):
        return Described(value.descriptor, owned(value.value))
    return value


def split(payload: bytes) -> list[Section]:
    """The sections of an encoded message, in order.

    Raises:
        RefusedError: if it is no message.
    """
    sections = []
    start = 0
    try:
        while start < len(payload):
            code, value_at = _descriptor(payload, start)
            end = _end_of_value(payload, value_at)
            if not HEADER <= code <= FOOTER or end > len(payload):
                raise _malformed()
            sections.append(Section(code, payload[start:end]))
            start = end
    except IndexError as error:
        raise _malformed() from error
    return sections


def messages_in(batch: bytes) -> list[bytes]:
    """The encoded messages of a batch, each in a data section of its own; what its envelope says beside them is not looked at.

    Raises:
        RefusedError: if it is no batch.
    """
    inner = [_binary(part) for part in split(batch) if part.code == DATA]
    if not inner:
        raise _malformed()
    return inner


def read(payload: bytes) -> Content:
    """What the broker has to know of a message.

    Raises:
        RefusedError: if it is no message.
    """
    try:
        return _content(payload)
    except (AttributeError, TypeError, ValueError) as error:  # A section is not of the type that it has to be.
        raise _malformed() from error


def _content(payload: bytes) -> Content:
    found = {part.code: part for part in split(payload)}
    header = _list(found.get(HEADER), 5)
    properties = _list(found.get(PROPERTIES), 13)
    annotations = _map(found.get(MESSAGE_ANNOTATIONS))
    milliseconds = header[2]
    scheduled_for = annotations.get("x-opt-scheduled-enqueue-time")
    return Content(
        payload=payload,
        message_id=_text(properties[0]),
        session_id=properties[10],
        time_to_live=None if milliseconds is None else milliseconds / 1000,
        scheduled_for=None if scheduled_for is None else scheduled_for / 1000,
        correlation_id=_text(properties[5]),
        to=properties[2],
        reply_to=properties[4],
        subject=properties[3],
        reply_to_session_id=properties[12],
        content_type=_text(properties[6]),
        properties=_map(found.get(APPLICATION_PROPERTIES)),
    )


def write(stored: Stored, *, by_request: bool = False) -> bytes:
    """A message as its receiver gets it: with delivery count, annotations, and the reason if it is a dead letter.

    Args:
        by_request: It does not come by a link, whose deliveries have the token of the lock as their tag.
    """
    sections = split(stored.content.payload)
    found = {section.code: section for section in sections}
    header = [*_list(found.get(HEADER), 5)[:4], uint(stored.delivery_count)]
    annotations = {**_map(found.get(MESSAGE_ANNOTATIONS)), **_annotations(stored)}
    parts = [
        _described(HEADER, header),
        *_delivery_annotations(stored if by_request else None, found.get(DELIVERY_ANNOTATIONS)),
        _described(MESSAGE_ANNOTATIONS, annotations),
        *_properties(stored, found.get(PROPERTIES)),
        *_application_properties(stored, found.get(APPLICATION_PROPERTIES)),
        *(section.encoded for section in sections if section.code > APPLICATION_PROPERTIES),
    ]
    return b"".join(parts)


def _delivery_annotations(locked: Stored | None, section: Section | None) -> list[bytes]:
    if locked is None or locked.token is None:
        return [section.encoded] if section else []
    return [_described(DELIVERY_ANNOTATIONS, {**_map(section), symbol("x-opt-lock-token"): locked.token})]


def _annotations(stored: Stored) -> dict[symbol, Any]:
    named: dict[str, Any] = {
        "x-opt-sequence-number": stored.sequence_number,
        "x-opt-enqueued-time": milliseconds(stored.enqueued_at),
        "x-opt-message-state": _STATES[stored.state],
    }
    if stored.token is not None:
        named["x-opt-locked-until"] = milliseconds(stored.lock_ends_at)
    if stored.death is not None:
        named["x-opt-deadletter-source"] = stored.death.source
    return {symbol(name): value for name, value in named.items()}


def _application_properties(stored: Stored, section: Section | None) -> list[bytes]:
    set_here = dict(stored.changed)
    if stored.death is not None:
        reasons = {REASON: stored.death.reason, DESCRIPTION: stored.death.description}
        set_here |= {name: text for name, text in reasons.items() if text is not None}
    if not set_here:
        return [section.encoded] if section else []
    return [_described(APPLICATION_PROPERTIES, {**_map(section), **set_here})]


def _properties(stored: Stored, section: Section | None) -> list[bytes]:
    """Those of the sender, with the id that the message got here if the sender gave none."""
    message_id, *others = _list(section, 1)
    if message_id is not None or stored.content.message_id is None:
        return [section.encoded] if section else []
    return [_described(PROPERTIES, [stored.content.message_id, *others])]


def milliseconds(seconds: float) -> timestamp:
    """A point in time as AMQP writes it."""
    return timestamp(round(seconds * 1000))


def _described(code: int, value: Any) -> bytes:
    return encode(Described(ulong(code), value))


def _descriptor(payload: bytes, start: int) -> tuple[int, int]:
    """Code of the section at `start`, and where its value begins."""
    if payload[start : start + 2] == _SMALL_CODE:
        return payload[start + 2], start + 3
    if payload[start : start + 2] == _LARGE_CODE:
        return int.from_bytes(payload[start + 2 : start + 10], "big"), start + 10
    raise _malformed()


def _end_of_value(payload: bytes, start: int) -> int:
    kind = payload[start] >> 4
    if kind in _WIDTHS:
        return start + 1 + _WIDTHS[kind]
    width = 1 if kind in (0xA, 0xC, 0xE) else 4
    if payload[start] == 0x00 or len(payload) < start + 1 + width:
        raise _malformed()
    return start + 1 + width + int.from_bytes(payload[start + 1 : start + 1 + width], "big")


def _binary(section: Section) -> bytes:
    value = section.value
    return value if isinstance(value, bytes) else b""


def _list(section: Section | None, length: int) -> Sequence[Any]:
    """The fields of a list section; those that are not there are None."""
    fields = list(section.value) if section else []
    return fields + [None] * (length - len(fields))


def _map(section: Section | None) -> Mapping[Any, Any]:
    return dict(section.value) if section else {}


def _text(value: object) -> str | None:
    """An id of whatever type as text."""
    return None if value is None else str(int(value) if isinstance(value, int) else value)


def _malformed() -> RefusedError:
    return RefusedError(ARGUMENT_ERROR, "This is no AMQP message: its sections cannot be told apart.")
