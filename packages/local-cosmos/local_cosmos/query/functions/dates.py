"""Functions on dates and times: strings as ISO 8601 has them, in UTC, with up to seven digits of a second.

A blank may stand in place of `T`. Inside, a time is in *ticks* of 100 nanoseconds since 1970. What is no time, or lies outside
the years 1 to 9999, is undefined.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from local_cosmos.query.calculating import is_number
from local_cosmos.query.functions.signature import Function, anything, function, is_integer, is_string
from local_cosmos.values import UNDEFINED

_LETTERS: Final = re.compile(r"\\(.)|'([^']*)'|\"([^\"]*)\"|([yMdHhmsfFt])\4*", re.DOTALL)
_FRACTION_DIGITS: Final = 7
_HALF_A_DAY: Final = 12
_A_NAME: Final = 3
"""Letters for the short name of a month or day; one more is the long name."""
_MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_NUMBERS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "M": lambda moment: moment.month,
    "d": lambda moment: moment.day,
    "H": lambda moment: moment.hour,
    "h": lambda moment: (moment.hour - 1) % _HALF_A_DAY + 1,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
}


def written(moment: datetime, fraction: int, layout: str) -> str:
    """A time in a layout such as `yyyy-MM-dd HH:mm:ss.fff`: letters are replaced, unless `\\` or quotes escape them.

    Args:
        fraction: Ten-millionths of a second.

    Raises:
        ValueError: More digits of the second than seven are wanted.
    """

    def part(found: re.Match[str]) -> str:
        escaped, single, double, letter = found.groups()
        if letter is None:
            return next(text for text in (escaped, single, double) if text is not None)
        return _written_part(moment, fraction, letter, len(found[0]))

    return _LETTERS.sub(part, layout)


def _written_part(moment: datetime, fraction: int, letter: str, length: int) -> str:
    if letter in "fF":
        if length > _FRACTION_DIGITS:
            raise ValueError(f"A second has {_FRACTION_DIGITS} digits.")
        digits = f"{fraction:07d}"[:length]
        return digits if letter == "f" else digits.rstrip("0")
    if letter == "y":
        return f"{moment.year % 100 if length <= len('yy') else moment.year:0{length}d}"
    if letter == "t":
        return ("AM" if moment.hour < _HALF_A_DAY else "PM")[:length]
    if letter in "Md" and length >= _A_NAME:
        name = _MONTH_NAMES[moment.month - 1] if letter == "M" else _DAY_NAMES[moment.weekday()]
        return name[:_A_NAME] if length == _A_NAME else name
    return f"{_NUMBERS[letter](moment):0{min(length, 2)}d}"


_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?)?Z?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # All of them are in UTC.
_A_SECOND: Final = 10_000_000
_A_MILLISECOND: Final = 10_000
_A_YEAR: Final = 12

_MONTHS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), _A_YEAR),
    **dict.fromkeys(("month", "mm", "m"), 1),
}
"""Parts of a time that are no fixed number of ticks, in months."""
_TICKS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("day", "dd", "d"), 86_400 * _A_SECOND),
    **dict.fromkeys(("hour", "hh"), 3_600 * _A_SECOND),
    **dict.fromkeys(("minute", "mi", "n"), 60 * _A_SECOND),
    **dict.fromkeys(("second", "ss", "s"), _A_SECOND),
    **dict.fromkeys(("millisecond", "ms"), _A_MILLISECOND),
    **dict.fromkeys(("microsecond", "mcs"), 10),
}
"""The others."""
_NANOSECONDS: Final = ("nanosecond", "ns")
_A_TICK: Final = 100
"""Nanoseconds."""


class _NoTimeError(ValueError):
    """A string is no time, or a part has no such name."""


def _ticks(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise _NoTimeError(text)
    day, time, fraction = match.groups(default="")
    moment = datetime.fromisoformat(f"{day}T{time or '00:00:00'}")
    return _ticks_of(moment) + int(fraction.ljust(_FRACTION_DIGITS, "0"))


def _ticks_of(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * _A_SECOND + since.microseconds * 10


def _moment(ticks: int) -> datetime:
    return _EPOCH + timedelta(microseconds=ticks // 10)


def _text(ticks: int) -> str:
    return f"{_moment(ticks // _A_SECOND * _A_SECOND).isoformat()}.{ticks % _A_SECOND:07d}Z"


def _months(ticks: int) -> int:
    moment = _moment(ticks)
    return moment.year * _A_YEAR + moment.month - 1


def _plus_months(ticks: int, months: int) -> int:
    """So many months later; on the last day of a month that has fewer days."""
    year, month = divmod(_months(ticks) + months, _A_YEAR)
    moment = _moment(ticks)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return _ticks_of(moment.replace(year=year, month=month + 1, day=day)) + ticks % 10


def _add(part: str, number: float, time: str) -> str:
    return _plus(_ticks(time), part, int(number))


def _plus(ticks: int, part: str, count: int) -> str:
    if part in _MONTHS:
        return _text(_plus_months(ticks, count * _MONTHS[part]))
    if part in _NANOSECONDS:
        return _text(ticks + int(count / _A_TICK))
    return _text(ticks + count * _TICKS[part])


def _difference(part: str, start: str, end: str) -> int:
    """How many boundaries between parts lie between two times: from 23:59 to 0:01 it is one day."""
    first, last = _ticks(start), _ticks(end)
    if part in _MONTHS:
        return _months(last) // _MONTHS[part] - _months(first) // _MONTHS[part]
    if part in _NANOSECONDS:
        return (last - first) * _A_TICK
    return last // _TICKS[part] - first // _TICKS[part]


def _bin(time: str, part: str, size: float = 1, origin: str = "1970-01-01") -> str:
    """The beginning of the bin that a time is in; bins are so many parts long, and one begins at the origin."""
    if size < 1:
        raise _NoTimeError(size)
    ticks, first = _ticks(time), _ticks(origin)
    if part in _MONTHS:
        width = int(size) * _MONTHS[part]
        months = (_months(ticks) - _months(first)) // width * width
        return _text(_plus_months(first, months if _plus_months(first, months) <= ticks else months - width))
    if part in _NANOSECONDS:
        raise _NoTimeError(part)
    width = int(size) * _TICKS[part]
    return _text(first + (ticks - first) // width * width)


def _part(part: str, time: str) -> int:
    ticks = _ticks(time)
    moment = _moment(ticks)
    if part in _MONTHS:
        return moment.year if _MONTHS[part] == _A_YEAR else moment.month
    if part in _NANOSECONDS:
        return ticks % _A_SECOND * _A_TICK
    width = _TICKS[part]
    if width < _A_SECOND:
        return ticks % _A_SECOND // width
    return {86_400: moment.day, 3_600: moment.hour, 60: moment.minute, 1: moment.second}[width // _A_SECOND]


def _from_parts(year: float, month: float, day: float, *rest: float) -> str:
    """Year, month, day, hour, minute, second, and ticks of the second."""
    hour, minute, second, fraction = (*map(int, rest), *[0] * (4 - len(rest)))
    if not 0 <= fraction < _A_SECOND:
        raise _NoTimeError(fraction)
    moment = datetime(int(year), int(month), int(day), hour, minute, second)  # noqa: DTZ001
    return _text(_ticks_of(moment) + fraction)


def _is_time(value: Any) -> bool:
    try:
        return is_string(value) and _ticks(value) is not None
    except ValueError:
        return False


def _formatted(time: str, layout: str) -> str:
    ticks = _ticks(time)
    return written(_moment(ticks), ticks % _A_SECOND, layout)


def _within_time(call: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*values: Any) -> Any:
        try:
            return call(*values)
        except (ValueError, OverflowError, KeyError):
            return UNDEFINED

    return checked


def _on_times(call: Callable[..., Any], *kinds: Callable[[Any], bool], optional: int = 0) -> Function:
    return function(_within_time(call), *kinds, optional=optional)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "DATETIMEADD": _on_times(_add, is_string, is_integer, is_string),
    "DATETIMEBIN": _on_times(_bin, is_string, is_string, is_integer, is_string, optional=2),
    "DATETIMEDIFF": _on_times(_difference, is_string, is_string, is_string),
    "DATETIMEFORMAT": _on_times(_formatted, is_string, is_string),
    "DATETIMEFROMPARTS": _on_times(_from_parts, *[is_integer] * 7, optional=4),
    "DATETIMEPART": _on_times(_part, is_string, is_string),
    "DATETIMETOTICKS": _on_times(_ticks, is_string),
    "DATETIMETOTIMESTAMP": _on_times(lambda time: _ticks(time) // _A_MILLISECOND, is_string),
    "DAY": _on_times(partial(_part, "day"), is_string),
    "IS_DATETIME": function(_is_time, anything),
    "MONTH": _on_times(partial(_part, "month"), is_string),
    "TICKSTODATETIME": _on_times(lambda ticks: _text(int(ticks)), is_integer),
    "TIMESTAMPTODATETIME": _on_times(lambda timestamp: _text(int(timestamp * _A_MILLISECOND)), is_number),
    "YEAR": _on_times(partial(_part, "year"), is_string),
}

_NOW: Final[Mapping[str, Callable[[int], Any]]] = {
    "GETCURRENTDATETIME": _text,
    "GETCURRENTTICKS": lambda ticks: ticks,
    "GETCURRENTTIMESTAMP": lambda ticks: ticks // _A_MILLISECOND,
}


def _shifted(now: int, direction: int, part: str | None = None, number: float | None = None) -> str:
    if part is None:
        return _text(now)
    if number is None:
        raise _NoTimeError(part)
    return _plus(now, part, direction * int(number))


OF_THE_CLOCK: Final[Mapping[str, Callable[[float], Function]]] = {
    "AGO": lambda now: _on_times(partial(_shifted, int(now * _A_SECOND), -1), is_string, is_integer),
    "NOW": lambda now: _on_times(partial(_shifted, int(now * _A_SECOND), 1), is_string, is_integer, optional=2),
    **{
        f"{name}{static}": lambda now, call=call: function(partial(call, int(now * _A_SECOND)))  # type: ignore[misc]
        for name, call in _NOW.items()
        for static in ("", "STATIC")
    },
}
"""Functions of the present (seconds since 1970). Time stands still while a query is answered, so that the static ones and the
others say the same.
"""
