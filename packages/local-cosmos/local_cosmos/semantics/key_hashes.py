"""Effective partition keys: where on the line of all hashes a key lies, by either version of the service's own hash.

An effective key is a text of hexadecimal digits, and effective keys are compared as text. Both versions hash the components
of a key with type tags in front of them.

Version 1: MurmurHash3 (32 bit), written as a number of varying length, and the component itself after it. Of a string only
the first 100 characters count, so keys that begin with the same 100 are one logical partition.

Version 2: MurmurHash3 (128 bit, x64), read as a big-endian number with its two highest bits cleared; a hierarchical key
hashes each level by itself and joins the results.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Protocol

import mmh3

SMALLEST: Final = ""
"""The first effective partition key."""

LARGEST: Final = "FF"
"""The end, exclusive, of all effective partition keys."""

_UNDEFINED, _NULL, _FALSE, _TRUE, _NUMBER, _STRING = b"\x00", b"\x01", b"\x02", b"\x03", b"\x05", b"\x08"
_MOST_CHARACTERS: Final = 100
"""Of a string in a key of version 1; it also writes at most one byte more than that."""

_SIGN: Final = 1 << 63
_64_BITS: Final = (1 << 64) - 1


class KeyHash(Protocol):
    """One version of the hash."""

    hashes: int
    """How many hashes there are."""

    def effective(self, components: Sequence[object]) -> str:
        """The effective key of a key; of a prefix of a hierarchical one, what all its keys begin with."""

    def bound(self, number: int) -> str:
        """The effective key at which keys with a hash of `number` and more begin."""

    def number(self, bound: str) -> int:
        """The hash at a bound, the reverse of `bound`."""

    def __hash__(self) -> int:
        """As of any object: keys are remembered with their hash."""


class _Version1:
    hashes = (1 << 32) - 1  # One less than there are: so that the bounds are those that the service gives out.

    def effective(self, components: Sequence[object]) -> str:
        shortened = [part[:_MOST_CHARACTERS] if isinstance(part, str) else part for part in components]
        tagged = b"".join(_tagged(part, end_of_string=b"\x00") for part in shortened)
        written = map(_written, [mmh3.hash(tagged, signed=False), *shortened])
        return b"".join(written).hex().upper()

    def bound(self, number: int) -> str:
        return _written(number).hex().upper()

    def number(self, bound: str) -> int:
        return int(_read(bytes.fromhex(bound)))


class _Version2:
    hashes = 1 << 126

    def effective(self, components: Sequence[object]) -> str:
        return "".join(map(self._hashed, components))

    def bound(self, number: int) -> str:
        return f"{number:032X}"

    def number(self, bound: str) -> int:
        return int(bound[:32], 16)  # Of a hierarchical key: its first level.

    def _hashed(self, component: object) -> str:
        digest = mmh3.mmh3_x64_128_digest(_tagged(component, end_of_string=b"\xff"))[::-1]
        return (bytes([digest[0] & 0x3F]) + digest[1:]).hex().upper()


VERSION_1: Final[KeyHash] = _Version1()
VERSION_2: Final[KeyHash] = _Version2()


def _tagged(component: object, *, end_of_string: bytes) -> bytes:
    """A component as it is hashed."""
    match component:
        case None:
            return _NULL
        case False:
            return _FALSE
        case True:
            return _TRUE
        case int() | float():
            return _NUMBER + struct.pack("<d", component)
        case str():
            return _STRING + component.encode("utf-8", "surrogatepass") + end_of_string
        case _:
            return _UNDEFINED


def _written(component: object) -> bytes:
    """A component as version 1 writes it: in the order of values, since texts of digits are compared."""
    match component:
        case bool() | None:
            return _tagged(component, end_of_string=b"")
        case int() | float():
            return _NUMBER + _written_number(component)
        case str():
            encoded = component.encode("utf-8", "surrogatepass")
            end = b"\x00" if len(encoded) <= _MOST_CHARACTERS else b""
            return _STRING + bytes(min(byte + 1, 0xFF) for byte in encoded[: _MOST_CHARACTERS + 1]) + end
        case _:
            return _UNDEFINED


def _written_number(number: float) -> bytes:
    """The 64 bits of a double, made comparable: eight, then seven by seven, each but the last followed by a 1."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    bits = bits ^ _SIGN if bits < _SIGN else -bits & _64_BITS
    first, rest = bits >> 56, bits << 8 & _64_BITS
    sevens = []
    while True:
        sevens.append(rest >> 56 | 1)
        rest = rest << 7 & _64_BITS
        if not rest:
            break
    return bytes([first, *sevens[:-1], sevens[-1] & 0xFE])


def _read(written: bytes) -> float:
    """The positive number that an effective key of version 1 begins with."""
    bits, shift = written[1] << 56, 56
    for byte in written[2:]:
        shift -= 7
        bits |= (byte >> 1) << shift if shift >= 0 else byte >> 1 >> -shift
        if not byte & 1:
            break
    number: float = struct.unpack(">d", struct.pack(">Q", bits ^ _SIGN))[0]
    return number
