"""The outbox of a ledger: entries of transactions whose outputs are not known to be sent."""

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

# Answers to requests, as entries and records keep them.


LARGE: Final = 2 * 1024
"""Bytes above which an answer is not kept in a document that other commits write again."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the request that a message came by. It is text, so that every retry gets the same bytes.

    Attributes:
        status: status code of HTTP.
        headers: names and values.
        body: JSON; None for none.
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
        """Whether it is kept apart from what other commits write."""
        return self.size > LARGE

    def is_to(self, fingerprint: str) -> bool:
        """Whether it answers the request with this fingerprint, and not another one that had its key."""
        return self.asked == fingerprint


# Outputs, as they are stored and as they are referred to.


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


# Kept messages: what an entity sends at a later time, and may cancel until then.
#
# The ledger names them, and a staged document holds each. So the commit that sends one, the one that cancels it and the one
# that releases it are saves of one document, each on the condition that it has not changed: a message is either released or
# cancelled. It gets its number and its time when it is released, so a cancelled one leaves no gap, and no age counts before.


_SUFFIX: Final = "-kept"


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Kept:
    """A message that is kept until it is due.

    Attributes:
        id: of the output that it will be.
        due: when it is to be released.
        tx: names the staged document that holds it, with others of the same commit.
    """

    id: str
    due: datetime
    tx: str


def kept_by(tx: str) -> str:
    """What names the staged document of the messages that a transaction keeps; its outputs may be staged apart from them."""
    return f"{tx}{_SUFFIX}"


def keeper_of(tx: str) -> str:
    """The transaction whose outputs or kept messages a staged document of this name holds."""
    return tx.removesuffix(_SUFFIX)


_DATA: Final = ',"data":'
"""Precedes the data of an envelope. An entry leaves it out where nothing else does."""

Moment = Annotated[datetime, PlainSerializer(microseconds), PlainValidator(moment_of)]
"""A time as a number, since every commit writes what is owed: half as many bytes as a text has."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Pending:
    """An output that is owed.

    Attributes:
        envelope: to the letter; or its type, and what else of it does not follow from the entry, in one piece, or in two where
            it has a place or is timed. Every commit writes what is owed, so each byte of it is paid again and again.
        index: its place among the messages of its handler, from which its id derives.
        to: its destination, as a place in the ledger's list.
        delay: seconds that it stays invisible after it was published.
        id: of the output, where it does not derive from cause and index.
        place: which of the ledger's sequences numbers it, and its number; None if none does, or if the envelope says it.
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
    """One transaction: what it owes.

    Attributes:
        cause: hash of the message that was processed.
        tx: its transaction: a book and a number in it.
        at: time of the attempt. Never used to judge age.
        since: stable time of its outputs, in milliseconds since 1970; None if they are untimed.
        outputs: that it owes.
        request: id of the opened request whose answer is to be kept; None if there is none.
        answer: to that request.
    """

    cause: str
    tx: str
    at: Moment
    since: Annotated[int | None, absent_if(None)] = None
    outputs: Annotated[tuple[Pending, ...], absent_if(())] = ()
    request: Annotated[str | None, absent_if(None)] = None
    answer: Annotated[Answer | None, absent_if(None)] = None

    def owed_outputs(self, entity: EntityRef, destinations: tuple[str, ...], sequences: Sequences) -> Iterator[Output]:
        """The outputs, to the letter.

        Args:
            entity: that sends them.
            destinations, sequences: of the ledger.
        """
        for one in self.outputs:
            id, envelope, place = one.id or derived_id(entity, self.cause, one.index), one.envelope, None
            if one.place is not None:
                sequence, number = sequences[one.place[0]], one.place[1]
                place = Place(sequence.channel, sequence.receiver, number)
            if isinstance(envelope, tuple):
                *pieces, rest = envelope
                whole = (*pieces, rest if rest.startswith((",", "}")) else _DATA + rest)
                derived = _derived(id, entity.source, self.at, self.since, place)
                envelope = Json("".join(piece for pair in zip(derived, whole, strict=True) for piece in pair))
            if place is None and f'"{CHANNEL}":' in envelope.text:
                place = stated_place(Envelope.read(envelope.text))
            yield Output(id, destinations[one.to], envelope, one.delay, place)

    def without_sequences(self, entity: EntityRef, destinations: tuple[str, ...], sequences: Sequences) -> OutboxEntry:
        """The entry with its numbered outputs in full. Arguments as of `owed_outputs`."""
        owed = zip(self.outputs, self.owed_outputs(entity, destinations, sequences), strict=True)
        full = (
            one if one.place is None else replace(one, envelope=output.envelope, place=None) for one, output in owed
        )
        return replace(self, outputs=tuple(full))


def pending(
    output: Output, index: int, entity: EntityRef, entry: OutboxEntry, *, to: int, sequences: Sequences
) -> Pending:
    """What an entry keeps of an output.

    Args:
        output: that is owed.
        index: its place among the messages of its handler.
        entity: that sends it.
        entry: that is to keep it.
        to: the place of its destination.
        sequences: of the ledger.
    """
    pieces, rest, known = [], output.envelope.text, True
    for derived in _derived(output.id, entity.source, entry.at, entry.since, output.place):
        piece, found, rest = rest.partition(derived)
        known = known and bool(found)
        pieces.append(piece)
    number = None if output.place is None or not known else _number(output.place, sequences)
    known = known and not pieces[0] and (number is None) is (output.place is None)
    envelope = (*pieces[1:], rest.removeprefix(_DATA)) if known else output.envelope
    id = None if output.id == derived_id(entity, entry.cause, index) else output.id
    return Pending(envelope, index, to, output.delay, id, number if known else None)


def _number(place: Place, sequences: Sequences) -> tuple[int, int] | None:
    """Which of the sequences has a place, and its number; None if none has."""
    there = (index for index, one in enumerate(sequences) if one.channel == place.channel)
    index = next(there, None)
    return None if index is None or sequences[index].receiver != place.receiver else (index, place.number)


def _derived(id: str, source: str, at: datetime, since: int | None, place: Place | None) -> tuple[str, ...]:
    """The pieces of an envelope that follow from its entry: up to its type, what follows that, and its stable time.

    What is sent by reference has its address before the number within the channel, as attributes are sorted. Names that JSON
    writes otherwise are not found in the envelope, which is kept to the letter then.
    """
    first = f'{{"specversion":"1.0","id":"{id}","source":"{source}","type":"'
    middle = f'","datacontenttype":"application/json","time":"{written_time(at)}"'
    last = "" if since is None else f',"{STABLE_TIME}":"{stable_text(since)}"'
    if place is not None:
        channel, receiver, number = (f',"{name}":"{value}"' for name, value in place.extensions)
        middle, last = middle + channel, receiver + number + last
    return (first, middle, last) if last else (first, middle)
