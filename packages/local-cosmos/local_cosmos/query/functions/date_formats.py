"""Times in a format: letters are replaced by parts of the time, unless `\\` or quotes escape them. All else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

_PARTS: Final = re.compile(r"\\(.)|'([^']*)'|\"([^\"]*)\"|([yMdHhmsfFt])\4*", re.DOTALL)
_FRACTION_DIGITS: Final = 7
_HALF_A_DAY: Final = 12
_A_NAME: Final = 3
"""Letters for the short name of a month or day; one more is the long name."""
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_NUMBERS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "M": lambda moment: moment.month,
    "d": lambda moment: moment.day,
    "H": lambda moment: moment.hour,
    "h": lambda moment: (moment.hour - 1) % _HALF_A_DAY + 1,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
}


def written(moment: datetime, fraction: int, layout: str) -> str:
    """A time in a layout such as `yyyy-MM-dd HH:mm:ss.fff`.

    Args:
        moment: The time, to the second.
        fraction: Ten-millionths of a second.
        layout: The format.

    Raises:
        ValueError: More digits of the second than seven are wanted.
    """

    def part(found: re.Match[str]) -> str:
        escaped, single, double, letter = found.groups()
        if letter is None:
            return next(text for text in (escaped, single, double) if text is not None)
        return _part(moment, fraction, letter, len(found[0]))

    return _PARTS.sub(part, layout)


def _part(moment: datetime, fraction: int, letter: str, length: int) -> str:
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
        name = _MONTHS[moment.month - 1] if letter == "M" else _DAYS[moment.weekday()]
        return name[:_A_NAME] if length == _A_NAME else name
    return f"{_NUMBERS[letter](moment):0{min(length, 2)}d}"
