"""The outbox of a ledger: entries of transactions whose outputs are not known to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import with_config

from exactlyonce.records.answers import Answer
from exactlyonce.records.outputs import Output
from exactlyonce.records.places import CHANNEL, stated_place
from exactlyonce.values.envelope import STABLE_TIME, Envelope, stable_text, written_time
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, derived_id
from exactlyonce.values.shapes import EXACT, absent_if


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Pending:
    """An output that is owed.

    Attributes:
        index: its place among the messages of its handler, from which its id derives.
        to: its destination, as a place in the ledger's list.
        envelope: to the letter, with its place in a channel if it has one; or the pieces of it that do not follow from the
            entry: two, or three if it is timed. Every commit writes what is owed, so each byte of it is paid again and again.
        delay: seconds that it stays invisible after it was published.
        id: of the output, where it does not derive from cause and index.
    """

    envelope: Json | tuple[str, ...]
    index: Annotated[int, absent_if(0)] = 0
    to: Annotated[int, absent_if(0)] = 0
    delay: Annotated[float, absent_if(0.0)] = 0.0
    id: Annotated[str | None, absent_if(None)] = None


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
    at: datetime
    since: Annotated[int | None, absent_if(None)] = None
    outputs: Annotated[tuple[Pending, ...], absent_if(())] = ()
    request: Annotated[str | None, absent_if(None)] = None
    answer: Annotated[Answer | None, absent_if(None)] = None

    def owed_outputs(self, entity: EntityRef, destinations: tuple[str, ...]) -> Iterator[Output]:
        """The outputs, to the letter.

        Args:
            entity: that sends them.
            destinations: the ledger's list.
        """
        for one in self.outputs:
            id, envelope = one.id or derived_id(entity, self.cause, one.index), one.envelope
            if isinstance(envelope, tuple):
                derived = _derived(id, entity.source, self.at, self.since)
                envelope = Json("".join(piece for pair in zip(derived, envelope, strict=True) for piece in pair))
            place = stated_place(Envelope.read(envelope.text)) if f'"{CHANNEL}":' in envelope.text else None
            yield Output(id, destinations[one.to], envelope, one.delay, place)


def pending(output: Output, index: int, to: int, entity: EntityRef, entry: OutboxEntry) -> Pending:
    """What an entry keeps of an output.

    Args:
        output: that is owed.
        index: its place among the messages of its handler.
        to: the place of its destination.
        entity: that sends it.
        entry: that is to keep it.
    """
    pieces, rest, known = [], output.envelope.text, True
    for derived in _derived(output.id, entity.source, entry.at, entry.since):
        piece, found, rest = rest.partition(derived)
        known = known and bool(found)
        pieces.append(piece)
    known = known and not pieces[0]
    envelope = (*pieces[1:], rest) if known else output.envelope
    id = None if output.id == derived_id(entity, entry.cause, index) else output.id
    return Pending(envelope, index, to, output.delay, id)


def _derived(id: str, source: str, at: datetime, since: int | None) -> tuple[str, ...]:
    """The pieces of an envelope that follow from its entry: its beginning, what follows its type, and its stable time."""
    first = Json.of({"specversion": "1.0", "id": id, "source": source}).text[:-1]
    middle = Json.of({"datacontenttype": "application/json", "time": written_time(at)}).text[1:-1]
    last = () if since is None else (Json.of({STABLE_TIME: stable_text(since)}).text[1:-1],)
    return (f"{first},", middle, *last)
