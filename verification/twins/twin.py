"""A twin as something that worlds can run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from itertools import count
from types import ModuleType
from typing import Any, TypeVar

from exactlyonce import Outbox
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import replay as replaying
from verification.twins.modules import BOOKS, Patch, modules_of
from verification.twins.room import room_for
from verification.world.scenario import Chores, Scenario

World = TypeVar("World", bound=Scenario)
_numbers = count()


def within(world: World, patches: Collection[Patch], sources: Mapping[str, str] | None = None) -> World:
    """The world with patched modules in it, wherever they differ from what ships.

    Args:
        world: that is to run them.
        patches: to be applied.
        sources: of modules that differ from what ships, by their names.
    """
    wanted = frozenset(_run_by(world))
    small = () if world.companions else room_for(world.room, world.answered)
    made = modules_of(f"twin_{next(_numbers)}", wanted, sources, (*small, *patches), BOOKS)
    return _replaced(world, made)


def _replaced(world: World, made: Mapping[str, ModuleType]) -> World:
    """The world in which modules are replaced."""

    def twin(shipped: Any) -> Any:
        module = made.get(getattr(shipped, "__module__", ""))
        return shipped if module is None else getattr(module, shipped.__name__)

    kind = _kind_in(world)
    strategy = twin(kind)(**{one.name: getattr(world.strategy, one.name) for one in fields(kind)})
    chores = {one.name: twin(one.default) for one in fields(Chores)}
    return replace(world, strategy=strategy, chores=Chores(**chores))


def _kind_in(world: Scenario) -> type[Any]:
    """The strategy of a world as it ships."""
    return type(world.strategy) if world.companions else Outbox


def _run_by(world: Scenario) -> Iterator[str]:
    """Names of the modules that a world runs."""
    budget = world.budget
    yield _kind_in(world).__module__
    yield from (module.__name__ for module in BOOKS)
    chores = {replaying: budget.replays, parking: budget.requeues, retention: budget.cleanings}
    yield from (module.__name__ for module, wanted in chores.items() if wanted)
