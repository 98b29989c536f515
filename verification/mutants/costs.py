"""What a strategy and its chores cost where nothing goes wrong, or hardly anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.values.frozen_json import Json
from verification.mutants.quiet_outbox import ENTITY, SILENT, UNTIMED, QuietWorld, handled_in_turn, repeated, work_of
from verification.world.scenario import Scenario

_SERIES: Final = (
    (0, 1, 2, 0, 1, 3),
    (0, 0, 1, 1),
    (SILENT, SILENT + 1, SILENT),
    (UNTIMED, UNTIMED + 1, UNTIMED, 0, UNTIMED + 2, UNTIMED + 1, 0),
)
_ABSENT: Final = Json.of({"id": ENTITY.id})


def costs_of_world(world: Scenario, shipped: Outbox, lagging: bool) -> Iterator[tuple[int, ...]]:
    """What the strategy and then the chores of a world cost, each when it is asked for; the chores with the strategy that
    ships."""
    yield costs(world.strategy, lagging)
    yield costs_of_chores(shipped, world, lagging)


def costs(strategy: Outbox, lagging: bool) -> tuple[int, ...]:
    """Requests, rounds, sendings, bytes saved, and what is left apart, owed or open, of some messages and two crashes."""
    worlds = [handled_in_turn(strategy, series, QuietWorld(lagging=lagging)) for series in _SERIES]
    for first, second in ((1, 2), (2, 1)):  # The message comes back, or another one comes first.
        world = handled_in_turn(strategy, (0,), QuietWorld(lagging=lagging))
        world.stopped_after_commit(strategy, 1)
        worlds.append(handled_in_turn(strategy, (first, second), world))
    return _summed(worlds)


def costs_of_chores(strategy: Outbox, world_of_chores: Scenario, lagging: bool) -> tuple[int, ...]:
    """The same, of all chores: on an entity that is absent, owes nothing, or owes what a message came to."""
    worlds = []
    for series, stopped in (((), None), ((0, 1), None), ((0,), 1), ((), 0), ((), UNTIMED), ((UNTIMED,), 1)):
        for chore in range(4):
            world = handled_in_turn(strategy, series, QuietWorld(lagging=lagging))
            if stopped is not None:
                world.stopped_after_commit(strategy, stopped)
            _done(world_of_chores, chore, world)
            worlds.append(world)
    return _summed(worlds)


def _done(scenario: Scenario, chore: int, world: QuietWorld) -> None:
    """A chore twice by one process."""
    strategy, chores, memory = scenario.strategy, scenario.chores, Memory()
    for number in (0, 1):
        match chore:
            case 0:
                memory = repeated(world, partial(strategy.sweep, replace(work_of(0), messages=())), memory)
            case 1 | 2:
                work = work_of((number + chore) % 2)
                memory = repeated(world, partial(strategy.settle, work, work.messages[0], "given up"), memory)
            case _:
                candidates = (*world.staged, *(("in vain",) if number else ()))
                memory = repeated(world, partial(chores.clean_staged, ENTITY, candidates, _ABSENT), memory)


def _summed(worlds: Iterable[QuietWorld]) -> tuple[int, ...]:
    return tuple(
        sum(amounts)
        for amounts in zip(
            *(
                (
                    *(world.requests.total(), world.rounds, world.published, world.bytes),
                    *(len(world.staged), len(world.pages), world.owing, world.open),
                )
                for world in worlds
            ),
            strict=True,
        )
    )
