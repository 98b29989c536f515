"""Is a mutant found? By the explorer, in the first world in which it shows; or by what it costs when nothing goes wrong."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count, product
from types import FrameType
from typing import Any, Final

from devtools.modelcheck.mutants.costs import costs, costs_of_chores
from devtools.modelcheck.mutants.scenarios import STATES, WORLDS
from devtools.modelcheck.mutants.source import Mutant, mutants_of
from devtools.modelcheck.scenarios import Chores, Scenario
from devtools.modelcheck.search import explore
from devtools.modelcheck.twins import CHORES, OUTBOX, chores_of, outbox_of, sources_of
from exactlyonce import Outbox

GROWTH: Final = 8
"""A mutant with so many times the states of the shipped strategy never comes to an end."""
COSTS: Final = "costs more"
QUIET: Final = "nothing goes wrong"
MODULES: Final = (*OUTBOX, *CHORES)
_numbers = count()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        world: where it was found; "" if nowhere.
        how: the property that fell, or what else gave it away; "" if nothing did.
        states: explored there.
    """

    world: str
    how: str
    states: int = 0


SURVIVED: Final = Verdict("", "")


class _Twin:
    """What a mutant is run as."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = f"mutant_{next(_numbers)}"
        self._changed = {mutant.module: mutant.source}

    @cached_property
    def outbox(self) -> type[Outbox]:
        sources = sources_of(OUTBOX)
        return outbox_of(self._name, sources | self._changed) if self._changed.keys() <= sources.keys() else Outbox

    @cached_property
    def chores(self) -> Chores:
        return chores_of(f"{self._name} beside", sources_of(MODULES) | self._changed)

    def set_up(self, shipped: Outbox) -> Outbox:
        return self.outbox(shipped.window, shipped.inline_limit, shipped.retention)

    def within(self, world: Scenario) -> Scenario:
        """The world with the twin in it."""
        chores = self.chores if has_chores(world) else world.chores  # Making a twin takes as long as a small search.
        return replace(world, strategy=self.set_up(world.strategy), chores=chores)


def has_chores(world: Scenario) -> bool:
    """Whether anything runs beside processing."""
    budget = world.budget
    return bool(budget.sweeps or budget.poisoned or budget.cleanings or budget.forgotten)


def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of every module whose generators the worlds run."""
    return tuple(mutant for module in MODULES for mutant in mutants_of(module))


def find(mutant: Mutant, worlds: Sequence[Scenario] | None = None) -> Verdict:
    """Look for a mutant in these worlds, or in all that reach it; one after the other, and then at its costs."""
    if worlds is None:
        worlds = [world for world in WORLDS if (mutant.module, mutant.line) in reached()[world.name]]
    twin = _Twin(mutant)
    for world in worlds:
        verdict = _explored(twin, world)
        if verdict is not None:
            return verdict
    return _dearer(twin)


def _explored(twin: _Twin, world: Scenario) -> Verdict | None:
    try:
        report = explore(twin.within(world), limit=GROWTH * STATES[world.name], liveness=True)
    except Exception as error:  # The attempt came to something that is no result, or asked for nonsense.
        return Verdict(world.name, f"refused: {type(error).__name__}: {error}")
    if report.violation is not None:
        return Verdict(world.name, report.violation, report.states)
    if report.stuck:
        return Verdict(world.name, f"termination: {report.stuck} states are stuck", report.states)
    if not report.complete:
        return Verdict(world.name, f"no end: more than {GROWTH} times as many states as usual", report.states)
    return None


@cache
def reached() -> dict[str, frozenset[tuple[str, int]]]:
    """The lines, each with its module, that each world runs at all: a mutant of another line cannot show there."""
    files = {inspect.getsourcefile(module): module.__name__ for module in MODULES}
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
        for world in WORLDS:
            lines.clear()
            explore(world)
            found[world.name] = frozenset(lines)
    finally:
        sys.settrace(before)
    return found


def _dearer(twin: _Twin) -> Verdict:
    """Whether it asks for more than what is shipped where nothing goes wrong, or hardly anything."""
    for shipped, marking, lagging in product(
        dict.fromkeys(world.strategy for world in WORLDS), (False, True), (False, True)
    ):
        try:
            dearer = any(now > before for now, before in _compared(twin, shipped, marking, lagging))
        except Exception as error:
            return Verdict(QUIET, f"raised {type(error).__name__}: {error}")
        if dearer:
            return Verdict(QUIET, COSTS)
    return SURVIVED


def _compared(twin: _Twin, shipped: Outbox, marking: bool, lagging: bool) -> Iterator[tuple[int, int]]:
    """What each thing costs with the twin, and without."""
    usual, usual_chores = _usual(shipped, marking, lagging)
    if twin.outbox is not Outbox:
        yield from zip(costs(twin.set_up(shipped), marking, lagging), usual, strict=True)
    yield from zip(costs_of_chores(shipped, twin.chores, marking, lagging), usual_chores, strict=True)


@cache
def _usual(shipped: Outbox, marking: bool, lagging: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return costs(shipped, marking, lagging), costs_of_chores(shipped, Chores(), marking, lagging)
