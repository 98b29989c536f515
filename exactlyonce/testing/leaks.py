"""Finds leaks: calls of a handler that give another result every time, to clocks, chance, files, and values of one process.

A profile function sees every call that Python code makes, to Python or C, with the calling frame. So nothing is patched, and it
does not matter under which name a handler imported a function. Calls that C code makes are not seen, such as
`Field(default_factory=datetime.now)`: there only the results differ.
"""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType, TracebackType
from typing import Any, Final

CLOCK: Final = "Take the time from context.now."
CHANCE: Final = "Take ids from context.new_id(), and chance from context.random."
PROCESS: Final = "hash() and id() differ from process to process; use hashlib, or a key in the message."
OUTSIDE: Final = "Pass data of files, settings and other services in the message, or keep it in the state."
THREADS: Final = (
    "Do it in the handler itself: results of threads depend on their timing, and their calls are not watched."
)

_CLOCKS: Final = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_FUNCTIONS: Final[dict[str, str]] = {
    **{f"time.{name}{ns}": CLOCK for name in _CLOCKS for ns in ("", "_ns")},
    **dict.fromkeys(("time.localtime", "time.ctime", "time.clock_gettime", "time.clock_gettime_ns"), CLOCK),
    **dict.fromkeys(("os.urandom", "os.getrandom", "_uuid.generate_time_safe", "_uuid.UuidCreate"), CHANCE),
    **dict.fromkeys(("hash", "id", "os.getpid"), PROCESS),
    **dict.fromkeys(("open", "socket.gethostname", "_posixsubprocess.fork_exec", "os.listdir", "os.scandir"), OUTSIDE),
    **dict.fromkeys(("os.open", "os.stat", "os.lstat", "os.system", "os.uname", "socket.getaddrinfo"), OUTSIDE),
    **dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), THREADS),
}
"""Functions in C, by the names in reports, with the advice."""
_OF_INSTANCES: Final = {"random", "getrandbits", "connect", "now", "utcnow", "today"}
_NAMES: Final = _OF_INSTANCES | {name.rpartition(".")[2] for name in _FUNCTIONS}
_OWN_NAMES: Final = {"posix": "os.", "nt": "os.", "builtins": "", "_io": "", "io": "", "_socket": "socket."}

_ONLY_THROUGH: Final[dict[str, frozenset[str]]] = {
    "hash": frozenset(),
    "id": frozenset(),
    "open": frozenset({"pathlib", "io"}),
    **dict.fromkeys(("os.stat", "os.lstat"), frozenset({"pathlib", "os", "posixpath", "ntpath", "genericpath"})),
    "os.environ": frozenset({"os", "collections", "_collections_abc"}),
}
"""Calls that libraries make all the time without harm: reported only if a handler makes them or these modules do."""
_HARMLESS: Final = frozenset({"exactlyonce", "importlib", "logging", "opentelemetry", "structlog", "warnings"})
"""Packages that call clocks and chance without returning the results to the handler."""
_PASSING_ON: Final = frozenset({"dataclasses", "functools", "pydantic"})
"""Packages that call given functions: the call counts as their caller's."""

_SEED: Final = random.Random.seed.__code__
_ENVIRON: Final = type(os.environ).__getitem__.__code__
_LIBRARIES: Final = tuple(
    {
        *(str(Path(path)) + os.sep for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))),
        str(Path(__file__).parent.parent) + os.sep,
    }
)


@dataclass(frozen=True, slots=True)
class Leak:
    """A call that gives another result every time.

    Attributes:
        call: such as `time.time()`.
        place: file and line of the handler's code that made it.
        advice: what to do instead.
    """

    call: str
    place: str
    advice: str

    def __str__(self) -> str:
        return f"{self.call} in {self.place}"


