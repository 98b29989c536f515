"""Errors in one line: most of a trace is the machinery between the host and the app."""

import logging
import traceback
from pathlib import Path


def brief(error: BaseException, app: Path) -> str:
    """An error, its innermost cause, and the line of the app that raised it.

    Args:
        error: with its causes.
        app: folder of the app.
    """
    cause = error
    while (inner := cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)) is not None:
        cause = inner
    told = _named(error) if cause is error else f"{_named(error)} (from {_named(cause)})"
    for frame in reversed([*traceback.extract_tb(error.__traceback__), *traceback.extract_tb(cause.__traceback__)]):
        place = Path(frame.filename)
        if place.is_relative_to(app) and "site-packages" not in place.parts:
            return f"{told} at {place.relative_to(app)}:{frame.lineno}"
    return told


def _named(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class BriefFormatter(logging.Formatter):
    """Writes a record with an exception as one line.

    Args:
        text: as for `logging.Formatter`.
        app: folder of the app.
    """

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
