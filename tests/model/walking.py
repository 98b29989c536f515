"""Walks through scenarios with much trouble, and a real stack to play them on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from verification.scenarios.numbers import A1, A2, B1, ONE_CHANNEL
from verification.scenarios.numbers import SMALL as NUMBERED

from exactlyonce import Outbox
from exactlyonce.stores.cosmos.store import CosmosStore
from local_cosmos.inprocess import RunningEmulator
from tests.model.broken_strategies import TWINS
from tests.model.zoo import Broken
from verification.explorers.trace import Event
from verification.reproduction.conductor import Reproduction, reproduce
from verification.reproduction.reality import opened
from verification.reproduction.walks import walk
from verification.scenarios.outbox import SMALL
from verification.world.scenario import Budget, Scenario

SEEDS = range(3)
LATE = Scenario("late writes", (1, 1, 1), Outbox(window=1), budget=Budget(unknown=6))
TROUBLE = Budget(crashes=2, unknown=3, repeated=2, stale=3)
CHORES = replace(TROUBLE, sweeps=2, poisoned=1, cleanings=2, forgotten=1)
RICH = (
    Scenario("groups, all faults", (2, 1, 1), Outbox(window=2), group=2, budget=TROUBLE),
    Scenario("staged groups, all faults", (2, 1, 1), Outbox(window=2, inline_limit=0), group=2, budget=TROUBLE),
    Scenario(
        "three workers, tokens, marking", (2, 1), Outbox.transaction_id(), 3, budget=TROUBLE, tokens=True, marking=True
    ),
    Scenario("a window of three", (2, 1, 1, 1), Outbox(window=3)),
    Scenario("clean-up, all faults", (1,), Outbox.transaction_id(), budget=Budget(1, 1, 1, 1, cleanings=1)),
    Scenario("chores", (1, 1, 1), Outbox(window=1), budget=CHORES),
    Scenario("chores, staged", (1, 1, 1), Outbox.transaction_id(), budget=CHORES),
    Scenario("channels, all faults", (2, 1, 1), ONE_CHANNEL, places=(A1, B1, A2), budget=TROUBLE),
    Scenario("channels, stale reads", (2, 2, 2), ONE_CHANNEL, 1, places=(A1, B1, A2), budget=Budget(stale=12)),
    Scenario("channels, chores", (1, 1, 1), ONE_CHANNEL, places=(A1, B1, A2), budget=replace(CHORES, cleanings=0)),
    Scenario(
        "two entities", (1, 1, 0, 0), Outbox(window=1), budget=TROUBLE, targets=(0, 0, 1, 1), feeds=(2, 3, None, None)
    ),
)
SCENARIOS = (LATE, *(scenario for scenario in SMALL if not scenario.endless), *NUMBERED, *RICH)


async def played(
    emulator: RunningEmulator, scenario: Scenario, trace: tuple[Event, ...], make_store: Any = CosmosStore
) -> Reproduction:
    async with opened(emulator) as reality:
        return await reproduce(scenario, trace, reality, make_store)


@cache
def walked(scenario: Scenario, seed: int) -> tuple[Event, ...]:
    return walk(scenario, seed)


def named(name: str) -> Broken[Scenario]:
    return next(twin for twin in TWINS if twin.name == name)
