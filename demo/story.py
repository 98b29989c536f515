"""The story of a demo: acts are announced, and everything that is said bears the time since the beginning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.status import Status

_INDENT: Final = " " * 7


@dataclass(slots=True)
class Story:
    """Says what happens while it happens.

    Attributes:
        console: shows it.
        clock: seconds from any beginning.
    """

    console: Console
    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)
    _acts: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.clock() - self._began

    def act(self, title: str) -> None:
        """Announce the next act."""
        self._acts += 1
        self.console.print(f"\n{self._time}  [bold]Act {self._acts}. {title}[/]", highlight=False, soft_wrap=True)

    def tell(self, sentence: str) -> None:
        """Say what an act shows, once it does."""
        self.console.print(f"{self._time}  {sentence}", highlight=False, soft_wrap=True)

    def add(self, line: str) -> None:
        """Say more about the sentence before."""
        self.console.print(f"{_INDENT}{line}", highlight=False, soft_wrap=True)

    @contextmanager
    def steps(self) -> Iterator[Steps]:
        """Show the current step of a job, on a terminal only, until the block ends."""
        with self.console.status("starting") as status:
            yield Steps(status)

    @property
    def _time(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"[dim]{minutes:2}:{seconds:02}[/]"


@dataclass(frozen=True, slots=True)
class Steps:
    """Progress of a Spark job, as `spark_jobs` reports it, of which the last step is seen."""

    status: Status

    def begin(self, step: str) -> None:
        """Show it."""
        self.status.update(step)

    def done(self, result: str) -> None:
        """The next step follows."""
