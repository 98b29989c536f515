"""Where in the code a strategy waits: what makes a step of the specification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.effects.effect import Effect, Step, Together
from exactlyonce.telemetry.words import Line, Words, words_at

_PROTOCOLS: Final = (Outbox, Colocated, VersionStream, Resequencer)
_WHOLE: Final[frozenset[CodeType]] = frozenset(
    function.__code__ for protocol in _PROTOCOLS for function in (protocol.attempt, protocol.mark)
)
"""What every protocol has. Where another generator runs it, its steps are the ones it always has."""
_EFFECT: Final = Effect.__iter__.__code__


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the code, in the order of the code: strategies have no loops, so that is the order of the steps.

    Attributes:
        path: positions in the bytecode, from the strategy's own function inwards.
        lines: the same as lines of files.
        effect: that is asked for there.
    """

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


def place_of(step: Step[Any], effect: Effect[Any]) -> Place:
    """Where a suspended strategy waits, and for what."""
    path: list[int] = []
    lines: list[Line] = []
    waiting: Any = step
    while waiting is not None:
        frame = waiting.gi_frame
        if frame.f_code in _WHOLE:
            path.clear()
            lines.clear()
        if frame.f_code is not _EFFECT:
            path.append(frame.f_lasti)
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        waiting = waiting.gi_yieldfrom
    return Place(tuple(path), tuple(lines), name_of(effect))


def name_of(effect: Effect[Any]) -> str:
    """An effect's name."""
    if isinstance(effect, Together):
        return f"{name_of(effect.first)} + {name_of(effect.second)}"
    return type(effect).__name__
