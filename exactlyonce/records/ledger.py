"""The ledger: the library's property of an entity document.

The shape carries a schema version; a newer version is refused, never misread. Empty parts are left out, since every commit
pays for each byte; `version` says how many messages the other parts have to account for. Properties of the user stay
untouched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import with_config

from exactlyonce.errors import IdTaken, InvalidMessage
from exactlyonce.records.outbox import RECEIVER, Answer, Kept, OutboxEntry, Reception, Sequences, is_numbered
from exactlyonce.values.envelope import EntityRef, Envelope, Extensions
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, damaged, read_shape, shape_json

# Replies. A call's id is in the ledger from the commit of the call to the commit of the reply. Any other reply is a copy,
# unless the view is older than the call. On the wire: the extensions `replyto`, `replyversion` and `partitionkey`.


CALL_TYPE: Final = "exactlyonce.call"
"""Type of the message that is a call not yet made. The data is the body to send."""
CALL_IS: Final = "call"
"""Extension attribute: a call except its body, in JSON. So a call can be answered even if the blob of its body is gone."""
TRIED: Final = "tried"
"""Extension attribute of a call sent to its queue once more: whether a try may have been carried out."""
CALL: Final = "replyto"
VERSION: Final = "replyversion"

Calls = tuple[str, ...]
"""Ids of calls whose replies are awaited, oldest first."""


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """The subject of a reply.

    Attributes:
        call: id of the call, an output of the caller.
        version: caller's entity version, produced by the commit that made the call.
        caller: source of the caller's messages.
    """

    call: str
    version: int
    caller: str

    @property
    def extensions(self) -> Extensions:
        """Attributes of an envelope, sorted by name."""
        return ((RECEIVER, self.caller), (CALL, self.call), (VERSION, self.version))


def is_reply(envelope: Envelope) -> bool:
    """Whether a message claims to be the reply to a call."""
    return any(name == CALL for name, _ in envelope.extensions)


def is_foreign(envelope: Envelope) -> bool:
    """Whether only records know the copies of a message: no number, no reply, no opened request."""
    return envelope.opened is None and not (is_numbered(envelope) or is_reply(envelope))


def reply_of(envelope: Envelope, caller: EntityRef, about: str) -> ReplyTo:
    """The call and caller named by a reply.

    Args:
        envelope: the reply.
        caller: the receiving entity.
        about: name of the message in the error.

    Raises:
        InvalidMessage: the call is another entity's, or the reply names no call.
    """
    extensions = dict(envelope.extensions)
    call, version = extensions.get(CALL), extensions.get(VERSION)
    if not isinstance(call, str) or not call or type(version) is not int or version < 1:
        raise InvalidMessage(
            f"{about} has a {CALL} that is no id, or a {VERSION} that is no number from 1. Correct the sender."
        )
    if extensions.get(RECEIVER) != caller.source:
        raise InvalidMessage(
            f"{about} is the reply to a call of {extensions.get(RECEIVER)!r}. Let the key= of the reply's handler name the "
            "entity that made the call: give context.call(..., tag=) the values for key=."
        )
    return ReplyTo(call, version, caller.source)


# Marks: one text for each processed message, in parts of fixed length (time, hash, kind, content), then a character for each
# message sent or kept. Sorted as texts, marks are sorted by time. A mark tells the identity of every message caused.


Kind = Literal["f", "i", "r", "l", "q"]
"""Foreign, inner (sent by an entity of this application), reply to a call, release of a kept message, opened request."""

KINDS: Final = "firlq"
"""An untimed message has its kind in upper case: pages find the mark by hash, not by time."""
DIGITS: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""The digits of times, in ASCII order. URL-safe base 64 has another order."""
SEPARATOR: Final = "."
"""Stands between marks; no mark contains it."""
KEPT: Final = "~"
"""In place of a destination: the message is kept until due, and its release has a mark."""

_TIME: Final = 7
_SHIFTS: Final = (36, 30, 24, 18, 12, 6, 0)
"""Bit positions of the digits, six bits each."""
_LATEST: Final = len(DIGITS) ** _TIME - 1
_KIND: Final = 23
_SENT: Final = 28
_MANY: Final = 0x100
"""Code point of the destination after the 64 that digits name."""


