"""Interned replay: production generators as a table that fills itself.

A generator cannot be copied, so a situation is what leads to it: how the attempt was started and the replies it got. Each
distinct situation is one shared, immutable object that holds the pending effect, or the result, and remembers which
situation follows each reply. The production code runs once per new situation; everything else is a look-up.

Situations whose generators stand at the same place with the same local variables behave alike from there on, however they came
there, and are one. That is sound as long as nothing hides from the local variables, which a test on the syntax tree of the
strategies sees to: effects are requested by whole statements only, and in no loop over an iterator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from types import GeneratorType
from typing import Any, Generic, TypeVar

from exactlyonce.effects.effect import Effect, Step

Start = TypeVar("Start", bound=Hashable)


class ImpureStrategyError(AssertionError):
    """The same replies led to different effects: something in the strategy or the handler comes from outside."""


class Situation(Generic[Start]):
    """Where an attempt stands. Compare with `is`: equal situations are the same object.

    Attributes:
        start: how the attempt was started.
        replies: what it was told so far.
        effect: what it asks for now; None at its end.
        result: what it came to; or the exception it raised.
        next: the situations after the replies tried so far.
        step: the generator that stands there, until it is sent the first reply; the others take a run from the start.
    """

    __slots__ = ("effect", "next", "replies", "result", "start", "step")

    def __init__(
        self,
        start: Start,
        replies: tuple[Any, ...],
        effect: Effect[Any] | None,
        result: Any,
        step: Step[Any] | None = None,
    ) -> None:
        self.start = start
        self.replies = replies
        self.effect = effect
        self.result = result
        self.next: dict[Any, Situation[Start]] = {}
        self.step = step


class Situations(Generic[Start]):
    """All situations met so far.

    Args:
        run: starts the production generator.
        merge: whether situations that behave alike are one; tests compare with and without.
    """

    def __init__(self, run: Callable[[Start], Step[Any]], *, merge: bool = True) -> None:
        self._run = run
        self._merge = merge
        self._first: dict[Start, Situation[Start]] = {}
        self._alike: dict[Any, Situation[Start]] = {}
        self.runs = 0

    def first(self, start: Start) -> Situation[Start]:
        """The situation of an attempt that has just started."""
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
            if before is not None and before.step is not None:
                step, before.step = before.step, None
                effect = step.send(replies[-1])
            else:
                step = self._run(start)
                effect = next(step)
                for number, reply in enumerate(replies):
                    if number == len(replies) - 1 and before is not None and effect != before.effect:
                        raise ImpureStrategyError(f"{effect} in place of {before.effect} after the same replies")
                    effect = step.send(reply)
        except StopIteration as finished:
            return self._ended(start, replies, finished.value)
        except ImpureStrategyError:
            raise
        except Exception as error:  # It is the attempt's outcome.
            return self._ended(start, replies, error)
        key = (start, *_frames(step)) if self._merge else (start, replies)
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = Situation(start, replies, effect, None, step)
        else:
            step.close()
        return found

    def _ended(self, start: Start, replies: tuple[Any, ...], result: Any) -> Situation[Start]:
        key = (start, result if not isinstance(result, Exception) else str(result))
        return self._alike.setdefault(key, Situation(start, replies, None, result))


def _frames(step: Any) -> Iterator[Any]:
    """Place and local variables of a suspended generator and of those it waits for."""
    while step is not None:
        frame = step.gi_frame
        yield (frame.f_code, frame.f_lasti, tuple((name, _frozen(value)) for name, value in frame.f_locals.items()))
        step = step.gi_yieldfrom


def _frozen(value: Any) -> Any:
    """A hashable stand-in for a local variable."""
    if isinstance(value, dict):
        return tuple((key, _frozen(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(one) for one in value)
    if isinstance(value, GeneratorType) and value.gi_frame is not None:  # Another one drives it, as those of twins do.
        return tuple(_frames(value))
    return frozenset(value) if isinstance(value, set) else value