class Watch:
    """Records leaks while it is entered; it can be entered again.

    Args:
        handler: the code of its package counts as the user's, wherever it is installed.

    Attributes:
        leaks: each once, in order.
    """

    def __init__(self, handler: Callable[..., Any]) -> None:
        self.leaks: list[Leak] = []
        self._own = _home_of(handler)
        self._seeded: list[object] = []
        self._before: Any = None
        self._collects = False

    def __enter__(self) -> Watch:
        self._seeded.clear()
        self._before = sys.getprofile()
        self._collects = gc.isenabled()
        gc.disable()  # A collection calls functions of others, which may ask a clock.
        sys.setprofile(self._see)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    # Tracing is off in a profile function, so coverage does not see the methods below.

    def _see(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in _NAMES:
            self._see_builtin(frame, called)
        elif event == "call" and frame.f_code is _SEED:
            self._see_seed(frame)
        elif event == "call" and frame.f_code is _ENVIRON:
            self._note(frame, "os.environ", OUTSIDE)

    def _see_builtin(self, frame: FrameType, called: BuiltinFunctionType) -> None:
        owner, name = called.__self__, called.__name__
        if isinstance(owner, ModuleType):
            full = f"{_OWN_NAMES.get(owner.__name__, f'{owner.__name__}.')}{name}"
            if full in _FUNCTIONS and not (full == "hash" and frame.f_code.co_name == "__hash__"):
                self._note(frame, full, _FUNCTIONS[full])
        elif isinstance(owner, type) and issubclass(owner, date):
            self._note(frame, f"{owner.__name__}.{name}", CLOCK)
        elif isinstance(owner, random.Random) and not any(owner is one for one in self._seeded):
            self._note(frame, f"random.{'' if owner is _SHARED else 'Random.'}{name}", CHANCE)
        elif isinstance(owner, socket.SocketType):
            self._note(frame, "socket.connect", OUTSIDE)

    def _see_seed(self, frame: FrameType) -> None:
        """Note a generator without a seed; one with a seed is deterministic."""
        given = frame.f_locals
        if given.get("a") is not None:
            self._seeded.append(given["self"])
        else:
            self._note(frame, "random.Random", CHANCE)

    def _note(self, frame: FrameType, call: str, advice: str) -> None:
        """Record a call for the nearest frame of the handler's own code, under the name by which it was called there."""
        through: list[FrameType] = []
        at: FrameType | None = frame
        while at is not None and not self._is_own(at.f_code):
            through.append(at)
            at = at.f_back
        packages = {_package_of(one) for one in through}
        if at is None or packages & _HARMLESS:
            return
        if call in _ONLY_THROUGH:
            if packages - _ONLY_THROUGH[call]:
                return
        else:
            asked = [one for one in through if _package_of(one) not in _PASSING_ON and one.f_code.co_filename[0] != "<"]
            call = _name_of(asked[-1]) if asked else call
        leak = Leak(f"{call}()" if call != "os.environ" else call, _place_of(at), advice)
        if leak not in self.leaks:
            self.leaks.append(leak)

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        return file.startswith(self._own) or not (file.startswith(("<", *_LIBRARIES)) or "site-packages" in file)


_SHARED: Final = getattr(random, "_inst", None)
"""The generator behind the functions of `random`."""


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _name_of(frame: FrameType) -> str:
    """The name of a function as its caller would write it."""
    name, me = frame.f_code.co_name, frame.f_locals.get("self")
    if me is not None and me is not _SHARED:
        kind = next((one for one in type(me).__mro__ if name in vars(one)), type(me))
        name = f"{kind.__name__}.{name}".removesuffix(".__init__")
    return f"{frame.f_globals.get('__name__', '')}.{name}"


def _place_of(frame: FrameType) -> str:
    file = Path(frame.f_code.co_filename)
    if file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"{file.as_posix()} line {frame.f_lineno}"


def _home_of(handler: Callable[..., Any]) -> tuple[str, ...]:
    """The file of a handler, and the folder of its package."""
    while isinstance(handler, partial):
        handler = handler.func
    code = getattr(handler, "__code__", None)
    home = [] if code is None else [code.co_filename]
    module = sys.modules.get(str(getattr(handler, "__module__", "")).partition(".")[0])
    if hasattr(module, "__path__") and (file := getattr(module, "__file__", None)):
        home.append(str(Path(file).parent) + os.sep)
    return tuple(home)
