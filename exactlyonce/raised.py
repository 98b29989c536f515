"""What the application's code raises: how it becomes an error of the library, and how it is shown.

A handler is a plain function: nobody outside can cancel or end it. So whatever it raises is its own failure, `SystemExit`,
`CancelledError` and the panics of Rust extensions included. Let through, they would end the event loop, or fail the messages
that wait for the same entity.

The text of such an exception may quote a message. So logs show its class and its frames, and its text only if a setting
says so.
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, TypeGuard

from exactlyonce.errors import ExactlyOnceError

Show = Callable[[BaseException], BaseException]
"""Makes of an exception what may be logged of it."""
_MOST_SHOWN: Final = 50
"""Most exceptions that are shown of a chain, with the groups in it."""
_MOST_INSIDE: Final = 10
"""Most exceptions of a group that are shown."""
_MOST_FRAMES: Final = 30
_GROUP: Final[Any] = getattr(builtins, "BaseExceptionGroup", None)  # None before Python 3.11.
_EXCEPTION_GROUP: Final[Any] = getattr(builtins, "ExceptionGroup", None)


class ApplicationsCode:
    """A context in which the application's code runs: what it raises becomes an error of the library, and the error's cause.

    `KeyboardInterrupt` passes: it is the developer's.

    Args:
        failed: makes the error; gets the exception.
        passing: classes that pass as well.
    """

    __slots__ = ("_failed", "_passing")

    def __init__(self, failed: Callable[[BaseException], ExactlyOnceError], *passing: type[BaseException]) -> None:
        self._failed = failed
        self._passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, *passing)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or error is None or issubclass(kind, self._passing):
            return
        raise self._failed(error) from error


def is_librarys(error: BaseException) -> TypeGuard[ExactlyOnceError]:
    """Whether an exception is the library's, by its type: an exception of others may raise when it is asked for its class."""
    return issubclass(type(error), ExactlyOnceError)


def class_of(error: BaseException) -> str:
    """The name of an exception's class."""
    return type(error).__name__


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of an exception."""
    cause: BaseException | None = _kept("__cause__", error)
    return cause


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An exception, its cause, the cause of that, and so on; each once, since causes can go round in a circle."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = cause_of(one)


def text_of(error: BaseException) -> str:
    """The text of an exception, which may raise in turn."""
    try:
        return str(error)
    except BaseException as second:
        return f"(its text cannot be shown: making it raised {class_of(second)})"


def shown(error: BaseException, *, text: bool = False) -> BaseException:
    """An exception as it may be logged.

    The exception itself keeps its class and text if it is the library's. All others, and its causes, have a class made for
    them, which a trace shows under the same name. With `text` they have text and frames. Without, their text is a list of their
    frames: a formatter would also show the lines of the source, and a line such as `raise KeyError("...")` has a text in it.

    Args:
        error: is left as it is.
        text: whether the texts of others' exceptions are shown.
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
        inner = [self.of(one) for one in inner if len(self._shown) < _MOST_SHOWN]
        made: BaseException = _like(kind, _EXCEPTION_GROUP)(text, inner) if inner else _like(kind, Exception)(text)
        return made


def _like(kind: type[BaseException], base: Any) -> Any:
    """A class that a trace shows under the same name. It has nothing else of an exception that may raise when it is shown."""
    return type(kind.__name__, (base,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def _kept(name: str, error: BaseException) -> Any:
    """An attribute of an exception as Python keeps it, whatever its class makes of the name."""
    return vars(BaseException)[name].__get__(error)


def _frames(trace: TracebackType | None) -> list[str]:
    """The innermost frames of a trace, as Python writes them, but for the lines of the source."""
    frames: deque[str] = deque(maxlen=_MOST_FRAMES)
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}')
        trace = trace.tb_next
    return list(frames)
