"""The words about steps: comments in the strategies, directly above the statement with the yield.

The first sentence of a comment is the step's title, the rest its reason. A comment above a call of another generator speaks for
all steps inside: its title goes before their titles.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import GeneratorType
from typing import Any, Final

from exactlyonce.effects.effect import Effect, Step

Line = tuple[str, int]
"""A file, and the number of a line in it."""

_EFFECT: Final = Effect.__iter__.__code__
_SENTENCE: Final = re.compile(r"\.(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Words:
    """The content of a step's comment.

    Attributes:
        title: the first sentence, without the period.
        reason: the rest; empty without a rest.
        occasion: reason at the call of the generator with the step; empty without a comment there.
    """

    title: str
    reason: str
    occasion: str = ""

    def inside(self, caller: Words) -> Words:
        """The words about a step in a generator whose call has a comment of its own."""
        title = f"{caller.title}: {self.title[:1].lower()}{self.title[1:]}"
        return Words(title, self.reason, caller.reason)


def lines_of(step: Step[Any]) -> tuple[Line, ...]:
    """The waiting line of each generator of a suspended step, from the outermost to the yielder of the effect.

    A generator driven by hand counts as if its driver had called it.
    """
    lines: list[Line] = []
    waiting: Any = step
    while waiting is not None and waiting.gi_frame.f_code is not _EFFECT:
        frame, inner = waiting.gi_frame, waiting.gi_yieldfrom
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        if inner is None or inner.gi_frame.f_code is _EFFECT:
            inner = next(filter(_is_suspended, frame.f_locals.values()), inner)
        waiting = inner
    return tuple(lines)


def _is_suspended(value: object) -> bool:
    """Whether a value is a generator that was begun, and waits."""
    return isinstance(value, GeneratorType) and value.gi_frame is not None and value.gi_frame.f_lasti > 0


def words_at(lines: tuple[Line, ...]) -> Words | None:
    """The words about a step, at the lines of `lines_of`; None without a comment."""
    *callers, own = (_comment(line) for line in lines)
    caller = next((words for words in reversed(callers) if words is not None), None)
    return own if own is None or caller is None else own.inside(caller)


def _comment(line: Line) -> Words | None:
    file, number = line
    text = _comments(file).get(number, "")
    title, _, reason = _SENTENCE.sub("\n", text, count=1).partition("\n")
    return Words(title, reason) if title else None


@cache
def _comments(file: str) -> Mapping[int, str]:
    """The comment above the innermost statement of each line, for the commented lines of a file."""
    try:
        source = Path(file).read_text(encoding="utf-8")
    except OSError:  # An application may be published without its sources.
        return {}
    lines = source.splitlines()
    comments: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):  # Outer statements come before inner ones.
        if isinstance(node, ast.stmt):
            first = node.lineno - 1
            while first and lines[first - 1].lstrip().startswith("#"):
                first -= 1
            text = " ".join(line.strip().removeprefix("#").strip() for line in lines[first : node.lineno - 1])
            comments |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), text)
    return comments
