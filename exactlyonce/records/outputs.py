"""Outputs, as they are stored and as they are referred to."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from pydantic import with_config

from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.shapes import EXACT

MAX_OUTPUT_BYTES: Final = 1_900_000
"""Most that all outputs of one message may have together: they have to fit one staged document."""


_OUTPUT_FRAME_BYTES: Final = 90  # `{"id":"","destination":"","envelope":,"delay":604800.0,"place":null},`, room left.


_PLACE_BYTES: Final = 70  # `{"channel":"","receiver":"","number":9007199254740991}`, with some room left.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Output:
    """One message to be published.

    Attributes:
        id: derived from the entity, the message that caused it, and its place among that message's outputs.
        destination: logical name of where it goes.
        envelope: the CloudEvents envelope, as it will be on the wire, to the letter; a string in documents.
        delay: seconds that it stays invisible after it was published.
        place: in its channel; None if it has none. The envelope says the same.
    """

    id: str
    destination: str
    envelope: Json
    delay: float = 0.0
    place: Place | None = None

    @property
    def size(self) -> int:
        """Bytes it takes in a document: the envelope, and what stands around it."""
        place = self.place
        placed = 0 if place is None else len(place.channel) + len(place.receiver.encode()) + _PLACE_BYTES
        names = len(self.id) + len(self.destination.encode())
        return Json.of(self.envelope.text).size + names + placed + _OUTPUT_FRAME_BYTES

    @property
    def ref(self) -> OutputRef:
        """What is kept of it for good."""
        return OutputRef(self.id, self.destination, self.place)

    @property
    def content(self) -> Content:
        """What is kept of it besides, until it is published."""
        return Content(self.envelope, self.delay)


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OutputRef:
    """What is kept of an output for good."""

    id: str
    destination: str
    place: Place | None = None


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Content:
    """What an entry keeps of an output that it owes, besides its reference."""

    envelope: Json
    delay: float = 0.0


def digest(outputs: tuple[Output, ...]) -> str:
    """One digest over the content of all outputs, in order: 128 bits, since it is stored with every message."""
    content = Json.of([[output.destination, output.delay, output.envelope.text] for output in outputs])
    return b64encode(hashlib.sha256(content.text.encode()).digest()[:16])[:22].decode()
