"""The ledger: the library's property of an entity document.

Its shape carries a schema version; a newer one is refused, never misread. What is empty is left out, since every commit pays
for each byte; `version` says how many messages the rest has to account for. Properties that are not the library's stay
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
from exactlyonce.records.outbox import Answer, Kept, OutboxEntry
from exactlyonce.records.sequences import RECEIVER, Reception, Sequences, is_numbered
from exactlyonce.values.envelope import EntityRef, Envelope, Extensions
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, damaged, read_shape, shape_json

# Replies to calls: how an entity knows the one reply that it awaits to each of its calls.
#
# The commit that makes a call writes the call's id into the ledger, and the commit that handles the reply removes it. So a
# reply whose call is in the ledger is awaited, and any other one is a copy, however late it comes: for a call that was made
# is awaited until its reply is handled. A view that is older than the commit that made the call shows neither.
#
# On the wire a reply names its call in the CloudEvents extensions `replyto` and `replyversion`, and the caller in
# `partitionkey`.


CALL_TYPE: Final = "exactlyonce.call"
"""Type of the message that a call is, until it is made. Its data is the body to send."""
CALL_IS: Final = "call"
"""Extension attribute: all of a call but its body, in JSON. So a call whose body is in a blob that is gone can be answered."""
TRIED: Final = "tried"
"""Extension attribute of a call that was sent to its queue once more: whether a try may have been carried out."""
CALL: Final = "replyto"
VERSION: Final = "replyversion"

Calls = tuple[str, ...]
"""Ids of calls whose replies are awaited, oldest first."""


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """What a reply answers.

    Attributes:
        call: id of the call, an output of its caller.
        version: of the caller, which the commit that made the call produced.
        caller: as the source of what it sends.
    """

    call: str
    version: int
    caller: str

    @property
    def extensions(self) -> Extensions:
        """As attributes of an envelope, sorted by name."""
        return ((RECEIVER, self.caller), (CALL, self.call), (VERSION, self.version))


def is_reply(envelope: Envelope) -> bool:
    """Whether a message says that it is the reply to a call."""
    return any(name == CALL for name, _ in envelope.extensions)


def is_foreign(envelope: Envelope) -> bool:
    """Whether only records know the copies of a message: it has no number, is no reply, and no request that was opened."""
    return envelope.opened is None and not (is_numbered(envelope) or is_reply(envelope))


def reply_of(envelope: Envelope, caller: EntityRef, about: str) -> ReplyTo:
    """What a reply answers.

    Args:
        envelope: of the reply.
        caller: the entity that takes it.
        about: what the error is to call it.

    Raises:
        InvalidMessage: the call is another entity's, or the reply does not say what it answers.
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
            "entity that made the call: context.call(..., tag=) takes what it needs."
        )
    return ReplyTo(call, version, caller.source)


# Marks: what a ledger remembers of each message that it has processed, in about 30 characters.
#
# A mark has four parts of fixed length and one of any: when the message came about (7 digits of base 64, in ASCII order), the
# hash of its identity (16 characters), its kind (1), the beginning of its content's digest (4), and a character for each
# message that its handler sent or kept, in their order, which says to which destination. So marks that are sorted as texts
# are sorted by time, and a mark tells the identity of everything that its message caused.


Kind = Literal["f", "i", "r", "l", "q"]
"""Foreign, inner (sent by an entity of this application), reply to a call, release of a kept message, opened request."""

KINDS: Final = "firlq"
"""In a mark the kind of an untimed message is in upper case: it is looked for by its hash, and not by its time."""
DIGITS: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""The digits of times, in ASCII order. URL-safe base 64 has another order."""
SEPARATOR: Final = "."
"""Stands between marks. None of their characters is one."""
KEPT: Final = "~"
"""In place of a destination: the message is kept until it is due, and its release has a mark of its own."""

_TIME: Final = 7
_SHIFTS: Final = (36, 30, 24, 18, 12, 6, 0)
"""Of the six bits of each digit."""
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
        since: when it came about, in milliseconds since 1970: the same for all its copies if it is timed, else when it was
            processed.
        hash: of its identity, 96 bits in base 64.
        kind: of the message.
        timed: whether all its copies have its time.
        content: the first 24 bits of `Envelope.content`, in base 64.
        sent: a character for each message that its handler sent, in their order: its destination, or `KEPT`.
    """

    since: int
    hash: str
    kind: Kind
    timed: bool
    content: str
    sent: str = ""

    @property
    def text(self) -> str:
        """As it stands in documents."""
        kind = self.kind if self.timed else self.kind.upper()
        return f"{written_time(self.since)}{self.hash}{kind}{self.content}{self.sent}"

    @classmethod
    def read(cls, text: str) -> Mark:
        """The mark of a text. Raises `ValueError` if it is none."""
        if len(text) < _SENT or text[_KIND].lower() not in KINDS:
            raise ValueError("a mark is cut off, or of no kind")
        kind: Kind = text[_KIND].lower()  # type: ignore[assignment]  # One of KINDS.
        timed, content = is_timed(text), text[_KIND + 1 : _SENT]
        return cls(read_time(text[:_TIME]), text[_TIME:_KIND], kind, timed, content, text[_SENT:])


def written_time(milliseconds: int) -> str:
    """A time in seven digits, whose order as texts is that of the times: the nearest of those from 1970 to 2109."""
    milliseconds = min(max(milliseconds, 0), _LATEST)
    return "".join([DIGITS[milliseconds >> shift & 63] for shift in _SHIFTS])


