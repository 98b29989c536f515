"""The outbox of a ledger: entries of transactions whose outputs are not known to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Final

from pydantic import PlainSerializer, PlainValidator, with_config

from exactlyonce.records.answers import Answer
from exactlyonce.records.outputs import Output
from exactlyonce.records.places import CHANNEL, Place, stated_place
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import (
    STABLE_TIME,
    Envelope,
    microseconds,
    moment_of,
    stable_text,
    written_time,
)
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, derived_id
from exactlyonce.values.shapes import EXACT, absent_if

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
