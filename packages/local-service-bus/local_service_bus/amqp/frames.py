"""The frames that a client sends, cut apart before proton reads them, since proton does not tell a transfer's message format.

AMQP 1.0, part 2, section 2.3: a frame begins with its size, in four bytes; and with where its body begins, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from proton import Described

from local_service_bus.amqp.sections import decode
from local_service_bus.broker.refusals import RefusedError

BATCH: Final = 0x80013700
"""The format of a message whose data sections are messages themselves."""

_HEADER: Final = 8
"""Bytes of a frame's header, and of the protocol header that comes before all frames."""

_KEPT: Final = 1024
"""Bytes of a frame that are looked at; the fields of a transfer take fewer."""

_TRANSFER: Final = 0x14
_FORMAT: Final = 3
"""The place of the format among the fields of a transfer."""


class Frames:
    """Knows which frame was read last."""

    def __init__(self) -> None:
        self._frame = bytearray()  # Its beginning only.
        self._seen = 0
        self._size = _HEADER

    def cut(self, data: bytes) -> Iterator[bytes]:
        """What was received in pieces, none of which goes beyond the end of a frame. Nothing is held back.

        Args:
            data: As it came; it may begin and end anywhere in a frame.
        """
        rest = memoryview(data)
        while rest:
            if self._seen == self._size:
                self._frame.clear()
                self._seen, self._size = 0, _HEADER
            piece = rest[: self._size - self._seen]
            rest = rest[len(piece) :]
            self._seen += len(piece)
            self._frame += piece[: _KEPT - len(self._frame)]
            if self._seen == self._size == _HEADER and not self._frame.startswith(b"AMQP"):
                self._size = max(_HEADER, int.from_bytes(self._frame[:4], "big"))
            yield bytes(piece)

    def message_format(self) -> int:
        """The format that the last frame gives, which is the first of a transfer; 0 if it gives none."""
        body = bytes(self._frame[4 * self._frame[4] :]) if len(self._frame) > _HEADER else b""
        with suppress(RefusedError):  # The engine refuses what is no AMQP, and ends the connection.
            performative = decode(body)
            if isinstance(performative, Described) and performative.descriptor == _TRANSFER:
                fields: Any = performative.value
                return int(fields[_FORMAT] or 0) if len(fields) > _FORMAT else 0
        return 0
