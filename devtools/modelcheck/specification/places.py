"""Where in the code a strategy waits: the identity of a step, without line numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from exactlyonce.effects import Effect, Step, Together

WHOLE: Final = frozenset({"attempt", "mark"})
"""Names of what every protocol has. Where another generator runs it, its steps are the ones it always has."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the code, in the order of the code: strategies have no loops, so that is the order of the steps.

    Attributes:
        path: positions in the bytecode, from the strategy's own function inwards.
        key: names of these functions, with their modules, and the effect: `outbox.attempt/outbox._commit: SaveEntity`.
    """

    path: tuple[int, ...]
    key: str


def place_of(step: Step[Any], effect: Effect[Any]) -> Place:
    """Where a suspended strategy waits, and for what."""
    path: list[int] = []
    names: list[str] = []
    waiting: Any = step
    while waiting is not None:
        frame = waiting.gi_frame
        code = frame.f_code
        if code.co_name in WHOLE:
            path.clear()
            names.clear()
        if code.co_name != "__iter__":  # That is the effect itself.
            path.append(frame.f_lasti)
            names.append(f"{PurePath(code.co_filename).stem}.{code.co_name}")
        waiting = waiting.gi_yieldfrom
    return Place(tuple(path), f"{'/'.join(names)}: {name_of(effect)}")


def name_of(effect: Effect[Any]) -> str:
    """An effect's name."""
    if isinstance(effect, Together):
        return f"{name_of(effect.first)} + {name_of(effect.second)}"
    return type(effect).__name__
