"""Errors in one line: most of a trace is the machinery between the host and the app."""

import logging
import traceback
from pathlib import Path


def brief(error: BaseException, app: Path) -> str:
    """An error, its innermost cause, and the line of the app that raised it."""
    cause, seen = error, {id(error)}
    while (inner := _cause_of(cause)) is not None and id(inner) not in seen:  # Causes can go round in a circle.
        cause = inner
        seen.add(id(inner))
    told = _named(error) if cause is error else f"{_named(error)} (from {_named(cause)})"
    for frame in reversed([*traceback.extract_tb(error.__traceback__), *traceback.extract_tb(cause.__traceback__)]):
        place = Path(frame.filename)
        if place.is_relative_to(app) and "site-packages" not in place.parts:
            return f"{told} at {place.relative_to(app)}:{frame.lineno}"
    return told


def _cause_of(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _named(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as second:  # Whatever a function raises is logged.
        text = f"(its text raised {type(second).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class BriefFormatter(logging.Formatter):
    """Writes a record with an exception as one line."""

    def __init__(self, text: str, app: Path) -> None:
        super().__init__(text)
        self._app = app

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = self.formatMessage(self._with_message(record))
        error = record.exc_info[1] if record.exc_info else None
        return line if error is None else f"{line}: {brief(error, self._app)}"

    def _with_message(self, record: logging.LogRecord) -> logging.LogRecord:
        record.message = record.getMessage()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        return record
