"""Ending the process at a chosen point of a message's way, as a crash would: for tests and demonstrations of redelivery."""

import os
import signal
from collections.abc import Callable
from enum import Enum


class Point(Enum):
    """Where a host may die."""

    RECEIVED = "received"
    """The message is dequeued, the function has not been called."""
    HANDLED = "handled"
    """The function has succeeded, the message has not been deleted: its outputs are out, and it will come again."""
    COPIED = "copied"
    """The message is in the poison queue and still in its own: it will be copied again."""


Checkpoint = Callable[[Point], None]
"""Called whenever a message passes a point."""


def pass_by(_: Point) -> None:
    """The checkpoint of a host that nobody kills."""


def kill_self() -> None:
    """End this process without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)


class KillSwitch:
    """A checkpoint that kills at the n-th passing of one point.

    Args:
        passing: at which passing, counted from 1 over all functions.
        kill: what kills; exchanged in tests.
    """

    def __init__(self, point: Point, passing: int = 1, kill: Callable[[], None] = kill_self) -> None:
        self._point = point
        self._left = passing
        self._kill = kill

    @classmethod
    def parse(cls, text: str) -> "KillSwitch":
        """Read `POINT` or `POINT:N`, such as `handled:3`.

        Raises:
            ValueError: it is neither.
        """
        point, _, passing = text.partition(":")
        number = int(passing or 1)
        if number < 1:
            raise ValueError("passings are counted from 1")
        return cls(Point(point), number)

    def __call__(self, point: Point) -> None:
        """Pass a point."""
        if point is self._point:
            self._left -= 1
            if self._left == 0:
                self._kill()
