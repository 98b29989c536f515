"""Exceptions of the application's code, as logs show them.

The text of an exception may quote a message. So logs show class and frames, and the text only if a setting allows it.
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, TypeGuard

from exactlyonce.errors import ExactlyOnceError

Show = Callable[[BaseException], BaseException]
"""Makes the loggable form of an exception."""
_MOST_SHOWN: Final = 50
"""Most exceptions shown of a chain, groups included."""
_MOST_INSIDE: Final = 10
"""Most exceptions shown of a group."""
_MOST_FRAMES: Final = 30
_GROUP: Final[Any] = getattr(builtins, "BaseExceptionGroup", None)  # None before Python 3.11.
_EXCEPTION_GROUP: Final[Any] = getattr(builtins, "ExceptionGroup", None)


def is_librarys(error: BaseException) -> TypeGuard[ExactlyOnceError]:
    """Whether an exception is the library's, by its type. Asking a foreign exception for `__class__` may raise."""
    return issubclass(type(error), ExactlyOnceError)


def class_of(error: BaseException) -> str:
    """The name of an exception's class."""
    return type(error).__name__


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of an exception, read without the application's code."""
    cause: BaseException | None = _kept("__cause__", error)
    return cause


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, from the outside in; each once, since causes can form a circle."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause_of(cause)


def text_of(error: BaseException) -> str:
    """The text of an exception; a note if making the text raises."""
    try:
        return str(error)
    except BaseException as second:
        return f"(its text cannot be shown: making it raised {class_of(second)})"


def shown(error: BaseException, *, text: bool = False) -> BaseException:
    """The loggable form of an exception.

    The exception itself keeps class and text if it is the library's. Every other exception, and every cause, gets a class
    made for it, shown by a trace under the same name. With `text`, texts and frames are shown. Without, the text is a list of
    frames: a formatter would also show source lines, and a line such as `raise KeyError("...")` holds a text.

    Args:
        text: whether the texts of foreign exceptions are shown.
    """
    return _Showing(text).of(error)


class _Showing:
    def __init__(self, text: bool) -> None:
        self._text = text
        self._shown: set[int] = set()

    def of(self, error: BaseException) -> BaseException:
        copy = self._copy(error)
        if self._text:
            copy.__traceback__ = _kept("__traceback__", error)
        cause = cause_of(error)
        if cause is None and not _kept("__suppress_context__", error):
            cause = _kept("__context__", error)
        # Causes can go round in a circle.
        ends = cause is None or id(cause) in self._shown or len(self._shown) >= _MOST_SHOWN
        copy.__cause__ = None if cause is None or ends else self.of(cause)
        return copy

    def _copy(self, error: BaseException) -> BaseException:
        kind, first = type(error), not self._shown
        self._shown.add(id(error))
        is_own = is_librarys(error) and kind.__module__ == ExactlyOnceError.__module__
        text = text_of(error) if self._text or is_own else ""
        if first and is_own and is_librarys(error):
            return type(error)(text, kept=error.kept)
        if not self._text:
            text = "\n".join(filter(None, (text, *_frames(_kept("__traceback__", error)))))
        inner = _GROUP.exceptions.__get__(error)[:_MOST_INSIDE] if _GROUP and issubclass(kind, _GROUP) else ()
        inner = [self.of(item) for item in inner if len(self._shown) < _MOST_SHOWN]
        made: BaseException = _like(kind, _EXCEPTION_GROUP)(text, inner) if inner else _like(kind, Exception)(text)
        return made


def _like(kind: type[BaseException], base: Any) -> Any:
    """A class shown by a trace under the same name. Nothing else is copied from the exception, since showing it may raise."""
    return type(kind.__name__, (base,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def _kept(name: str, error: BaseException) -> Any:
    """An attribute of an exception as stored by Python, whatever the class does with the name."""
    return vars(BaseException)[name].__get__(error)


def _frames(trace: TracebackType | None) -> list[str]:
    """The innermost frames of a trace, as Python writes them, without source lines."""
    frames: deque[str] = deque(maxlen=_MOST_FRAMES)
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}')
        trace = trace.tb_next
    return list(frames)
