"""The outbox of a ledger: entries of transactions whose outputs are not proved sent; with their numbers, and kept messages."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, pairwise
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, PlainSerializer, PlainValidator, with_config

from exactlyonce.errors import InvalidMessage
from exactlyonce.values.envelope import (
    STABLE_TIME,
    EntityRef,
    Envelope,
    derived_id,
    microseconds,
    milliseconds,
    moment_of,
    stable_text,
    written_time,
)
from exactlyonce.values.frozen_json import EXACT, Json, absent_if, canonical

# Sequences: the numbers 1, 2, 3 … of the messages that one sender sends to one receiver through one destination.
#
# A channel carries the messages of a sequence. The sender's commit gives out the numbers. So a receiver that stores the
# received numbers recognizes every duplicate, however late, and sees no gap, even when receiving only a part of what the sender
# sends.


Ranges = tuple[tuple[int, int], ...]
"""Numbers as first and last of each run, ascending, with gaps between the runs."""


def holds(ranges: Ranges, number: int) -> bool:
    """Whether a number is in a range."""
    return any(first <= number <= last for first, last in ranges)


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges with one more number."""
    return union(ranges, ((number, number),))


def from_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges, cut to start at a number."""
    return tuple((max(first, number), last) for first, last in ranges if last >= number)


def union(some: Ranges, others: Ranges) -> Ranges:
    """All numbers of both."""
    united: list[tuple[int, int]] = []
    for first, last in sorted((*some, *others)):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return tuple(united)


def highest(ranges: Ranges, most: int) -> tuple[int, ...]:
    """The highest numbers, at most `most`, from the top."""
    return tuple(islice(_from_the_top(ranges), most))


def _from_the_top(ranges: Ranges) -> Iterator[int]:
    for first, last in reversed(ranges):
        yield from range(last, first - 1, -1)


def is_ascending(ranges: Ranges, least: int, greatest: int) -> bool:
    """Whether all pairs are ranges: first before last, from `least` to `greatest`, ascending, with gaps between."""
    edges = [edge for pair in ranges for edge in pair]
    gaps = all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))
    return gaps and edges == sorted(edges) and all(least <= edge <= greatest for edge in edges)


# Places of messages in channels. On the wire: the CloudEvents extensions `channel`, `partitionkey` and `sequence`.


CHANNEL: Final = "channel"
RECEIVER: Final = "partitionkey"
NUMBER: Final = "sequence"
LARGEST_NUMBER: Final = 2**53 - 1
"""The store has only doubles."""
LONGEST_CHANNEL: Final = 64
"""Characters of a channel's id accepted on reading: twice as many as the library writes."""
_DIGITS: Final = 16  # The extension asks for strings that sort as their numbers do.


def _require_ascending(ranges: Ranges) -> Ranges:
    """Refuse stored ranges that overlap: a number could be both received and missing."""
    if not is_ascending(ranges, 1, LARGEST_NUMBER):
        raise ValueError("numbers have to be ranges that ascend from 1 on, with gaps between them")
    return ranges


