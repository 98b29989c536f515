"""Determinism: tests of handlers, on which a version stream and every repeated attempt rely."""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from reprlib import Repr
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType, TracebackType
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from exactlyonce.handling.context import Context
from exactlyonce.handling.messages import message_type
from exactlyonce.testing.runner import NOW, Ran, Sent, run
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.round_trips import written

# Leaks: a profile function sees every call from Python code, with the frame, under any import name. Calls from C code, such
# as `Field(default_factory=datetime.now)`, are not seen: only the results of the runs differ.


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
"""Harmless calls that libraries make all the time: reported only if a handler or one of these modules makes them."""
_HARMLESS: Final = frozenset({"exactlyonce", "importlib", "logging", "opentelemetry", "structlog", "warnings"})
"""Packages that call clocks and chance without returning the results to the handler."""
_PASSING_ON: Final = frozenset({"dataclasses", "functools", "pydantic"})
"""Packages that call passed functions: the call counts as their caller's."""

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
    """A call with a different result every time, its file and line in the handler's code, and the replacement."""

    call: str
    place: str
    advice: str

    def __str__(self) -> str:
        return f"{self.call} in {self.place}"


class Watch:
    """Records leaks between enter and exit; may be entered again.

    Args:
        handler: the handler, whose whole package counts as the user's code, wherever it is installed.

    Attributes:
        leaks: each leak once, in order.
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
        gc.disable()  # A collection calls foreign functions, which may ask a clock.
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
        elif isinstance(owner, random.Random) and not any(owner is item for item in self._seeded):
            self._note(frame, f"random.{'' if owner is _SHARED else 'Random.'}{name}", CHANCE)
        elif isinstance(owner, socket.SocketType):
            self._note(frame, "socket.connect", OUTSIDE)

    def _see_seed(self, frame: FrameType) -> None:
        """Note a generator without a seed; a generator with a seed is deterministic."""
        arguments = frame.f_locals
        if arguments.get("a") is not None:
            self._seeded.append(arguments["self"])
        else:
            self._note(frame, "random.Random", CHANCE)

    def _note(self, frame: FrameType, call: str, advice: str) -> None:
        """Record a call for the nearest frame of the handler's own code, under the name in that code."""
        through: list[FrameType] = []
        at: FrameType | None = frame
        while at is not None and not self._is_own(at.f_code):
            through.append(at)
            at = at.f_back
        packages = {_package_of(item) for item in through}
        if at is None or packages & _HARMLESS:
            return
        if call in _ONLY_THROUGH:
            if packages - _ONLY_THROUGH[call]:
                return
        else:
            asked = [
                item for item in through if _package_of(item) not in _PASSING_ON and item.f_code.co_filename[0] != "<"
            ]
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
    """The name of a function as the caller would write it."""
    name, me = frame.f_code.co_name, frame.f_locals.get("self")
    if me is not None and me is not _SHARED:
        kind = next((item for item in type(me).__mro__ if name in vars(item)), type(me))
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


State = TypeVar("State")
Message = TypeVar("Message")
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class NonDeterministic(AssertionError):
    """A handler gave two results for the same input, or may do so.

    Attributes:
        leaks: calls with a different result every time.
        differences: the differences of the results.
    """

    def __init__(self, text: str, leaks: tuple[Leak, ...], differences: tuple[str, ...]) -> None:
        super().__init__(text)
        self.leaks = leaks
        self.differences = differences


