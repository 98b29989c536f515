"""Progress of a job on the error output: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

try:
    import rich.console
except ImportError:  # Absent on a pool, where nobody watches.
    rich = None  # type: ignore[assignment]


class Progress(Protocol):
    """Shows the steps of a job."""

    def begin(self, step: str) -> None:
        """A step begins."""
        ...

    def done(self, result: str) -> None:
        """The step is done."""
        ...


class Lines:
    """Prints a line for each finished step, with the seconds.

    Args:
        clock: seconds from any beginning.
    """

    def __init__(self, output: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._step, self._begun = "", 0.0

    def begin(self, step: str) -> None:
        """Note the time."""
        self._step, self._begun = step, self._clock()

    def done(self, result: str) -> None:
        """Print the line."""
        print(f"{self._clock() - self._begun:7.1f} s  {self._step}: {result}", file=self._output, flush=True)


class Spinner(Lines):
    """Shows the current step below the lines, too."""

    def __init__(self, output: TextIO, status: Any) -> None:
        super().__init__(output)
        self._status = status

    def begin(self, step: str) -> None:
        """Show it at once."""
        super().begin(step)
        self._status.update(step)


@contextmanager
def shown(output: TextIO | None = None) -> Iterator[Progress]:
    """Progress on an output, the error output by default: by `rich` on a terminal where it is installed, else in lines."""
    output = output or sys.stderr
    if rich is None or not output.isatty():
        yield Lines(output)
        return
    with rich.console.Console(file=output).status("starting") as status:
        yield Spinner(output, status)