Numbers = Annotated[Ranges, AfterValidator(_require_ascending)]
"""Numbers of a channel, as ranges. Reading refuses overlapping ranges."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Place:
    """The place of a message in a channel.

    Attributes:
        channel: id of the channel.
        receiver: the receiving entity, as a source.
        number: from 1.
    """

    channel: str
    receiver: str
    number: int

    @property
    def extensions(self) -> tuple[tuple[str, str], ...]:
        """Attributes of an envelope, sorted by name."""
        return ((CHANNEL, self.channel), (RECEIVER, self.receiver), (NUMBER, f"{self.number:0{_DIGITS}d}"))


def is_numbered(envelope: Envelope) -> bool:
    """Whether a message states a place. Without a place it is foreign: only records know its duplicates."""
    return any(name == CHANNEL for name, _ in envelope.extensions)


def without_place(envelope: Envelope) -> Envelope:
    """The message as a foreign one, without a number."""
    return replace(
        envelope,
        extensions=tuple(extension for extension in envelope.extensions if extension[0] not in (CHANNEL, NUMBER)),
    )


def stated_place(envelope: Envelope) -> Place | None:
    """The place stated by a message; None without a valid place."""
    try:
        receiver = EntityRef.of_source(str(dict(envelope.extensions).get(RECEIVER)))
        return place_of(envelope, receiver, "It")
    except (InvalidMessage, ValueError):
        return None


def place_of(envelope: Envelope, receiver: EntityRef, about: str) -> Place:
    """The place of a message in its channel.

    Args:
        envelope: a message that must have a place.
        receiver: the receiving entity.
        about: name of the message in the error.

    Raises:
        InvalidMessage: the place is absent or invalid.
    """
    extensions = dict(envelope.extensions)
    if lacking := [name for name in (CHANNEL, RECEIVER, NUMBER) if name not in extensions]:
        raise InvalidMessage(
            f"{about} has no {' and no '.join(lacking)}, so its place is not known. Declare the receiver where the sender is "
            "composed, with Destination(..., to=entity) or Destination(..., to=type, entity_by=...)."
        )
    channel, addressed, number = extensions[CHANNEL], extensions[RECEIVER], _digits_in(str(extensions[NUMBER]))
    if not isinstance(channel, str) or not 1 <= number <= LARGEST_NUMBER:
        raise InvalidMessage(
            f"{about} has a {NUMBER} that is no number from 1 to 2^53, or a {CHANNEL} that is no string. Correct the sender."
        )
    if not 0 < len(channel) <= LONGEST_CHANNEL or not channel.isascii() or not channel.isalnum():
        raise InvalidMessage(
            f"{about} has a {CHANNEL} that is not made of 1 to {LONGEST_CHANNEL} letters and digits. Correct the sender."
        )
    if addressed != receiver.source:
        raise InvalidMessage(
            f"{about} is numbered for {addressed!r}, so the numbers of {receiver} would have gaps. Let the destination's to= "
            "and entity_by= name the entity that the handler's key= names."
        )
    return Place(channel, receiver.source, number)


def _digits_in(text: str) -> int:
    """The number in a text; 0 for any other text, and for texts too long for Python to convert."""
    digits = text.lstrip("0")
    return int(digits) if text.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0


# Receptions of read models.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Reception:
    """How far a read model has received one channel.

    Attributes:
        channel: id of the channel.
        source: the sender.
        next: the number to handle next.
        held: numbers above `next` with held messages; includes `next` after its handler raised.
        gap_since: time since when messages are held for lack of `next`; None without a gap.
        failing: class name of the error raised by the handler of `next`; None if none.
        passed: latest time of the channel's handled messages, where sources are brought into one order; None elsewhere.
    """

    channel: str
    source: str
    next: int = 1
    held: Numbers = ()
    gap_since: datetime | None = None
    failing: str | None = None
    passed: datetime | None = None


class Sequence(NamedTuple):
    """How far an entity has numbered its messages to one receiver through one destination. A list in documents.

    Attributes:
        destination: logical name of the destination.
        receiver: the receiving entity, as a source.
        channel: the channel of the messages.
        last: the last number given out.
    """

    destination: str
    receiver: str
    channel: str
    last: int


Sequences = tuple[Sequence, ...]
"""All sequences of an entity, in the order of their beginnings."""


def channel_id(at: datetime, tx: str, count: int) -> str:
    """The id of a channel: start time, hash of the transaction, count.

    No two attempts have the same transaction id. So no receiver knows a channel begun by a lost attempt, and an entity
    without its ledger never continues with numbers already given out.

    Args:
        at: time of the attempt.
        tx: transaction id of the message beginning the channel, in this attempt.
        count: how many channels the message has begun before.
    """
    return f"{milliseconds(at):012x}{named_after(tx)}{count:04x}"


def named_after(tx: str) -> str:
    """The transaction's part of a channel id: a hash, since transaction ids of one book begin alike."""
    return hashlib.sha256(tx.encode()).hexdigest()[:16]


def numbered(sequences: Sequences, destination: str, receiver: str, begin: str) -> tuple[Sequences, Place]:
    """Give out the next number; return the new sequences, and the output's place.

    A sequence is never forgotten, since no order holds between two channels.

    Args:
        sequences: the sequences so far.
        destination, receiver: of the output.
        begin: id of the channel, if this is the first message.
    """
    for index, sequence in enumerate(sequences):
        if (sequence.destination, sequence.receiver) == (destination, receiver):
            counted = sequence._replace(last=sequence.last + 1)
            return (*sequences[:index], counted, *sequences[index + 1 :]), Place(
                sequence.channel, receiver, counted.last
            )
    return (*sequences, Sequence(destination, receiver, begin, 1)), Place(begin, receiver, 1)


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


# A transaction id is a book and a number. A number is open until its outputs were sent, or the transaction can no longer
# commit.


_NUMBER: Final = 7


def transaction(book: str, number: int) -> str:
    """The id of a transaction. Ids of one book sort by number."""
    return f"{book}.{number:0{_NUMBER}d}"


def number_of(tx: str) -> tuple[str, int]:
    """Book and number of a transaction; number 0, never paid by a book, for any other text."""
    book, _, number = tx.partition(".")
    return book, int(number) if number.isdecimal() else 0


def books_of(transactions: Iterable[str]) -> tuple[str, ...]:
    """The books of transactions, each once."""
    return tuple(dict.fromkeys(number_of(tx)[0] for tx in transactions))


# Entries.


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
