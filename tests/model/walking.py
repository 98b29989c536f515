"""Walks through scenarios with much trouble, and a real stack to play them on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Final

from exactlyonce.stores.cosmos.store import CosmosStore
from local_cosmos.inprocess import RunningEmulator
from verification.explorers.trace import Event
from verification.reproduction.conductor import Reproduction, reproduce
from verification.reproduction.reality import opened
from verification.reproduction.walks import walk
from verification.scenarios import books, kept, outbox, outbox_ages, restores
from verification.world.scenario import Ages, Budget, Scenario

SEEDS: Final = range(2)
TROUBLE: Final = Budget(crashes=2, unknown=3, repeated=2, stale=3)
CHORES: Final = replace(TROUBLE, sweeps=2, poisoned=1)
KEPT: Final[dict[str, Any]] = {"keeps": frozenset({0}), "cancels": (None, 0, None)}
RICH: Final = (
    Scenario("late writes", (1, 1, 1), budget=Budget(unknown=6)),
    Scenario("groups, all faults", (2, 1, 1), group=2, budget=TROUBLE),
    Scenario("pages of groups, all faults", (2, 1, 1), room=0, group=2, budget=TROUBLE),
    Scenario("three workers, tokens", (2, 1, 1), workers=3, room=0, budget=TROUBLE, tokens=True),
    Scenario("from memory, all faults", (2, 1, 1), room=0, budget=CHORES, tokens=True, remembering=True),
    Scenario("chores", (1, 1, 1), room=0, budget=CHORES),
    Scenario("kept, chores", (1, 1, 1), budget=replace(CHORES, cleanings=2), **KEPT),
    Scenario("books, all faults", (2, 1, 1), books=True, room=0, budget=CHORES),
    Scenario("books, from memory", (2, 1, 1), books=True, budget=CHORES, remembering=True),
    Scenario("ages, all faults", (2, 1, 1), room=0, ages=Ages(6, (2, 0, 1)), budget=replace(CHORES, forgotten=2)),
    Scenario("put back, all faults", (2, 2, 1), room=0, since=(0, 1, 1), budget=replace(TROUBLE, put_back=1, sweeps=2)),
    Scenario("books, late", (1, 1, 1), books=True, workers=1, budget=Budget(unknown=12)),
    Scenario("two entities", (1, 1, 0, 0), budget=TROUBLE, targets=(0, 0, 1, 1), feeds=(2, 3, None, None)),
)
SCENARIOS: Final = (*outbox.SMALL, *books.SMALL, *kept.SMALL, *outbox_ages.SMALL, *restores.SMALL, *RICH)

_PICKED: Final = {
    "put back: room for one": 2,
    "ages, all faults": 10,
    "from memory, all faults": 3,
    "three workers, tokens": 11,
    "books, from memory": 1,
    "books, all faults": 3,
    "pages: one message has no time": 2,
}
"""Seeds of walks that meet what few do."""
OUTBOX_WALKS: Final[tuple[tuple[Scenario, int], ...]] = (
    *((scenario, seed) for scenario in SCENARIOS for seed in SEEDS),
    *((scenario, _PICKED[scenario.name]) for scenario in SCENARIOS if _PICKED.get(scenario.name, 0) not in SEEDS),
)
"""Each with its seed."""


async def played(
    emulator: RunningEmulator, scenario: Scenario, trace: tuple[Event, ...], make_store: Any = CosmosStore
) -> Reproduction:
    async with opened(emulator) as reality:
        return await reproduce(scenario, trace, reality, make_store)


@cache
def walked(scenario: Scenario, seed: int) -> tuple[Event, ...]:
    return walk(scenario, seed)
