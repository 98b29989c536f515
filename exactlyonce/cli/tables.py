"""Plain text for terminals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from exactlyonce.hosting.upkeep.operator import Evidence, Group, Inspected
from exactlyonce.protocols.outbox.judge import Proof
from exactlyonce.records.ledger import KEPT, Ledger, Mark, destination_place, split
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import OutboxEntry, Sequences, number_of
from exactlyonce.stores.port import ListedBook, ListedMessage, StoredApplication
from exactlyonce.values.envelope import EntityRef, time_of
from exactlyonce.values.frozen_json import Json

Cell = object
NOTHING = "-"
_PROCESSED: Final = "which has processed it"
_UNKNOWN: Final = "without proof that it processed the message; or the proof was deleted by now"
_KINDS: Final[Mapping[str, str]] = {
    "f": "foreign",
    "i": "inner",
    "r": "reply",
    "l": "release",
    "q": "request",
}


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """A table with columns as wide as their cells; nothing without rows."""
    if not rows:
        return
    cells = [list(heads), *([plain(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def plain(cell: Cell) -> str:
    """A cell as text. Control characters are escaped: keys of messages come from anywhere."""
    text = cell.isoformat() if isinstance(cell, datetime) else NOTHING if cell in (None, "") else str(cell)
    return "".join(item if item.isprintable() else item.encode("unicode_escape").decode() for item in text)


def parked_lines(messages: Sequence[ListedMessage]) -> Iterator[str]:
    """Parked messages, the oldest at the top."""
    yield from table(
        ("AT", "ENTITY", "MESSAGE", "PLACE", "REASON"),
        [
            (
                message.at,
                message.entity,
                message.message,
                message.place and f"{message.place.channel}/{message.place.number}",
                message.reason,
            )
            for message in sorted(messages, key=lambda message: message.at)
        ],
    )


def group_lines(groups: Sequence[Group]) -> Iterator[str]:
    """Parked messages by entity type and reason."""
    yield from table(
        ("COUNT", "TYPE", "FIRST", "LAST", "REASON"),
        [(group.count, group.type, group.first, group.last, group.reason) for group in groups],
    )


def sequence_lines(sequences: Sequences) -> Iterator[str]:
    """The sequences in which an entity numbers its messages."""
    yield from table(
        ("DESTINATION", "RECEIVER", "CHANNEL", "LAST"),
        [(sequence.destination, sequence.receiver, sequence.channel, sequence.last) for sequence in sequences],
    )


def discarding_lines(parked: ParkedMessage) -> Iterator[str]:
    """The parked message to discard."""
    yield f"message  {plain(parked.message)}"
    yield f"parked   {plain(parked.at)}: {plain(parked.reason)}"
    yield from _place_lines(parked)


def _place_lines(parked: ParkedMessage) -> Iterator[str]:
    if (place := parked.place) is not None:
        yield f"place    number {place.number} in channel {plain(place.channel)}, to {plain(place.receiver)}"


def application_lines(stored: StoredApplication) -> Iterator[str]:
    """The owner of the library's container, and its retention."""
    application, now = stored.application, stored.now
    retention = application.retention
    yield f"application {plain(application.name)}"
    yield f"retention   {retention.current}"
    if not retention.settled(now):
        yield (
            f"            it was {retention.previous} until {plain(retention.changed)}; now messages are judged by "
            f"{retention.judged(now)}, and remembered for {retention.kept(now)}"
        )
    yield from _section(
        "entity types",
        ("TYPE", "CONTAINER", "PARTITION KEY"),
        [(kind.type, kind.container, ", ".join(kind.paths)) for kind in application.types],
    )


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """The stored evidence about a parked message."""
    parked, sent = evidence.parked, evidence.envelope.time
    yield f"message  {plain(parked.message)}, of type {plain(evidence.envelope.type)}"
    yield f"hash     {evidence.hash}"
    yield f"sent     {'at an unknown time' if sent is None else f'{plain(sent)}, as its sender says'}"
    if (since := evidence.envelope.since) is not None:
        yield f"since    {plain(time_of(since))}, in all of its copies"
    yield f"parked   {plain(parked.at)}: {plain(parked.reason)}"
    yield from _place_lines(parked)
    if parked.destination is not None:
        yield f"to       {plain(parked.destination)}, which it may have reached before"
    if parked.renewed is not None:
        yield f"renewed  {plain(parked.renewed)}: a new identity with this time was given, and may have been sent"
    for entity, proof in evidence.receivers:
        yield f"entity   {plain(entity)}, {_known(proof)}"
    if not evidence.receivers:
        yield "entity   no entity of this application could have received the message"


