"""Outputs, as they are stored and as they are referred to."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import with_config

from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json, canonical
from exactlyonce.values.shapes import EXACT, absent_if

MAX_OUTPUT_BYTES: Final = 1_400_000
"""Most that all outputs of one message may have together: they have to fit one entity document, beside its state."""
MOST_CARRIED: Final = 32 * 1024
"""Bytes of an envelope above which its data travels in a blob, where there is a container for blobs."""


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
        index: its place among the messages of its handler, from which its id derives; -1 where nobody asks.
    """

    id: str
    destination: str
    envelope: Json
    delay: float = 0.0
    place: Place | None = None
    index: Annotated[int, absent_if(-1)] = field(default=-1, compare=False)

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


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OutputRef:
    """What is kept of an output for good."""

    id: str
    destination: str
    place: Place | None = None


def digest(outputs: tuple[Output, ...]) -> str:
    """One digest over the content of all outputs, in order: 128 bits, since it is stored with every message.

    The order of properties is no content: that of a mapping may follow a set's, and differ from process to process.
    """
    parts = [[output.destination, output.delay, output.envelope.value] for output in outputs]
    content = Json.of(canonical(parts)).text
    return b64encode(hashlib.sha256(content.encode()).digest()[:16])[:22].decode()
