"""Interned replay: generators as a table that fills itself.

A generator cannot be copied, so a situation is what leads to it: how the program was started and the replies it got. Each
distinct situation is one shared, immutable object that holds the pending request, or the result, and remembers which
situation follows each reply. The program runs once per new situation; everything else is a look-up.

Situations whose generators stand at the same place with the same local variables behave alike from there on, however they came
there, and are one. That is sound as long as nothing hides from the local variables: requests are made by whole statements only,
such as `reply = yield Read()`, and in no loop over an iterator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, GeneratorType
from typing import Any, Generic, TypeVar

Program = Generator[Any, Any, Any]
"""Yields hashable requests, is sent hashable replies, and returns a result."""
Start = TypeVar("Start", bound=Hashable)


class ImpureProgramError(AssertionError):
    """The same replies led to different requests: something in the program comes from outside, such as chance or a clock."""


@dataclass(slots=True, eq=False)
class Situation(Generic[Start]):
    """Where a program stands. Compare with `is`: equal situations are the same object.

    Attributes:
        start: how the program was started.
        replies: those that it got so far.
        request: the one that it waits for; None at its end.
        result: of the program; or the exception it raised.
        program: the generator that stands there, until it is sent the first reply; the others take a run from the start.
        next: the situations after the replies tried so far.
    """

    start: Start
    replies: tuple[Any, ...]
    request: Any
    result: Any
    program: Program | None = None
    next: dict[Any, Situation[Start]] = field(default_factory=dict)


class Situations(Generic[Start]):
    """All situations met so far.

    Args:
        run: starts a program.
        merge: whether situations that behave alike are one; tests compare with and without.
    """

    def __init__(self, run: Callable[[Start], Program], *, merge: bool = True) -> None:
        self._run = run
        self._merge = merge
        self._first: dict[Start, Situation[Start]] = {}
        self._alike: dict[Any, Situation[Start]] = {}
        self.runs = 0

    def first(self, start: Start) -> Situation[Start]:
        """The situation of a program that has just started."""
        found = self._first.get(start)
        if found is None:
            found = self._first[start] = self._replay(start, (), None)
        return found

    def after(self, situation: Situation[Start], reply: Any) -> Situation[Start]:
        """The situation after a reply."""
        found = situation.next.get(reply)
        if found is None:
            found = self._replay(situation.start, (*situation.replies, reply), situation)
            situation.next[reply] = found
        return found

    def _replay(self, start: Start, replies: tuple[Any, ...], before: Situation[Start] | None) -> Situation[Start]:
        self.runs += 1
        try:
            if before is not None and before.program is not None:
                program, before.program = before.program, None
                request = program.send(replies[-1])
            else:
                program = self._run(start)
                request = next(program)
                for number, reply in enumerate(replies):
                    if number == len(replies) - 1 and before is not None and request != before.request:
                        raise ImpureProgramError(f"{request} in place of {before.request} after the same replies")
                    request = program.send(reply)
        except StopIteration as finished:
            return self._ended(start, replies, finished.value)
        except ImpureProgramError:
            raise
        except Exception as error:  # It is the outcome.
            return self._ended(start, replies, error)
        key = (start, *_frames(program)) if self._merge else (start, replies)
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = Situation(start, replies, request, None, program)
        else:
            program.close()
        return found

    def _ended(self, start: Start, replies: tuple[Any, ...], result: Any) -> Situation[Start]:
        key = (start, result if not isinstance(result, Exception) else str(result))
        return self._alike.setdefault(key, Situation(start, replies, None, result))


def _frames(program: Any) -> Iterator[Any]:
    """Place and local variables of a suspended generator and of those it waits for."""
    while program is not None:
        frame = program.gi_frame
        yield (frame.f_code, frame.f_lasti, tuple((name, _frozen(value)) for name, value in frame.f_locals.items()))
        program = program.gi_yieldfrom


def _frozen(value: Any) -> Any:
    """A hashable stand-in for a local variable."""
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, FunctionType):  # One that a program defines is made anew in every run.
        around = tuple(_frozen(cell.cell_contents) for cell in value.__closure__ or ())
        return (value.__code__, _frozen(value.__defaults__), around)
    if isinstance(value, GeneratorType) and value.gi_frame is not None:  # Another one drives it, as those of twins do.
        return tuple(_frames(value))
    return frozenset(value) if isinstance(value, set) else value