def read_time(text: str) -> int:
    """The time of seven digits, in milliseconds since 1970. Raises `ValueError` if one is none."""
    time = 0
    for digit in text:
        time = time * len(DIGITS) + DIGITS.index(digit)
    return time


def written(marks: Iterable[str]) -> str:
    """Marks as they stand together in a document, the oldest first."""
    return SEPARATOR.join(sorted(marks))


def split(marks: str) -> tuple[str, ...]:
    """The single marks, the oldest first."""
    return tuple(marks.split(SEPARATOR)) if marks else ()


@lru_cache(maxsize=64)
def by_hash(marks: str) -> Mapping[str, str]:
    """The single marks by the hash of their message. They are not taken apart, since most attempts ask for one of them.

    An attempt asks a few times, for the marks of one ledger.
    """
    return MappingProxyType({hash_in(one): one for one in split(marks)})


def destinations_in(marks: Iterable[str]) -> frozenset[int]:
    """The places of all destinations that marks name. Raises `ValueError` if one is no mark."""
    read = list(map(_TEXT.fullmatch, marks))
    if None in read:
        raise ValueError("a mark is cut off, or of no time or kind")
    sent = {digit for one in read if one is not None for digit in one[1]}
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
    """When the message came about."""
    return read_time(mark[:_TIME])


def is_after(mark: str, time: str) -> bool:
    """Whether the message came about after a time in seven digits."""
    return mark[:_TIME] > time


def destination_digit(place: int) -> str:
    """The character of the destination at a place of the list of destinations."""
    return DIGITS[place] if place < len(DIGITS) else chr(_MANY + place - len(DIGITS))


def destination_place(digit: str) -> int:
    """The place of a destination that a character names. Raises `ValueError` if it names none."""
    return DIGITS.index(digit) if ord(digit) < _MANY else ord(digit) - _MANY + len(DIGITS)


# Pages: marks that left a ledger together, in a document that never changes.
#
# The pages of an entity have the numbers 1, 2, 3 …, and their numbers are their names. So of two histories of an entity, as a
# document that was put back makes them, the second finds the first one's page in its way, since it uses each number, too.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a request, with the hash of its message."""

    cause: str
    answer: Answer


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Page:
    """Marks that left a ledger together.

    Attributes:
        entity: key of the entity.
        number: among the pages of the entity, from 1.
        version: of the ledger from which it was cut.
        before: `until` of the page before; -1 if there is none. So an audit can tell whether that page is gone too early.
        begin: time of its oldest mark, in milliseconds since 1970.
        until: time of the newest mark that has left, in this page or before.
        marks: as the ledger had them.
        to: destinations that the marks name.
        hashes: of those of its messages that are looked for by hash: they are not timed, or their answers are here.
        answers: that left the ledger.
        blobs: transactions whose blobs were committed.
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
"""Largest entity document that is sent. The service takes 2 MB; the rest is room for its own properties."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Ledger:
    """The library's property of an entity document.

    Attributes:
        version: number of messages committed on this entity; releases of kept messages count, too.
        type: of the entity. Two types may share a container, but a document belongs to one.
        protocol: that the entity is processed by; another one would not know its duplicates.
        entity: key of the entity. A ledger that was copied to another document names the one it is of.
        token: session token of the library's partition for this entity, at or after the last write there that this document
            relies on; None if there was none.
        deleted: the entity was deleted; the document remains as a tombstone, so that late duplicates are known.
        marks: of the latest messages, the oldest first. `version` is the number of marks and of those that have left.
        to: destinations that marks and entries name.
        complete: time of the newest mark that has left for a page, in milliseconds since 1970; -1 if none has. A timed
            message that is younger and has no mark here was never processed.
        left: how many marks have left, those that expired included.
        cut: number of its newest page; 0 if there is none.
        lost: time up to which pages may have been lost, since the library's container was restored or exchanged; -1 if none.
        answers: to requests among the marks.
        outbox: transactions whose outputs are not known to be sent.
        blobs: for messages among the marks whose handlers wrote blobs: hash, and the transaction that was committed.
        sequences: the numbers given out to receivers that take messages in order. They go on after a deletion.
        snapshot_every: how far apart the whole states in the entity's version stream are; None if it has none.
        event_sourced: whether that stream holds what happened, in place of the way back.
        receptions: how far this read model has received the channels that make it.
        calls: ids of the calls whose replies are awaited.
        kept: messages that are kept until they are due, in the order in which they were sent.
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
        """What names the staged documents that the ledger relies on."""
        return frozenset(one.tx for one in self.kept)


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity document taken apart.

    Attributes:
        body: the user's properties, `id` and partition key included; None if the entity is absent or deleted.
        ledger: the library's property; an empty one if the entity is absent, None if the document has none.
    """

    body: Json | None
    ledger: Ledger | None


def read_entity(entity: EntityRef, document: Json | None) -> EntityView:
    """Take an entity document apart.

    Raises:
        DamagedDocument: the ledger cannot be read, or contradicts itself.
        IdTaken: it belongs to an entity of another type.
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
    """Put an entity document together; the ledger comes last, below what people look for."""
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
    if any(one.place is not None and one.place[0] >= len(ledger.sequences) for one in owed):
        raise damaged(name, "an entry names a sequence that its list does not have")
