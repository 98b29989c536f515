"""A mutant as something that worlds can run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from itertools import count
from types import ModuleType
from typing import Any, TypeVar

from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import clean_channels as forgetting
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import replay as replaying
from verification.mutants.scenarios_companions import PATCHES
from verification.twins.modules import Patch, modules_of
from verification.world.scenario import Chores, Scenario

World = TypeVar("World", bound=Scenario)
_numbers = count()


class Twin:
    """A mutant, or modules with patches, made as far as a world runs it: making all of it takes as long as a small search.

    Args:
        sources: that differ from what ships, by the names of their modules.
        patches: to be applied, too.
    """

    def __init__(self, sources: Mapping[str, str], patches: Collection[Patch] = ()) -> None:
        self._sources = sources
        self._patches = tuple(patches)
        self._made: dict[object, Mapping[str, ModuleType]] = {}

    def of(self, shipped: Any, others: tuple[ModuleType, ...] = ()) -> Any:
        """What becomes of a function or class that ships; that itself, if the twin does not concern it.

        Args:
            shipped: the function or class.
            others: as those of `modules_of`.
        """
        made = modules_of(f"twin_{next(_numbers)}", {shipped.__module__}, self._sources, self._patches, others)
        module = made.get(shipped.__module__)
        return shipped if module is None else getattr(module, shipped.__name__)

    def within(self, world: World) -> World:
        """The world with the twin in it, wherever it differs from what ships."""
        wanted = frozenset(_run_by(world))
        in_all = PATCHES.get(world.name, ())
        made = self._made.get((wanted, in_all))
        if made is None:
            patches = (*in_all, *self._patches)
            made = self._made[wanted, in_all] = modules_of(f"twin_{next(_numbers)}", wanted, self._sources, patches)

        return _replaced(world, made)


def _replaced(world: World, made: Mapping[str, ModuleType]) -> World:
    """The world in which modules are replaced."""

    def twin(shipped: Any) -> Any:
        module = made.get(shipped.__module__)
        return shipped if module is None else getattr(module, shipped.__name__)

    kind = type(world.strategy)
    strategy = twin(kind)(**{one.name: getattr(world.strategy, one.name) for one in fields(kind)})
    chores = {one.name: twin(one.default) for one in fields(Chores)}
    return replace(world, strategy=strategy, chores=Chores(**chores))


def _run_by(world: Scenario) -> Iterator[str]:
    """Names of the modules that a world runs."""
    budget = world.budget
    yield type(world.strategy).__module__
    chores = {
        replaying: budget.replays,
        parking: budget.requeues,
        retention: budget.cleanings,
        forgetting: budget.forgettings,
    }
    yield from (module.__name__ for module, wanted in chores.items() if wanted)
