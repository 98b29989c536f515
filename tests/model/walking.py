"""Walks through scenarios with much trouble, and a real stack to play them on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Final

from exactlyonce.stores.cosmos.store import CosmosStore
from local_cosmos.inprocess import RunningEmulator
from tests.model import broken_books, broken_memory
from tests.model.zoo import Broken
from verification.explorers.trace import Event
from verification.reproduction.conductor import Reproduction, reproduce
from verification.reproduction.reality import opened
from verification.reproduction.walks import walk
from verification.scenarios.books import SMALL as BOOKS
from verification.scenarios.outbox import SMALL
from verification.world.scenario import Budget, Scenario

SEEDS = range(3)
LATE = Scenario("late writes", (1, 1, 1), budget=Budget(unknown=6))
TROUBLE = Budget(crashes=2, unknown=3, repeated=2, stale=3)
CHORES = replace(TROUBLE, sweeps=2, poisoned=1, cleanings=2)
RICH = (
    Scenario("groups, all faults", (2, 1, 1), room=2, group=2, budget=TROUBLE),
    Scenario("room for none, groups, all faults", (2, 1, 1), room=0, group=2, budget=TROUBLE),
    Scenario("three workers, tokens", (2, 1), workers=3, budget=TROUBLE, tokens=True),
    Scenario("room for three", (2, 1, 1, 1), room=3),
    Scenario("messages without times", (2, 1, 1), room=0, since=(None, 0, None), budget=TROUBLE),
    Scenario("chores", (1, 1, 1), budget=CHORES),
    Scenario("chores, room for none", (1, 1, 1), room=0, budget=CHORES),
    Scenario("books, all faults", (2, 1), books=True, budget=TROUBLE),
    Scenario("books, chores", (1, 1, 1), books=True, budget=CHORES),
    Scenario("two entities", (1, 1, 0, 0), budget=TROUBLE, targets=(0, 0, 1, 1), feeds=(2, 3, None, None)),
)
SCENARIOS = (LATE, *(one for one in SMALL if not one.endless), *(one for one in BOOKS if not one.requests), *RICH)


async def played(
    emulator: RunningEmulator, scenario: Scenario, trace: tuple[Event, ...], make_store: Any = CosmosStore
) -> Reproduction:
    async with opened(emulator) as reality:
        return await reproduce(scenario, trace, reality, make_store)


@cache
def walked(scenario: Scenario, seed: int) -> tuple[Event, ...]:
    return walk(scenario, seed)


def named(name: str) -> Broken[Scenario]:
    return next(twin for twin in (*broken_memory.TWINS, *broken_books.TWINS) if twin.name == name)
