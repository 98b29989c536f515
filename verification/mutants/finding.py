"""Is a mutant found? By the explorer, in the smallest world in which it shows."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import ITIMER_VIRTUAL, SIGVTALRM, setitimer, signal
from types import FrameType
from typing import Any, Final

from verification.checker.search import explore
from verification.mutants.reviewed import Verdict
from verification.mutants.source import Mutant
from verification.mutants.worlds import ALL_WORLDS, PATCHES
from verification.twins.modules import EVERYTHING
from verification.twins.twin import Twin
from verification.world.scenario import Scenario

GROWTH: Final = 8
"""A mutant with so many times the states of the shipped strategy never comes to an end."""
PATIENCE: Final = 20
"""Most seconds of processor time for one search. A mutant that takes longer goes round and round."""
NO_END: Final = "no end"
_ROOT: Final = Path(__file__).parents[2]
_SHIPPED: Final = Twin()


class _OutOfPatienceError(BaseException):
    """Not an `Exception`, which would be taken for the outcome of an attempt."""


SURVIVED: Final = Verdict("", "")


def find(mutant: Mutant, worlds: Sequence[Scenario] | None = None) -> Verdict:
    """Look for a mutant in these worlds, or in all that reach it, the smallest first."""
    if worlds is None:
        reaching = [world for world in ALL_WORLDS if mutant.line in reached()[world.name].get(mutant.module, ())]
        worlds = sorted(reaching, key=lambda world: world.states)
    twin = Twin({mutant.module: mutant.source})
    return next((verdict for world in worlds if (verdict := _explored(twin, world)) is not None), SURVIVED)


def find_again(mutant: Mutant, before: Verdict | None) -> Verdict:
    """Look for a mutant where one like it was found before, and only then everywhere."""
    if before is not None:
        worlds = [world for world in ALL_WORLDS if world.name == before.world]
        found = find(mutant, worlds)
        if found.world:
            return found
    return find(mutant)


def _explored(twin: Twin, world: Scenario) -> Verdict | None:
    usual = world.states
    try:
        with _patience():
            report = explore(in_world(twin, world), limit=GROWTH * usual, liveness=True)
    except _OutOfPatienceError:
        return Verdict(world.name, f"{NO_END}: more than {PATIENCE} seconds", GROWTH * usual)
    except Exception as error:  # The attempt came to something that is no result, or asked for nonsense.
        return Verdict(world.name, f"refused: {type(error).__name__}: {error}")
    if report.violation is not None:
        return Verdict(world.name, report.violation, report.states)
    if report.stuck:
        return Verdict(world.name, f"termination: {report.stuck} states are stuck", report.states)
    if not report.complete:
        return Verdict(world.name, f"{NO_END}: more than {GROWTH} times as many states as usual", report.states)
    return None


@contextmanager
def _patience() -> Iterator[None]:
    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise _OutOfPatienceError

    before = signal(SIGVTALRM, give_up)
    setitimer(ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        setitimer(ITIMER_VIRTUAL, 0)
        signal(SIGVTALRM, before)


@cache
def reached() -> dict[str, dict[str, list[int]]]:
    """For each world the lines that it runs, by their modules: a mutant of another line cannot show there.

    Tracing takes minutes. So the result is kept in `.make`, under a digest of all sources.
    """
    sources = sorted(path for room in ("exactlyonce", "verification") for path in (_ROOT / room).rglob("*.py"))
    digest = hashlib.sha256(sys.version.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()
    kept = _ROOT / ".make/reached" / f"{digest}.json"
    if not kept.is_file():
        with ProcessPoolExecutor() as pool:
            names = [world.name for world in ALL_WORLDS]
            lines = dict(zip(names, pool.map(_traced, names), strict=True))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(lines), encoding="utf-8")
    result: dict[str, dict[str, list[int]]] = json.loads(kept.read_text(encoding="utf-8"))
    return result


def _traced(name: str) -> dict[str, list[int]]:
    files = {inspect.getsourcefile(module): module.__name__ for module in EVERYTHING}
    files |= {f"<{module.__name__}>": module.__name__ for module in EVERYTHING}  # Those that were made for a world.
    lines: dict[str, set[int]] = {module: set() for module in files.values()}

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = files.get(frame.f_code.co_filename)
        if module is not None:
            lines[module].add(frame.f_lineno)
        return trace if module is not None else None

    (world,) = (item for item in ALL_WORLDS if item.name == name)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        explore(in_world(_SHIPPED, world))
    finally:
        sys.settrace(before)
    return {module: sorted(numbers) for module, numbers in lines.items() if numbers}


def in_world(twin: Twin, world: Scenario) -> Scenario:
    return twin.within(world, PATCHES.get(world.name, ()))