_TEXT: Final = re.compile(
    rf"[{re.escape(DIGITS)}]{{{_TIME}}}.{{{_KIND - _TIME}}}[{KINDS}{KINDS.upper()}].{{{_SENT - _KIND - 1}}}(.*)",
    re.DOTALL,
)


class Mark(NamedTuple):
    """One processed message.

    Attributes:
        since: time of origin, in milliseconds since 1970: the same in all copies of a timed message, else the time of
            processing.
        hash: hash of the message's identity, 96 bits in base 64.
        kind: kind of the message.
        timed: whether all copies have this time.
        content: the first 24 bits of `Envelope.content`, in base 64.
        sent: a character for each message sent by the handler, in order: the destination, or `KEPT`.
    """

    since: int
    hash: str
    kind: Kind
    timed: bool
    content: str
    sent: str = ""

    @property
    def text(self) -> str:
        """The mark as stored."""
        kind = self.kind if self.timed else self.kind.upper()
        return f"{written_time(self.since)}{self.hash}{kind}{self.content}{self.sent}"

    @classmethod
    def read(cls, text: str) -> Mark:
        """The mark in a text. Raises `ValueError` for any other text."""
        if len(text) < _SENT or text[_KIND].lower() not in KINDS:
            raise ValueError("a mark is cut off, or of no kind")
        kind: Kind = text[_KIND].lower()  # type: ignore[assignment]  # One of KINDS.
        timed, content = is_timed(text), text[_KIND + 1 : _SENT]
        return cls(read_time(text[:_TIME]), text[_TIME:_KIND], kind, timed, content, text[_SENT:])


def written_time(milliseconds: int) -> str:
    """A time in seven digits, sorted as texts like the times; clipped to 1970 to 2109."""
    milliseconds = min(max(milliseconds, 0), _LATEST)
    return "".join([DIGITS[milliseconds >> shift & 63] for shift in _SHIFTS])


def read_time(text: str) -> int:
    """The time in seven digits, in milliseconds since 1970. Raises `ValueError` for any other text."""
    time = 0
    for digit in text:
        time = time * len(DIGITS) + DIGITS.index(digit)
    return time


def written(marks: Iterable[str]) -> str:
    """Marks as stored together in a document, the oldest first."""
    return SEPARATOR.join(sorted(marks))


def split(marks: str) -> tuple[str, ...]:
    """The single marks, the oldest first."""
    return tuple(marks.split(SEPARATOR)) if marks else ()


@lru_cache(maxsize=64)
def by_hash(marks: str) -> Mapping[str, str]:
    """The single marks by the hash of their message. They are not parsed, since most attempts need only one.

    Cached, since an attempt asks a few times, for the marks of one ledger.
    """
    return MappingProxyType({hash_in(part): part for part in split(marks)})


def destinations_in(marks: Iterable[str]) -> frozenset[int]:
    """The places of all destinations named by marks. Raises `ValueError` for a text that is no mark."""
    read = list(map(_TEXT.fullmatch, marks))
    if None in read:
        raise ValueError("a mark is cut off, or of no time or kind")
    sent = {digit for item in read if item is not None for digit in item[1]}
    return frozenset(destination_place(digit) for digit in sent - {KEPT})


def content_in(mark: str) -> str:
    """The beginning of the content's digest."""
    return mark[_KIND + 1 : _SENT]


def hash_in(mark: str) -> str:
    """The hash of the message."""
    return mark[_TIME:_KIND]


def is_timed(mark: str) -> bool:
    """Whether all copies of the message have its time."""
    return mark[_KIND].islower()


def time_in(mark: str) -> int:
    """The time of origin of the message."""
    return read_time(mark[:_TIME])


def is_after(mark: str, time: str) -> bool:
    """Whether the message's time of origin is after a time in seven digits."""
    return mark[:_TIME] > time


def destination_digit(place: int) -> str:
    """The character of the destination at a place of the list of destinations."""
    return DIGITS[place] if place < len(DIGITS) else chr(_MANY + place - len(DIGITS))


