"""The outbox of a ledger: entries of transactions whose outputs are not proved sent; with outputs, answers, kept messages."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Final

from pydantic import PlainSerializer, PlainValidator, with_config

from exactlyonce.records.sequences import CHANNEL, Place, Sequences, stated_place
from exactlyonce.values.envelope import (
    STABLE_TIME,
    EntityRef,
    Envelope,
    derived_id,
    microseconds,
    moment_of,
    stable_text,
    written_time,
)
from exactlyonce.values.frozen_json import EXACT, Json, absent_if, canonical

# Answers to requests.


LARGE: Final = 2 * 1024
"""Bytes above which an answer stays out of documents that other commits write again."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. Text, so that every retry gets the same bytes.

    Attributes:
        status: status code of HTTP.
        headers: names and values.
        body: JSON; None if empty.
        asked: fingerprint of the request; empty while its handler runs.
    """

    status: int = 204
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    asked: str = ""

    @property
    def size(self) -> int:
        """Bytes of body and headers."""
        return len((self.body or "").encode()) + sum(len(name) + len(value) for name, value in self.headers)

    @property
    def is_large(self) -> bool:
        """Whether the answer is stored apart from documents that other commits write."""
        return self.size > LARGE

    def is_to(self, fingerprint: str) -> bool:
        """Whether the answer belongs to the request with this fingerprint, not to another with the same key."""
        return self.asked == fingerprint


# Outputs, in full and as references.


MAX_OUTPUT_BYTES: Final = 1_400_000
"""Limit for all outputs of one message together: they have to fit one entity document, beside the state."""
MOST_CARRIED: Final = 32 * 1024
"""Bytes of an envelope above which the data travels in a blob, where a container for blobs is configured."""


_OUTPUT_FRAME_BYTES: Final = 90  # `{"id":"","destination":"","envelope":,"delay":604800.0,"place":null},`, room left.


_PLACE_BYTES: Final = 70  # `{"channel":"","receiver":"","number":9007199254740991}`, with some room left.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Output:
    """One message to be published.

    Attributes:
        id: derived from the entity, the causing message, and the place among that message's outputs.
        destination: logical name of the destination.
        envelope: the CloudEvents envelope, exactly as on the wire; a string in documents.
        delay: seconds of invisibility after publishing.
        place: place in the channel; None without one. The envelope states the same.
        index: place among the messages of the handler, part of the id's derivation; -1 where unused.
    """

    id: str
    destination: str
    envelope: Json
    delay: float = 0.0
    place: Place | None = None
    index: Annotated[int, absent_if(-1)] = field(default=-1, compare=False)

    @property
    def size(self) -> int:
        """Bytes in a document: the envelope, and the properties around it."""
        place = self.place
        placed = 0 if place is None else len(place.channel) + len(place.receiver.encode()) + _PLACE_BYTES
        names = len(self.id) + len(self.destination.encode())
        return Json.of(self.envelope.text).size + names + placed + _OUTPUT_FRAME_BYTES

    @property
    def ref(self) -> OutputRef:
        """The reference kept for good."""
        return OutputRef(self.id, self.destination, self.place)


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OutputRef:
    """The part of an output that is kept for good."""

    id: str
    destination: str
    place: Place | None = None


def digest(outputs: tuple[Output, ...]) -> str:
    """One digest over the content of all outputs, in order: 128 bits, since every message stores a digest.

    The order of properties is no content: a mapping may be filled from a set, and differ from process to process.
    """
    parts = [[output.destination, output.delay, output.envelope.value] for output in outputs]
    content = Json.of(canonical(parts)).text
    return b64encode(hashlib.sha256(content.encode()).digest()[:16])[:22].decode()


# Kept messages: the ledger names each, a staged document holds it. Sending, cancelling and releasing are conditional saves of
# the same document. A message gets number and time at its release, so a cancelled one leaves no gap.


_SUFFIX: Final = "-kept"


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Kept:
    """A message kept until due.

    Attributes:
        id: id of the future output.
        due: time of release.
        tx: name of the staged document, shared with other kept messages of the same commit.
    """

    id: str
    due: datetime
    tx: str


def kept_by(tx: str) -> str:
    """Name of the staged document of the messages kept by a transaction; its outputs may be staged apart."""
    return f"{tx}{_SUFFIX}"


def keeper_of(tx: str) -> str:
    """The transaction of a staged document with this name."""
    return tx.removesuffix(_SUFFIX)


_DATA: Final = ',"data":'
"""Precedes the data of an envelope. An entry leaves it out if the data follows directly."""

Moment = Annotated[datetime, PlainSerializer(microseconds), PlainValidator(moment_of)]
"""A time as a number: half as many bytes as text, and every commit writes all entries."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Pending:
    """An owed output.

    Attributes:
        envelope: the whole envelope; or its type and the other parts that do not follow from the entry, in one piece, or in
            two if the output has a place or is timed. Every commit writes the entries again, so each byte is paid again and
            again.
        index: place among the messages of the handler, part of the id's derivation.
        to: the destination, as a place in the ledger's list.
        delay: seconds of invisibility after publishing.
        id: id of the output, where not derived from cause and index.
        place: index of the ledger's sequence, and the number; None without a sequence, or if the envelope states the place.
    """

    envelope: Json | tuple[str, ...]
    index: Annotated[int, absent_if(0)] = 0
    to: Annotated[int, absent_if(0)] = 0
    delay: Annotated[float, absent_if(0.0)] = 0.0
    id: Annotated[str | None, absent_if(None)] = None
    place: Annotated[tuple[int, int] | None, absent_if(None)] = None


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One transaction with owed outputs.

    Attributes:
        cause: hash of the processed message.
        tx: the transaction: a book and a number.
        at: time of the attempt. Never used to judge age.
        since: stable time of the outputs, in milliseconds since 1970; None if they are untimed.
        outputs: the owed outputs.
        request: id of the opened request that awaits the answer; None without a request.
        answer: the answer to the request.
    """

    cause: str
    tx: str
    at: Moment
    since: Annotated[int | None, absent_if(None)] = None
    outputs: Annotated[tuple[Pending, ...], absent_if(())] = ()
    request: Annotated[str | None, absent_if(None)] = None
    answer: Annotated[Answer | None, absent_if(None)] = None

    def owed_outputs(self, entity: EntityRef, destinations: tuple[str, ...], sequences: Sequences) -> Iterator[Output]:
        """The outputs, exactly as committed.

        Args:
            entity: the sender.
            destinations, sequences: lists of the ledger.
        """
        for output in self.outputs:
            id, envelope, place = output.id or derived_id(entity, self.cause, output.index), output.envelope, None
            if output.place is not None:
                sequence, number = sequences[output.place[0]], output.place[1]
                place = Place(sequence.channel, sequence.receiver, number)
            if isinstance(envelope, tuple):
                *pieces, rest = envelope
                whole = (*pieces, rest if rest.startswith((",", "}")) else _DATA + rest)
                derived = _derived(id, entity.source, self.at, self.since, place)
                envelope = Json("".join(piece for pair in zip(derived, whole, strict=True) for piece in pair))
            if place is None and f'"{CHANNEL}":' in envelope.text:
                place = stated_place(Envelope.read(envelope.text))
            yield Output(id, destinations[output.to], envelope, output.delay, place)

    def without_sequences(self, entity: EntityRef, destinations: tuple[str, ...], sequences: Sequences) -> OutboxEntry:
        """The entry with its numbered outputs in full. Arguments as for `owed_outputs`."""
        owed = zip(self.outputs, self.owed_outputs(entity, destinations, sequences), strict=True)
        full = (
            item if item.place is None else replace(item, envelope=output.envelope, place=None) for item, output in owed
        )
        return replace(self, outputs=tuple(full))


def pending(
    output: Output, index: int, entity: EntityRef, entry: OutboxEntry, *, to: int, sequences: Sequences
) -> Pending:
    """The part of an output stored in an entry.

    Args:
        output: the owed output.
        index: place among the messages of the handler.
        entity: the sender.
        entry: the entry of the output.
        to: place of the destination in the ledger's list.
        sequences: sequences of the ledger.
    """
    pieces, rest, derivable = [], output.envelope.text, True
    for derived in _derived(output.id, entity.source, entry.at, entry.since, output.place):
        piece, match, rest = rest.partition(derived)
        derivable = derivable and bool(match)
        pieces.append(piece)
    number = None if output.place is None or not derivable else _number(output.place, sequences)
    derivable = derivable and not pieces[0] and (number is None) is (output.place is None)
    envelope = (*pieces[1:], rest.removeprefix(_DATA)) if derivable else output.envelope
    id = None if output.id == derived_id(entity, entry.cause, index) else output.id
    return Pending(envelope, index, to, output.delay, id, number if derivable else None)


def _number(place: Place, sequences: Sequences) -> tuple[int, int] | None:
    """Index of a place's sequence, and the number; None without a matching sequence."""
    there = (index for index, item in enumerate(sequences) if item.channel == place.channel)
    index = next(there, None)
    return None if index is None or sequences[index].receiver != place.receiver else (index, place.number)


def _derived(id: str, source: str, at: datetime, since: int | None, place: Place | None) -> tuple[str, ...]:
    """The pieces of an envelope that follow from its entry: up to the type, the attributes after the type, and the stable time.

    In an output sent by reference, the address precedes the number within the channel, as attributes are sorted. Names that
    JSON writes otherwise are absent from the envelope; the envelope is then stored whole.
    """
    first = f'{{"specversion":"1.0","id":"{id}","source":"{source}","type":"'
    middle = f'","datacontenttype":"application/json","time":"{written_time(at)}"'
    last = "" if since is None else f',"{STABLE_TIME}":"{stable_text(since)}"'
    if place is not None:
        channel, receiver, number = (f',"{name}":"{value}"' for name, value in place.extensions)
        middle, last = middle + channel, receiver + number + last
    return (first, middle, last) if last else (first, middle)
