"""Durations as people write them, in settings and files: ISO 8601, or seconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>\d{1,5})W)?(?:(?P<days>\d{1,5})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_SECONDS: Final = re.compile(r"\d{1,10}(?:\.\d{1,6})?", re.ASCII)
"""Variables of the environment are text, numbers too."""
_LONGEST: Final = timedelta(days=36_500)


def duration(value: object) -> timedelta:
    """A duration from ISO 8601 or seconds. Years and months are refused: they have no fixed length, and `P10M` is a slip.

    >>> duration("P1DT30M")
    datetime.timedelta(days=1, seconds=1800)
    >>> duration("90") == duration(90)
    True

    Raises:
        ValueError: it is neither, negative, or longer than a hundred years.
    """
    found = None
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = float(value)
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LONGEST.total_seconds():
        found = timedelta(seconds=value)
    elif isinstance(value, str) and (parts := _DURATION.fullmatch(value)):
        found = timedelta(**{name: float(part) for name, part in parts.groupdict().items() if part})
    if found is None or not timedelta(0) <= found <= _LONGEST:
        raise ValueError(
            'has to be an ISO 8601 duration such as "P30D" or "PT10M", or seconds; not over a hundred years'
        )
    return found


Duration = Annotated[timedelta, BeforeValidator(duration)]
Positive = Annotated[Duration, Field(gt=timedelta(0))]
"""Longer than nothing."""
