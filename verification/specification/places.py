"""Where in the code a strategy waits: what makes a step of the specification."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from types import CodeType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.effects.effect import Effect, Step, Together
from exactlyonce.protocols.outbox import judge as look
from exactlyonce.telemetry.words import Line, Words, words_at

PROCESSING: Final = Outbox._process  # noqa: SLF001  # Their steps have parts of their own.
COMMITTING: Final = Outbox._commit  # noqa: SLF001
_PROTOCOLS: Final = (Outbox, Colocated, VersionStream, Resequencer)
_WHOLE: Final[tuple[Callable[..., Any], ...]] = (
    *(protocol.attempt for protocol in _PROTOCOLS),
    Resequencer.tend,
    PROCESSING,
    COMMITTING,
    look.take_back,
)
"""What has the same steps wherever another generator runs it, in the order in which the steps follow each other."""
_EFFECT: Final = Effect.__iter__.__code__


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the code, in the order of the code: strategies have no loops, so that is the order of the steps.

    Attributes:
        whole: the place in `_WHOLE`, from 1 on, of the function that the path begins in; 0 for a strategy's own one.
        path: positions in the bytecode, from that function inwards.
        lines: the same as lines of files.
        effect: that is asked for there.
    """

    whole: int
    path: tuple[int, ...]
    lines: tuple[Line, ...]
    effect: str

    def __str__(self) -> str:
        file, number = self.lines[-1]
        return f"{PurePath(file).name}:{number}"

    @property
    def words(self) -> Words:
        """What the comments above these lines say."""
        return words_at(self.lines) or Words(f"No comment at {self}", "")

    def is_of(self, function: Callable[..., Any]) -> bool:
        """Whether it belongs to this function, whichever generator runs that."""
        return self.whole > 0 and _WHOLE[self.whole - 1] is function


def place_of(step: Step[Any], effect: Effect[Any]) -> Place:
    """Where a suspended strategy waits, and for what."""
    whole = 0
    path: list[int] = []
    lines: list[Line] = []
    waiting: Any = step
    while waiting is not None:
        frame = waiting.gi_frame
        if number := _number_of(frame.f_code):
            whole = number
            path.clear()
            lines.clear()
        if frame.f_code is not _EFFECT:
            path.append(frame.f_lasti)
            lines.append((_file_of(frame.f_code.co_filename), frame.f_lineno))
        waiting = waiting.gi_yieldfrom
    return Place(whole, tuple(path), tuple(lines), name_of(effect))


def name_of(effect: Effect[Any]) -> str:
    """An effect's name."""
    if isinstance(effect, Together):
        return f"{name_of(effect.first)} + {name_of(effect.second)}"
    return type(effect).__name__


@cache
def _number_of(code: CodeType) -> int:
    """The place of a function in `_WHOLE`, from 1 on; 0 for others. That of a twin is told by its name and its line."""
    for number, function in enumerate(_WHOLE, 1):
        there = function.__code__
        named = (_file_of(code.co_filename), code.co_name, code.co_firstlineno)
        if named == (there.co_filename, there.co_name, there.co_firstlineno):
            return number
    return 0


def _file_of(name: str) -> str:
    """The file of a module. A twin's code has the name of the shipped module in place of it."""
    return str(sys.modules[name[1:-1]].__file__) if name.startswith("<exactlyonce.") else name