def assert_deterministic(
    handler: Callable[[State, Message, Context], Any],
    state: State,
    message: Message,
    *,
    message_id: str = "m-1",
    source: str = "test",
    entity: EntityRef | None = None,
    now: datetime = NOW,
) -> Ran[Any]:
    """Run a handler twice on the same input; fail if the results differ, or if the handler called a clock, chance or the like.

    In the second run the sets of state and message have another order, as in another process.

    Args:
        handler: a handler, decorated or not.
        state: the state before; each run gets a copy.
        message: an instance of a registered message type; each run gets a copy.
        message_id, source, entity, now: as for `run`.

    Returns:
        The result of the first run.

    Raises:
        NonDeterministic: naming the calls and their places, the differences, and what to do.
        Exception: any exception of the handler in the first run.
    """

    def once(turned: Callable[[Any], Any] = lambda value: value) -> Ran[Any]:
        before, sent = turned(deepcopy(state)), turned(deepcopy(message))
        with watch:
            return run(handler, before, sent, message_id=message_id, source=source, entity=entity, now=now)

    watch = Watch(handler)
    first = once()
    raised: BaseException | None = None
    try:
        differences = tuple(_differences(first, once(_turned)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raised = error
        differences = (f"it raised {type(error).__name__} the second time",)
    leaks = tuple(watch.leaks)
    if differences or leaks:
        name = getattr(handler, "__qualname__", repr(handler))
        raise NonDeterministic(_report(name, leaks, differences), leaks, differences) from raised
    return first


def _report(name: str, leaks: tuple[Leak, ...], differences: tuple[str, ...]) -> str:
    lines = [f"The handler {name} is not deterministic. Handling the message twice in the same circumstances gave"]
    if differences:
        lines[0] += " two results:"
        lines += [f"    {difference}" for difference in differences]
    else:
        lines[0] += " the same result; but it may not the next time, or in another process."
    if leaks:
        lines += ["It made calls that give another result every time:", *(f"    {leak}" for leak in leaks)]
        lines += dict.fromkeys(leak.advice for leak in leaks)
    else:
        lines.append(
            "No such call was seen. Does the handler change or read something outside of state and message, or the order of a "
            "set (sort it), or does a model have a default_factory that calls a clock or chance?"
        )
    lines.append("A duplicate may be handled again on its first state, and has to send the same outputs.")
    return "\n".join(lines)


def _differences(first: Ran[Any], second: Ran[Any]) -> Iterator[str]:
    if first.deleted != second.deleted:
        yield "the entity is deleted one time, and not the other"
    yield from _between("state", _json(first.state), _json(second.state))
    if len(first.sent) != len(second.sent):
        yield f"{len(first.sent)} messages sent at first, then {len(second.sent)}"
    for number, (sent, other) in enumerate(zip(first.sent, second.sent, strict=False), start=1):
        yield from _between(f"message {number} ({_type_of(sent)})", _parts(sent), _parts(other))
    for kind, those, others in (("call", first.calls, second.calls), ("blob", first.blobs, second.blobs)):
        for number, (item, again) in enumerate(zip_longest(those, others), start=1):
            if item != again:
                yield f"{kind} {number}"


class _Turned(set[Any]):
    """A set with another order, as in another process."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])


class _TurnedFrozen(frozenset[Any]):
    """As `_Turned`."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])


def _turned(value: Any) -> Any:
    """A value that the test owns, with all sets in another order."""
    if isinstance(value, (set, frozenset)):
        return (_Turned if isinstance(value, set) else _TurnedFrozen)(value)
    if type(value) in (list, tuple):
        return type(value)(map(_turned, value))
    if type(value) is dict:
        return {key: _turned(item) for key, item in value.items()}
    names = list(type(value).model_fields) if isinstance(value, BaseModel) else []
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
    for name in names:
        object.__setattr__(value, name, _turned(getattr(value, name)))
    return value


def _parts(sent: Sent) -> dict[str, Any]:
    delay = None if sent.delay is None else sent.delay.total_seconds()
    about = {"destination": sent.destination, "delay": delay, "type": _type_of(sent)}
    return {**about, "data": _json(sent.message)}


def _type_of(sent: Sent) -> str:
    return message_type(type(sent.message)).name


def _json(value: Any) -> Any:
    """A state, or the events in its place, as stored JSON."""
    if isinstance(value, (list, tuple)):
        return [[type(item).__name__, _json(item)] for item in value]
    return None if value is None else written(type(value), value)


def _between(name: str, first: Any, second: Any) -> Iterator[str]:
    """The differences of two JSON values, also in the type of numbers and the order of properties."""
    if Json.of(first) == Json.of(second):
        return
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        if list(first) != list(second):
            yield f"{name}: the order of its properties"
        for key in first:
            yield from _between(f"{name}.{key}", first[key], second[key])
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (item, other) in enumerate(zip(first, second, strict=True)):
            yield from _between(f"{name}.{index}", item, other)
    else:
        yield f"{name}: {_SHORT.repr(first)} at first, then {_SHORT.repr(second)}"