def destination_place(digit: str) -> int:
    """The place of the destination named by a character. Raises `ValueError` for any other character."""
    return DIGITS.index(digit) if ord(digit) < _MANY else ord(digit) - _MANY + len(DIGITS)


# Pages have the numbers 1, 2, 3 …, and a number is the name of a page. After a document was put back, the second history uses
# each number again, so it finds the first history's page in its way.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a request, with the hash of its message."""

    cause: str
    answer: Answer


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Page:
    """Marks that left a ledger together, in a document that never changes.

    Attributes:
        entity: key of the entity.
        number: number among the pages of the entity, from 1.
        version: version of the ledger from which the page was cut.
        before: `until` of the page before; -1 if there is none. So an audit can tell whether the earlier page is gone too
            early.
        begin: time of the oldest mark, in milliseconds since 1970.
        until: time of the newest mark that has left, in this page or before.
        marks: the marks as stored in the ledger.
        to: destinations named by the marks.
        hashes: hashes of messages to be found by hash: untimed, or with an answer in this page.
        answers: answers that left the ledger.
        blobs: transactions with committed blobs.
    """

    entity: str
    number: int
    version: int
    begin: int
    until: int
    marks: str
    before: Annotated[int, absent_if(-1)] = -1
    to: Annotated[tuple[str, ...], absent_if(())] = ()
    hashes: Annotated[tuple[str, ...], absent_if(())] = ()
    answers: Annotated[tuple[KeptAnswer, ...], absent_if(())] = ()
    blobs: Annotated[tuple[str, ...], absent_if(())] = ()
    kind: Literal["page"] = "page"
    schema: int = SCHEMA