def _known(proof: Proof | bool | str) -> str:
    """The evidence of a possible receiver."""
    if isinstance(proof, Proof):
        at = "" if proof.since is None else f", since {plain(time_of(proof.since))}"
        place = f"page:{proof.page}" if proof.place == "page" else f"the {proof.place}"
        return f"{_PROCESSED}: its {'mark' if at else 'entry'} is in {place}{at}; discard it"
    if isinstance(proof, str):
        return f"whose documents cannot be read: {proof}"
    return f"{_PROCESSED}: discard it" if proof else _UNKNOWN


def inspected_lines(ref: EntityRef, inspected: Inspected, *, bodies: bool) -> Iterator[str]:
    """The stored documents of an entity."""
    yield f"entity   {plain(ref)}, parked messages under {plain(ref.key)}"
    ledger = inspected.ledger
    if ledger is None:
        yield "ledger   none: no message has been processed on the document, or its ledger was removed"
    elif ledger == Ledger():
        yield "ledger   none: there is no document"
    else:
        yield from _ledger_lines(ledger)
    belongings = sorted(
        inspected.belongings, key=lambda belonging: (belonging["kind"], belonging.get("version", 0), belonging["id"])
    )
    yield from _section(
        "pages",
        ("ID", "CUT FROM", "FIRST", "LAST"),
        [
            (
                belonging["id"],
                belonging.get("version"),
                _moment(belonging.get("begin")),
                _moment(belonging.get("until")),
            )
            for belonging in belongings
            if belonging["kind"] == "page"
        ],
    )
    yield from _section(
        "documents of the library",
        ("KIND", "VERSION", "MESSAGE", "SOURCE", "AT", "ID"),
        [
            tuple(belonging.get(name) for name in ("kind", "version", "message", "source", "at", "id"))
            for belonging in belongings
            if belonging["kind"] != "page"
        ],
    )
    if bodies:
        yield ""
        yield "state"
        yield pretty(inspected.body) if inspected.body is not None else "none: the entity is absent or deleted"


def _ledger_lines(ledger: Ledger) -> Iterator[str]:
    yield f"ledger   version {ledger.version}, by {ledger.protocol}{', deleted' if ledger.deleted else ''}"
    yield f"token    {plain(ledger.token)}"
    if ledger.left:
        yield f"left     {ledger.left} marks, for pages or for good; the newest of {plain(time_of(ledger.complete))}"
    since = min((entry.at for entry in ledger.outbox), default=None)
    yield f"owing    {'nothing' if since is None else f'since {plain(since)}, unless a book proves it sent'}"
    yield from _section(
        "outbox", ("BOOK", "NUMBER", "AT", "CAUSE", "OWES"), [_entry(item, ledger.to) for item in ledger.outbox]
    )
    yield from _section(
        "marks", ("SINCE", "KIND", "HASH", "SENT"), [_mark(part, ledger.to) for part in split(ledger.marks)]
    )
    yield from _section("kept messages", ("DUE", "ID"), [(item.due, item.id) for item in ledger.kept])
    if ledger.sequences:
        yield ""
        yield "sequences sent"
        yield from sequence_lines(ledger.sequences)
    yield from _section(
        "sequences received",
        ("CHANNEL", "SOURCE", "NEXT", "HELD", "GAP SINCE", "HANDLER RAISED"),
        [
            (
                reception.channel,
                reception.source,
                reception.next,
                ", ".join(f"{a}-{b}" for a, b in reception.held),
                reception.gap_since,
                reception.failing,
            )
            for reception in ledger.receptions
        ],
    )


def _entry(entry: OutboxEntry, to: Sequence[str]) -> Sequence[Cell]:
    book, number = number_of(entry.tx)
    owed = ", ".join(to[output.to] for output in entry.outputs)
    return book, number, entry.at, entry.cause, owed or "an answer"


def _mark(text: str, to: Sequence[str]) -> Sequence[Cell]:
    mark = Mark.read(text)
    sent = ", ".join("(kept)" if digit == KEPT else to[destination_place(digit)] for digit in mark.sent)
    return time_of(mark.since), _KINDS[mark.kind] + ("" if mark.timed else ", untimed"), mark.hash, sent


def _moment(since: int | None) -> datetime | None:
    return None if since is None else time_of(since)


def book_lines(books: Sequence[ListedBook]) -> Iterator[str]:
    """The books of processes, the latest at the top."""
    yield from table(
        ("WRITTEN", "BOOK", "USED", "OPEN", "STUCK"),
        [
            (
                time_of(1000 * book.written),
                book.book.id,
                book.book.used,
                len(book.book.open),
                ", ".join(map(str, book.book.stuck)),
            )
            for book in sorted(books, key=lambda book: book.written, reverse=True)
        ],
    )


def pretty(body: Json) -> str:
    """A body as indented JSON, with control characters escaped."""
    return json.dumps(body.value, indent=2, default=str)  # Decimals, as their digits.


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from table(heads, rows)
