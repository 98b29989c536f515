"""In which module CPU time goes: the stack is looked at whenever a millisecond of it has passed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
OWN: Final = ("exactlyonce", "handlers")
TOOLS: Final = (("values", "frozen_json"), ("values", "shapes"), ("values", "validation"))
"""What they take, JSON and pydantic included, counts for whoever asked them."""
EVERY: Final = 0.001
"""Seconds of CPU time between two looks, if the system's timer is that fine."""


class Profile:
    """What was seen.

    Attributes:
        seen: how often each module was the innermost one of the library or the handlers. What it has others do counts as its
            own; what none of them asked for is the event loop's.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look while this lasts. Only in the main thread, since signals arrive there."""
        before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def shares(self) -> dict[str, float]:
        """The part of the time in each module, the largest first."""
        total = self.seen.total()
        return {module: round(number / total, 4) for module, number in self.seen.most_common()}

    def _look(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            module = module_of(frame.f_code.co_filename)
            if module is not None:
                self.seen[module] += 1
                return
            frame = frame.f_back
        self.seen["event loop"] += 1


def module_of(file: str) -> str | None:
    """The module of a file of the library, without the library's name, or `handlers`; None for tools and others' files."""
    path = Path(file)
    if not path.is_relative_to(ROOT):
        return None
    top, *rest = path.relative_to(ROOT).with_suffix("").parts
    if top not in OWN or tuple(rest) in TOOLS:
        return None
    return ".".join(rest) if top == "exactlyonce" else top
