"""Is a mutant found? By the explorer, in the first world in which it shows; or by what it costs when nothing goes wrong."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from operator import gt
from signal import ITIMER_VIRTUAL, SIGVTALRM, setitimer, signal
from types import FrameType
from typing import Any, Final

from exactlyonce.protocols.outbox import clean as retention
from verification.checker.search import explore
from verification.mutants import quiet_companions as quiet
from verification.mutants.costs import costs_of_world
from verification.mutants.reviewed import Verdict
from verification.mutants.scenarios import STATES, WORLDS
from verification.mutants.scenarios_companions import PATCHES, STATES_OF_COMPANIONS, WORLDS_OF_COMPANIONS
from verification.mutants.source import Mutant
from verification.twins.modules import EVERYTHING, OUTBOX, STEPS
from verification.twins.twin import Twin
from verification.world.scenario import Budget, Scenario

GROWTH: Final = 8
"""A mutant with so many times the states of the shipped strategy never comes to an end."""
PATIENCE: Final = 20
"""Most seconds of processor time for one search. A mutant that takes longer goes round and round."""
COSTS: Final = "costs more"
NO_END: Final = "no end"
QUIET: Final = "nothing goes wrong"
ALL_WORLDS: Final[tuple[Scenario, ...]] = (*WORLDS, *WORLDS_OF_COMPANIONS)
ALL_STATES: Final = {**STATES, **STATES_OF_COMPANIONS}
ROOMS: Final = (0, 2, 9)
"""Marks for which the ledgers of the quiet worlds have room."""
_SHIPPED: Final = Twin()


class _OutOfPatienceError(BaseException):
    """Not an `Exception`, which would be taken for the outcome of an attempt."""


SURVIVED: Final = Verdict("", "")


def find(mutant: Mutant, worlds: Sequence[Scenario] | None = None) -> Verdict:
    """Look for a mutant in these worlds, or in all that reach it, the smallest first; then at its costs."""
    if worlds is None:
        reaching = [world for world in ALL_WORLDS if (mutant.module, mutant.line) in reached()[world.name]]
        worlds = sorted(reaching, key=lambda world: ALL_STATES[world.name])
    twin = Twin({mutant.module: mutant.source})
    for look in (_explored, _dearer):
        for world in worlds:
            verdict = look(twin, world)
            if verdict is not None:
                return verdict
    concerned = mutant.module in {module.__name__ for module in (*STEPS, *OUTBOX, retention)}
    return (_dearer_outbox(twin) if concerned else None) or SURVIVED


def find_again(mutant: Mutant, before: Verdict | None) -> Verdict:
    """Look for a mutant where one like it was found before, and only then everywhere."""
    if before is not None:
        worlds = [world for world in ALL_WORLDS if world.name == before.world]
        found = find(mutant, worlds)
        if found.world:
            return found
    return find(mutant)


def _explored(twin: Twin, world: Scenario) -> Verdict | None:
    usual = ALL_STATES[world.name]
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
def reached() -> dict[str, frozenset[tuple[str, int]]]:
    """The lines, each with its module, that each world runs at all: a mutant of another line cannot show there."""
    files = {inspect.getsourcefile(module): module.__name__ for module in EVERYTHING}
    files |= {f"<{module.__name__}>": module.__name__ for module in EVERYTHING}  # Those that were made for a world.
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = files.get(frame.f_code.co_filename)
        if module is not None:
            lines.add((module, frame.f_lineno))
        return trace if module is not None else None

    found: dict[str, frozenset[tuple[str, int]]] = {}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for world in ALL_WORLDS:
            lines.clear()
            explore(in_world(_SHIPPED, world))
            found[world.name] = frozenset(lines)
    finally:
        sys.settrace(before)
    return found


def _dearer(twin: Twin, world: Scenario) -> Verdict | None:
    """Whether it asks for more than what ships, where records are companions and nothing goes wrong, or hardly anything."""
    if not world.companions:
        return None
    for lagging in (False, True):
        usual_costs = _usual(world.name, lagging)  # What ships may not raise.
        try:
            with _patience():
                now = quiet.costs(in_world(twin, world), lagging=lagging)
        except _OutOfPatienceError:
            return Verdict(world.name, f"{QUIET}: no end")
        except Exception as error:
            return Verdict(world.name, f"{QUIET}: raised {type(error).__name__}: {error}")
        more = [name for name, item, usual in zip(quiet.NAMES, now, usual_costs, strict=True) if item > usual]
        if more:
            return Verdict(world.name, f"{COSTS}: {', '.join(more)}")
    return None


@cache
def _usual(name: str, lagging: bool) -> tuple[int, ...]:
    world = next(companion for companion in WORLDS_OF_COMPANIONS if companion.name == name)
    return quiet.costs(in_world(_SHIPPED, world), lagging=lagging)


def in_world(twin: Twin, world: Scenario) -> Scenario:
    """A world with a twin in it, and with what every twin has there."""
    return twin.within(world, PATCHES.get(world.name, ()))


def _dearer_outbox(twin: Twin) -> Verdict | None:
    """The same for the outbox and its chores."""
    for room, lagging in product(ROOMS, (False, True)):
        usual = _usual_outbox(room, lagging)
        world = _quiet(room)
        try:
            with _patience():
                for now, before in zip(
                    costs_of_world(in_world(twin, world), world.strategy, lagging), usual, strict=True
                ):
                    if any(map(gt, now, before)):
                        return Verdict(QUIET, COSTS)
        except _OutOfPatienceError:
            return Verdict(QUIET, NO_END)
        except Exception as error:
            return Verdict(QUIET, f"raised {type(error).__name__}: {error}")
    return None


def _quiet(room: int) -> Scenario:
    """An outbox with all chores, and room for so many marks."""
    return Scenario(QUIET, (), room=room, budget=Budget(sweeps=1, poisoned=1, cleanings=1))


@cache
def _usual_outbox(room: int, lagging: bool) -> tuple[tuple[int, ...], ...]:
    world = in_world(_SHIPPED, _quiet(room))
    return tuple(costs_of_world(world, _quiet(room).strategy, lagging))
