"""A host that kills itself at given moments and is started again: `python -m tests.acceptance.lives FOLDER MOMENT ...`.

A moment is a point of the function host (`received:1`, `handled:2`), or a place of the library with a side of it:
`before:Publish:3` is where the third `Publish` of a life is about to be performed. Places are the effects; `Try`, one try of a
call; and `Send`, the sending of its reply. At each moment in turn the process dies by SIGKILL, and another takes its place; the
last one lives until it is killed. Each prints the line with which a host says that it is ready. Modules are imported once, and
each life is a fork.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from exactlyonce.drivers.driver import AsyncDriver
from exactlyonce.hosting.caller import Caller
from exactlyonce.transports.http import HttpWire
from function_host.cli import main as host
from function_host.kill_switch import kill_self

_PARENT_DEATH_SIGNAL: Final = 1
"""`PR_SET_PDEATHSIG` of Linux."""
SIDES: Final = ("before", "after")


def moments(places: Iterable[str], number: int = 1) -> list[str]:
    """Before and after the n-th time at each place."""
    return [f"{side}:{place}:{number}" for place in places for side in SIDES]


class Mortal:
    """Ends this process at one moment.

    Args:
        moment: before or after the n-th time at a place.
    """

    def __init__(self, moment: str) -> None:
        self.side, self.place, number = moment.split(":")
        self.left = int(number)

    def watch(self, kind: type, method: str, name: Callable[[Any], str]) -> None:
        """Make a method of a class a place, or several: `name` gives it for an argument."""
        original: Callable[..., Awaitable[Any]] = getattr(kind, method)

        async def watched(this: object, argument: Any) -> Any:
            place = name(argument)
            self._pass("before", place)
            reply = await original(this, argument)
            self._pass("after", place)
            return reply

        setattr(kind, method, watched)

    def _pass(self, side: str, place: str) -> None:
        if (side, place) == (self.side, self.place):
            self.left -= 1
            if self.left == 0:
                kill_self()


def live(folder: str, moment: str) -> int:
    """One life, in this process."""
    _die_with_parent()
    arguments = ["--app", folder, "--invisible", "1"]
    if moment.startswith(SIDES):
        mortal = Mortal(moment)
        mortal.watch(AsyncDriver, "_performed", lambda effect: type(effect).__name__)
        mortal.watch(HttpWire, "send", lambda _: "Try")
        mortal.watch(Caller, "_send", lambda _: "Send")
    elif moment:
        arguments += ["--kill", moment]
    return host(arguments)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main() -> int:
    """All lives, one after the other; ends early if one of them ends by anything but SIGKILL."""
    _die_with_parent()
    folder, *ends = sys.argv[1:]
    for moment in (*ends, ""):
        child = os.fork()
        if child == 0:
            return live(folder, moment)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