def read_page(document: Any) -> Page:
    """Read a page. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Page, document, "A page")


LEDGER: Final = "_ledger"
OUTBOX: Final = "outbox"
"""The protocol whose ledgers hold marks."""
MAX_DOCUMENT_BYTES: Final = 1_500_000
"""Largest entity document sent. The service takes 2 MB; the rest is room for the service's own properties."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Ledger:
    """The library's property of an entity document.

    Attributes:
        version: number of messages committed on this entity; releases of kept messages count, too.
        type: entity type. Two types may share a container, but a document belongs to one type.
        protocol: protocol of the entity; another protocol would not know its duplicates.
        entity: key of the entity. A ledger copied to another document still names its original.
        token: session token of the library's partition for this entity, at or after the last write there that this document
            relies on; None before the first.
        deleted: whether the entity was deleted; the document remains as a tombstone, so that late duplicates are recognized.
        marks: marks of the latest messages, the oldest first. `version` counts these and the marks that have left.
        to: destinations named by marks and entries.
        complete: time of the newest mark that has left for a page, in milliseconds since 1970; -1 if none has. A younger
            timed message without a mark here was never processed.
        left: how many marks have left, expired marks included.
        cut: number of the newest page; 0 if there is none.
        lost: time up to which pages may have been lost, since the library's container was restored or exchanged; -1 if none.
        answers: answers to requests among the marks.
        outbox: transactions whose outputs are not proved sent.
        blobs: for messages among the marks whose handlers wrote blobs: hash, and the transaction that was committed.
        sequences: the numbers given out to receivers that take messages in order. Numbering continues after a deletion.
        snapshot_every: distance between whole states in the entity's version stream; None without a stream.
        event_sourced: whether the stream holds events in place of patches.
        receptions: how far this read model has received each of its channels.
        calls: ids of the awaited calls.
        kept: messages kept until due, in the order of sending.
        schema: version of this shape.
    """

    version: int = 0
    type: str = ""
    protocol: Annotated[str, absent_if(OUTBOX)] = OUTBOX
    entity: Annotated[str, absent_if("")] = ""
    token: Annotated[str | None, absent_if(None)] = None
    deleted: Annotated[bool, absent_if(False)] = False
    marks: Annotated[str, absent_if("")] = ""
    to: Annotated[tuple[str, ...], absent_if(())] = ()
    complete: Annotated[int, absent_if(-1)] = -1
    left: Annotated[int, absent_if(0)] = 0
    cut: Annotated[int, absent_if(0)] = 0
    lost: Annotated[int, absent_if(-1)] = -1
    answers: Annotated[tuple[KeptAnswer, ...], absent_if(())] = ()
    outbox: Annotated[tuple[OutboxEntry, ...], absent_if(())] = ()
    blobs: Annotated[tuple[tuple[str, str], ...], absent_if(())] = ()
    sequences: Annotated[Sequences, absent_if(())] = ()
    snapshot_every: Annotated[int | None, absent_if(None)] = None
    event_sourced: Annotated[bool, absent_if(False)] = False
    receptions: Annotated[tuple[Reception, ...], absent_if(())] = ()
    calls: Annotated[Calls, absent_if(())] = ()
    kept: Annotated[tuple[Kept, ...], absent_if(())] = ()
    schema: int = SCHEMA

    @property
    def transactions(self) -> frozenset[str]:
        """Names of the staged documents that the ledger relies on."""
        return frozenset(item.tx for item in self.kept)


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity document taken apart.

    Attributes:
        body: the user's properties, `id` and partition key included; None if the entity is absent or deleted.
        ledger: the library's property; empty if the entity is absent, None if the document has none.
    """

    body: Json | None
    ledger: Ledger | None


def read_entity(entity: EntityRef, document: Json | None) -> EntityView:
    """Take an entity document apart.

    Raises:
        DamagedDocument: the ledger cannot be read, or contradicts itself.
        IdTaken: the document belongs to an entity of another type.
        NewerSchema: a newer version of the library wrote it.
    """
    if document is None:
        return EntityView(None, Ledger())
    properties = document.value
    raw = properties.pop(LEDGER, None)
    if raw is None:
        return EntityView(Json.of(properties), None)
    name = f"The ledger of entity {entity} (property {LEDGER!r})"
    ledger = read_shape(Ledger, raw, name)
    _require_consistent(ledger, entity, name)
    if ledger.type not in ("", entity.type):
        raise IdTaken(
            f"The document of entity {entity} belongs to an entity of type {ledger.type!r}. Nothing was changed. Two types "
            "that share a container need ids that differ: return such keys from key=.",
            kept="its id is that of an entity of another type",
        )
    return EntityView(None if ledger.deleted else Json.of(properties), ledger)


def entity_document(body: Json, ledger: Ledger) -> Json:
    """Put an entity document together; the ledger comes last, below the user's properties."""
    return body.plus(LEDGER, shape_json(ledger))


def _require_consistent(ledger: Ledger, entity: EntityRef, name: str) -> None:
    """Raise `DamagedDocument` unless the parts of a ledger agree with one another."""
    if ledger.entity not in ("", entity.key):
        raise damaged(name, f"it is a copy of the ledger of {ledger.entity}")
    marks = split(ledger.marks)
    if ledger.protocol == OUTBOX and len(marks) + ledger.left != ledger.version:
        raise damaged(
            name, f"{len(marks)} marks and {ledger.left} that have left are not its version, {ledger.version}"
        )
    if ledger.left < 0 or ledger.cut > ledger.version:
        raise damaged(name, f"{ledger.left} marks have left in {ledger.cut} pages, at version {ledger.version}")
    if ledger.protocol == "stream" and ledger.version and ledger.snapshot_every is None:
        raise damaged(name, "it does not say what its stream holds")
    if ledger.protocol == "resequencer" and ledger.version and not ledger.receptions:
        raise damaged(name, "it does not say what was received")
    if list(marks) != sorted(marks):
        raise damaged(name, "its marks are in no order")
    try:
        named = destinations_in(marks)
    except ValueError as error:
        raise damaged(name, str(error)) from None
    owed = [output for entry in ledger.outbox for output in entry.outputs]
    named |= {output.to for output in owed}
    if max(named, default=-1) >= len(ledger.to):
        raise damaged(name, "a mark or an entry names a destination that its list does not have")
    if any(item.place is not None and item.place[0] >= len(ledger.sequences) for item in owed):
        raise damaged(name, "an entry names a sequence that its list does not have")
