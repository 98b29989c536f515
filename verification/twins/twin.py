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
from verification.twins.modules import BOOKS, Patch, modules_of, room_for
from verification.world.scenario import Chores, Scenario

World = TypeVar("World", bound=Scenario)
_numbers = count()


class Twin:
    """Modules that differ from what ships, made as far as a world runs them: making all takes as long as a small search."""

    def __init__(self, sources: Mapping[str, str] | None = None, patches: Collection[Patch] = ()) -> None:
        self._sources = sources or {}
        self._patches = tuple(patches)
        self._made: dict[object, Mapping[str, ModuleType]] = {}

    def of(self, shipped: Any, others: tuple[ModuleType, ...] = ()) -> Any:
        """What becomes of a function or class that ships; that itself, if the twin does not concern it.

        Args:
            others: as those of `modules_of`.
        """
        made = modules_of(f"twin_{next(_numbers)}", {shipped.__module__}, self._sources, self._patches, others)
        module = made.get(shipped.__module__)
        return shipped if module is None else getattr(module, shipped.__name__)

    def within(self, world: World, more: tuple[Patch, ...] = ()) -> World:
        """The world with the twin in it, wherever it differs from what ships.

        Args:
            more: patches that the world has besides, whatever the twin.
        """
        wanted = frozenset(_run_by(world))
        small = () if world.companions else room_for(world.room, world.answered)
        patches = (*small, *more, *self._patches)
        key = (wanted, bool(small) and (world.room, world.answered), more)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = modules_of(f"twin_{next(_numbers)}", wanted, self._sources, patches, BOOKS)
        return _replaced(world, made)


def within(world: World, patches: Collection[Patch]) -> World:
    return Twin(patches=patches).within(world)


def _replaced(world: World, made: Mapping[str, ModuleType]) -> World:
    def twin(shipped: Any) -> Any:
        module = made.get(getattr(shipped, "__module__", ""))
        return shipped if module is None else getattr(module, shipped.__name__)

    kind = _kind_in(world)
    strategy = twin(kind)(**{field.name: getattr(world.strategy, field.name) for field in fields(kind)})
    chores = {field.name: twin(field.default) for field in fields(Chores)}
    return replace(world, strategy=strategy, chores=Chores(**chores))


def _kind_in(world: Scenario) -> type[Any]:
    return type(world.strategy) if world.companions else Outbox


def _run_by(world: Scenario) -> Iterator[str]:
    budget = world.budget
    yield _kind_in(world).__module__
    yield from (module.__name__ for module in BOOKS)
    chores = {replaying: budget.replays, parking: budget.requeues, retention: budget.cleanings}
    yield from (module.__name__ for module, wanted in chores.items() if wanted)
