"""Marks: what a ledger remembers of each message that it has processed, in about 30 characters.

A mark has four parts of fixed length and one of any: when the message came about (7 digits of base 64, in ASCII order), the
hash of its identity (16 characters), its kind (1), the beginning of its content's digest (4), and a character for each message
that its handler sent or kept, in their order, which says to which destination. So marks that are sorted as texts are sorted by
time, and a mark tells the identity of everything that its message caused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

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
