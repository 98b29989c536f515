"""A mutant as something that worlds can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import count
from types import ModuleType
from typing import Any

from devtools.modelcheck.beside.scenarios import BesideScenario, Menders
from devtools.modelcheck.mutants.scenarios_beside import CHANGES
from devtools.modelcheck.scenarios import Chores, Scenario
from devtools.modelcheck.twins import modules_of, sources_of
from exactlyonce.protocols import colocated
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import settle as settling
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.steps import clean_companions as truncation
from exactlyonce.protocols.steps import settle as settling_beside
from exactlyonce.protocols.stream import replay as replaying

_numbers = count()


class Twin:
    """A mutant, made as far as a world runs it: making all of it takes as long as a small search.

    Args:
        sources: that differ from what ships, by the names of their modules.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._made: dict[object, Mapping[str, ModuleType]] = {}

    def within(self, world: Scenario) -> Scenario:
        """The world with the twin in it, wherever it differs from what ships."""
        wanted = frozenset(_run_by(world))
        changed = world.name if world.name in CHANGES else ""
        made = self._made.get((wanted, changed))
        if made is None:
            sources = self._with_changes(changed) if changed else self._sources
            made = self._made[wanted, changed] = modules_of(f"mutant_{next(_numbers)}", sources, wanted)

        return _replaced(world, made)

    def _with_changes(self, name: str) -> dict[str, str]:
        """The sources, as they are changed in every twin of a world. Where the mutant was at work, it has its way."""
        (original,) = sources_of((resequencing,))
        source = self._sources.get(original) or sources_of((resequencing,))[original]
        for change in CHANGES[name]:
            source = source.replace(change.old, change.new)
        return {**self._sources, original: source}


def _replaced(world: Scenario, made: Mapping[str, ModuleType]) -> Scenario:
    """The world in which modules are replaced."""

    def twin(shipped: Any) -> Any:
        module = made.get(shipped.__module__)
        return shipped if module is None else getattr(module, shipped.__name__)

    kind = type(world.strategy)
    strategy = twin(kind)(**{one.name: getattr(world.strategy, one.name) for one in fields(kind)})
    if not isinstance(world, BesideScenario):
        chores = (settling.sweep, settling.settle, settling.requeue, retention.clean_staged, retention.clean_processed)
        return replace(world, strategy=strategy, chores=Chores(*map(twin, chores)))
    menders = (gaps.tend, replaying.versions_of, replaying.replay, replaying.Missing)
    return replace(
        world,
        strategy=strategy,
        sweep=twin(colocated.sweep),
        settle=twin(settling_beside.settle_beside),
        clean=twin(truncation.clean_beside),
        menders=Menders(*map(twin, menders)),
    )


def _run_by(world: Scenario) -> Iterator[str]:
    """Names of the modules that a world runs."""
    budget = world.budget
    yield type(world.strategy).__module__
    if not isinstance(world, BesideScenario):
        if budget.sweeps or budget.poisoned:
            yield settling.__name__
        if budget.cleanings or budget.forgotten:
            yield retention.__name__
        return
    chores = {
        colocated: budget.sweeps,
        settling_beside: budget.poisoned,
        truncation: budget.forgotten,
        gaps: world.budget.nudges,
        replaying: world.budget.replays,
    }
    yield from (module.__name__ for module, wanted in chores.items() if wanted)
