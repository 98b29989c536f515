"""Walks through scenarios of one partition with much trouble: where lost and late writes are not crowded out by stale reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from verification.scenarios.companions import (
    COLOCATED,
    DELETES,
    IN_ORDER,
    IN_TIME,
    KEEPS,
    LOST,
    ONE,
    ORDERED,
    REBUILDING,
    SKIPPING,
    SMALL,
    STREAM,
    TWO,
    numbered,
)
from verification.world.scenario import Budget, Message, Scenario, scenario_of

TROUBLE: Final = Budget(crashes=2, unknown=6, repeated=2, stale=3)
LATE: Final = Budget(crashes=1, unknown=12, repeated=1)
SEEDS: Final = {"co-located, late": 11, "resequencer, late": 3}
"""Walks in which a note is late."""
RICH: Final = (
    scenario_of(
        "co-located, chores", (TWO, ONE, ONE), COLOCATED, group=3, workers=3,
        budget=replace(TROUBLE, sweeps=3, forgotten=2, poisoned=1),
    ),
    scenario_of("co-located, late", (TWO, TWO, TWO), COLOCATED, group=3, apart=True, budget=replace(LATE, sweeps=3)),
    scenario_of("stream, all faults", (TWO, ONE, KEEPS, DELETES), STREAM, group=2, apart=True, budget=TROUBLE),
    scenario_of(
        "stream, chores", (TWO, ONE, TWO), STREAM, group=3, workers=3, budget=replace(TROUBLE, forgotten=2, poisoned=1),
    ),
    scenario_of("stream, late", (TWO, TWO), STREAM, sourced=True, budget=replace(LATE, forgotten=2)),
    scenario_of("resequencer, all faults", numbered(2, 1, 1), IN_ORDER, group=2, apart=True, budget=TROUBLE),
    scenario_of(
        "resequencer, chores", numbered(2, 1, 1), IN_ORDER, workers=3, tokens=True,
        budget=replace(TROUBLE, forgotten=2, poisoned=1, nudges=2),
    ),
    scenario_of(
        "resequencer, raising", (Message(2, number=1, raises=True), Message(2, number=2)), IN_ORDER, group=2,
        budget=replace(TROUBLE, raising=2, nudges=2),
    ),
    scenario_of("resequencer, late", numbered(2, 2, 1), IN_ORDER, budget=replace(LATE, forgotten=2, poisoned=1)),
    scenario_of("resequencer, skipping", numbered(2, 1, 2), SKIPPING, group=2, budget=replace(TROUBLE, nudges=5)),
    scenario_of(
        "resequencer, asking", (*LOST[1:], Message(2, number=1)), REBUILDING, budget=replace(TROUBLE, nudges=5),
    ),
    scenario_of("resequencer, one order", ORDERED, IN_TIME, budget=replace(TROUBLE, nudges=5)),
)  # fmt: skip
ASKED: Final = next(item for item in SMALL if item.name == "stream: asked for what is missing")
WALKS: Final[tuple[tuple[Scenario, int], ...]] = (
    *((scenario, 0) for scenario in SMALL),
    *((scenario, SEEDS.get(scenario.name, 0)) for scenario in RICH),
    (ASKED, 34),
)
"""Each with its seed."""
