"""Functions on strings. Places are counted from 0, in characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from local_cosmos.query.comparing import canonical
from local_cosmos.query.functions.patterns import all_matches, first_match, matches
from local_cosmos.query.functions.signature import (
    MANY,
    Function,
    any_number_of,
    function,
    is_array,
    is_boolean,
    is_defined,
    is_integer,
    is_string,
)
from local_cosmos.values import UNDEFINED, MalformedJsonError, parse, serialise

_MOST_REPETITIONS: Final = 10_000


def _test(test: Callable[[str, str], bool]) -> Function:
    """A test of two strings, with an optional third argument: true to ignore case."""

    def call(text: str, part: str, ignore_case: bool = False) -> bool:
        return test(text.lower(), part.lower()) if ignore_case else test(text, part)

    return function(call, is_string, is_string, is_boolean, optional=1)


def _tests(decisive: bool, ignore_case: bool) -> Function:
    """CONTAINS of every string after the first, combined as by AND (decided by false) or OR (decided by true)."""

    def call(text: Any, *parts: Any) -> Any:
        found = [_CONTAINS.call(text, part, ignore_case) for part in parts]
        if any(item is decisive for item in found):
            return decisive
        return UNDEFINED if UNDEFINED in found else not decisive

    return Function(call, 2, MANY)


def _index_of(text: str, part: str, start: float = 0) -> Any:
    return text.find(part, int(start)) if start >= 0 else UNDEFINED


def _last_index_of(text: str, part: str, start: float | None = None) -> Any:
    """Backwards from a place: the part has to end there or before."""
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, int(start) + 1) if start >= 0 else UNDEFINED


def _beside(divide: Callable[[str, str], tuple[str, str, str]], side: int) -> Function:
    """What stands before (0) or after (2) a delimiter; undefined without one."""

    def call(text: str, delimiter: str) -> Any:
        parts = divide(text, delimiter) if delimiter else ("", "", "")
        return parts[side] if parts[1] else UNDEFINED

    return function(call, is_string, is_string)


def _left(text: str, length: float) -> str:
    return text[: max(0, int(length))]


def _right(text: str, length: float) -> str:
    return text[max(0, len(text) - int(length)) :] if length > 0 else ""


def _substring(text: str, start: float, length: float) -> str:
    first = max(0, int(start))
    return text[first : first + max(0, int(length))]


def _trimming(left: bool, right: bool) -> Function:
    """Blanks, or what the second argument says: the whole of it, as often as it stands there."""

    def trim(text: str, part: str | None = None) -> str:
        if part is None:
            text = text.lstrip() if left else text
            return text.rstrip() if right else text
        while part and left and text.startswith(part):
            text = text[len(part) :]
        while part and right and text.endswith(part):
            text = text[: -len(part)]
        return text

    return function(trim, is_string, is_string, optional=1)


def _trim(text: str, characters: str | None = None) -> str:
    """At both ends; of any of the characters that the second argument has."""
    return text.strip(characters)


def _replicate(text: str, times: float) -> Any:
    return text * int(times) if times >= 0 and len(text) * times <= _MOST_REPETITIONS else UNDEFINED


def _joined(parts: list[Any], separator: str) -> Any:
    return separator.join(parts) if all(map(is_string, parts)) else UNDEFINED


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [text]


def _to_string(value: Any) -> str:
    return value if isinstance(value, str) else serialise(canonical(value)).decode()


def _parsed(is_expected: Callable[[Any], bool]) -> Function:
    """The value that a string is the JSON of, if it is of one type."""

    def call(text: str) -> Any:
        try:
            value = parse(text)
        except MalformedJsonError:
            return UNDEFINED
        return value if is_expected(value) else UNDEFINED

    return function(call, is_string)


_CONTAINS: Final = _test(lambda text, part: part in text)

FUNCTIONS: Final[Mapping[str, Function]] = {
    "CONCAT": any_number_of(lambda *texts: "".join(texts), is_string, 2),
    "CONTAINS": _CONTAINS,
    "CONTAINS_ALL_CI": _tests(decisive=False, ignore_case=True),
    "CONTAINS_ALL_CS": _tests(decisive=False, ignore_case=False),
    "CONTAINS_ANY_CI": _tests(decisive=True, ignore_case=True),
    "CONTAINS_ANY_CS": _tests(decisive=True, ignore_case=False),
    "ENDSWITH": _test(str.endswith),
    "INDEX_OF": function(_index_of, is_string, is_string, is_integer, optional=1),
    "LASTINDEXOF": function(_last_index_of, is_string, is_string, is_integer, optional=1),
    "LASTSUBSTRINGAFTER": _beside(str.rpartition, 2),
    "LASTSUBSTRINGBEFORE": _beside(str.rpartition, 0),
    "LEFT": function(_left, is_string, is_integer),
    "LENGTH": function(len, is_string),
    "LOWER": function(str.lower, is_string),
    "LTRIM": _trimming(left=True, right=False),
    "REGEXEXTRACT": function(first_match, is_string, is_string, is_string, is_integer, optional=2),
    "REGEXEXTRACTALL": function(all_matches, is_string, is_string, is_string, is_integer, optional=2),
    "REGEXMATCH": function(matches, is_string, is_string, is_string, optional=1),
    "REPLACE": function(
        lambda text, old, new: text.replace(old, new) if old else text, is_string, is_string, is_string
    ),
    "REPLICATE": function(_replicate, is_string, is_integer),
    "REVERSE": function(lambda text: text[::-1], is_string),
    "RIGHT": function(_right, is_string, is_integer),
    "RTRIM": _trimming(left=False, right=True),
    "STARTSWITH": _test(str.startswith),
    "STRINGEQUALS": _test(lambda text, other: text == other),
    "STRINGJOIN": function(_joined, is_array, is_string),
    "STRINGSPLIT": function(_split, is_string, is_string),
    "STRINGTOARRAY": _parsed(is_array),
    "STRINGTOBOOLEAN": _parsed(is_boolean),
    "STRINGTONULL": _parsed(lambda value: value is None),
    "STRINGTONUMBER": _parsed(lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "STRINGTOOBJECT": _parsed(lambda value: isinstance(value, dict)),
    "SUBSTRING": function(_substring, is_string, is_integer, is_integer),
    "SUBSTRINGAFTER": _beside(str.partition, 2),
    "SUBSTRINGBEFORE": _beside(str.partition, 0),
    "TOSTRING": function(_to_string, is_defined),
    "TRIM": function(_trim, is_string, is_string, optional=1),
    "UPPER": function(str.upper, is_string),
}
