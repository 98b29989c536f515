"""Is a mutant found? By the explorer, in the first world in which it shows; or by what it costs when nothing goes wrong."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from types import FrameType
from typing import Any, Final

from devtools.modelcheck.mutants.scenarios import STATES, WORLDS
from devtools.modelcheck.mutants.source import Mutant, mutants_of
from devtools.modelcheck.quiet import SILENT, QuietWorld, handled_in_turn
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import explore
from devtools.modelcheck.twins import outbox_of
from exactlyonce import Outbox
from exactlyonce.strategies import drafting, outbox

GROWTH: Final = 8
"""A mutant with so many times the states of the shipped strategy never comes to an end."""
COSTS: Final = "costs more"
QUIET: Final = "nothing goes wrong"
MODULES: Final = (outbox, drafting)
_SERIES: Final = ((0, 1, 2, 0, 1, 3), (0, 0, 1, 1), (SILENT, SILENT + 1, SILENT))
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


def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of every strategy that the worlds run."""
    return tuple(mutant for module in MODULES for mutant in mutants_of(module))


def find(mutant: Mutant, worlds: Sequence[Scenario] | None = None) -> Verdict:
    """Look for a mutant in these worlds, or in all that may reach it; one after the other, and then at its costs."""
    if worlds is None:
        worlds = WORLDS if mutant.line in reached()[mutant.module] else ()
    try:
        made = outbox_of(f"mutant_{next(_numbers)}", {mutant.module: mutant.source})
    except Exception as error:
        return Verdict("import", f"raised {type(error).__name__}: {error}")
    for world in worlds:
        verdict = _explored(made, world)
        if verdict is not None:
            return verdict
    return _dearer(made)


def _explored(made: type[Outbox], world: Scenario) -> Verdict | None:
    try:
        report = explore(
            replace(world, strategy=_set_up(made, world.strategy)), limit=GROWTH * STATES[world.name], liveness=True
        )
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
def reached() -> dict[str, frozenset[int]]:
    """The lines of each module that the worlds run at all: a mutant of another line cannot show in any of them."""
    files = {inspect.getsourcefile(module): module.__name__ for module in MODULES}
    lines: dict[str, set[int]] = {module.__name__: set() for module in MODULES}

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = files.get(frame.f_code.co_filename)
        if module is not None:
            lines[module].add(frame.f_lineno)
        return trace if module is not None else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for world in WORLDS:
            explore(world)
    finally:
        sys.settrace(before)
    return {module: frozenset(found) for module, found in lines.items()}


def _dearer(made: type[Outbox]) -> Verdict:
    """Whether it asks for more than the shipped strategy where nothing goes wrong, or hardly anything."""
    for shipped in dict.fromkeys(world.strategy for world in WORLDS):
        for marking, lagging in ((False, False), (True, False), (False, True), (True, True)):
            try:
                costs = _costs(_set_up(made, shipped), marking, lagging)
            except Exception as error:
                return Verdict(QUIET, f"raised {type(error).__name__}: {error}")
            if any(now > before for now, before in zip(costs, _usual(shipped, marking, lagging), strict=True)):
                return Verdict(QUIET, COSTS)
    return SURVIVED


def _costs(strategy: Outbox, marking: bool, lagging: bool) -> tuple[int, ...]:
    """Requests, rounds, sendings, bytes saved and what is left staged, of some series of messages and two crashes."""
    worlds = [handled_in_turn(strategy, series, QuietWorld(lagging=lagging), marking=marking) for series in _SERIES]
    for first, second in ((1, 2), (2, 1)):  # The message comes back, or another one comes first.
        world = handled_in_turn(strategy, (0,), QuietWorld(lagging=lagging), marking=marking)
        world.stopped_after_commit(strategy, 1)
        worlds.append(handled_in_turn(strategy, (first, second), world, marking=marking))
    return (
        sum(world.requests.total() for world in worlds),
        sum(world.rounds for world in worlds),
        sum(world.published for world in worlds),
        sum(world.bytes for world in worlds),
        sum(len(world.staged) for world in worlds),
    )


_usual = cache(_costs)


def _set_up(made: type[Outbox], shipped: Outbox) -> Outbox:
    return made(shipped.window, shipped.inline_limit, shipped.retention)
