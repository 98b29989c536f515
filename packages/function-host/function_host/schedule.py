"""NCRONTAB schedules: when a timer function is due, in UTC. Pure."""

import re
from datetime import datetime

from croniter import croniter

from .errors import AppError

_NUMBERS = re.compile(r"[\d*/,-]+")
_NAMES = re.compile(r"(?:[\d*/,-]|(?<![A-Za-z])[A-Za-z]{3}(?![A-Za-z]))+")
_FIELDS = (5, 6)


class Schedule:
    """An NCRONTAB expression: second, minute, hour, day, month, day of the week; or five fields, at second 0.

    Day and day of the week must both match, as NCRONTAB has it; plain cron would take either.

    Raises:
        AppError: the expression is not NCRONTAB.
    """

    def __init__(self, expression: str) -> None:
        fields = expression.split()
        allowed = [_NUMBERS] * (len(fields) - 2) + [_NAMES] * 2
        usable = len(fields) in _FIELDS and all(
            pattern.fullmatch(field) for pattern, field in zip(allowed, fields, strict=True)
        )
        self._expression = " ".join(["0"] * (6 - len(fields)) + fields)
        if not usable or not croniter.is_valid(self._expression, second_at_beginning=True):
            raise AppError(
                f"'{expression}' is no NCRONTAB schedule: write six fields, second first, such as '0 */5 * * * *'."
            )

    def next_after(self, moment: datetime) -> datetime:
        """First occurrence strictly after a moment (with time zone)."""
        due: datetime = croniter(self._expression, moment, second_at_beginning=True, day_or=False).get_next(datetime)
        return due
