"""What an audit tells while it runs, on the error output: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

try:
    import rich.console
except ImportError:  # Not on a pool, where nobody watches.
    rich = None  # type: ignore[assignment]


class Telling(Protocol):
    """Tells what goes on."""

    def begin(self, what: str) -> None:
        """Something takes a while from now on."""
        ...

    def done(self, result: str) -> None:
        """It is done."""
        ...


class Lines:
    """A line for each thing that is done, with the seconds it took.

    Args:
        output: where lines go.
        clock: seconds from any beginning.
    """

    def __init__(self, output: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._what, self._begun = "", 0.0

    def begin(self, what: str) -> None:
        """Nothing is told until it is done."""
        self._what, self._begun = what, self._clock()

    def done(self, result: str) -> None:
        """Tell it."""
        print(f"{self._clock() - self._begun:7.1f} s  {self._what}: {result}", file=self._output, flush=True)


class Spinning(Lines):
    """The same, and below it what goes on."""

    def __init__(self, output: TextIO, status: Any) -> None:
        super().__init__(output)
        self._status = status

    def begin(self, what: str) -> None:
        """Tell it at once."""
        super().begin(what)
        self._status.update(what)


@contextmanager
def told(output: TextIO | None = None) -> Iterator[Telling]:
    """Tell in the way that fits the output: with `rich` on a terminal where it is installed, else in lines."""
    output = output or sys.stderr
    if rich is None or not output.isatty():
        yield Lines(output)
        return
    with rich.console.Console(file=output).status("starting") as status:
        yield Spinning(output, status)
