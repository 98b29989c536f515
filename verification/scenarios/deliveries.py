"""Scenarios about what host and driver do with deliveries: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from verification.scenarios.companions import COLOCATED, IN_ORDER, ONE, numbered
from verification.scenarios.companions import STREAM as VERSIONS
from verification.scenarios.outbox import LATE, OTHER, PARKED, STALE
from verification.world.scenario import Budget, Scenario, scenario_of

AGAIN: Final = "a parked message was sent again"
BACK: Final = "a delivery was given back while its attempt went on"
SPOILED: Final = "a batch came again"


def _scenario(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    return Scenario(name, copies, witnesses=frozenset(seen), **more)


def _companions(name: str, strategy: Any, *, states: int = 0, **more: int) -> Scenario:
    messages = numbered(1, 1) if strategy is IN_ORDER else (ONE, ONE)
    budget = Budget(poisoned=1, returned=1, **more)
    return replace(scenario_of(name, messages, strategy, PARKED, BACK, OTHER, budget=budget, states=states), group=2)


SMALL: Final = (
    _scenario(
        "a delivery is given back", (1,), PARKED, BACK, OTHER, LATE, STALE,
        budget=Budget(1, 1, 0, 1, poisoned=1, returned=1),
    ),
    _scenario("a copy is given back", (2,), PARKED, BACK, budget=Budget(1, poisoned=2, returned=1), states=2_392),
    _scenario(
        "a group gives a delivery back", (1, 1), PARKED, BACK, OTHER, group=2, budget=Budget(poisoned=1, returned=1),
        states=2_106,
    ),
    _scenario("a group gives all back", (1, 1), PARKED, BACK, OTHER, group=2, budget=Budget(poisoned=1, returned=2)),
    _companions("stream: a group gives a delivery back", VERSIONS, states=1_844),
    _companions("co-located: a group gives a delivery back", COLOCATED),
    _companions("resequencer: a group gives a delivery back", IN_ORDER, states=1_600),
    _scenario(
        "a batch comes again, all faults", (1,), PARKED, SPOILED, LATE, STALE,
        budget=Budget(1, 1, 0, 1, poisoned=1, spoiled=1), states=1_672,
    ),
    _scenario("a batch of two comes again", (1, 1), PARKED, SPOILED, OTHER, budget=Budget(1, poisoned=2, spoiled=2)),
    _scenario(
        "a parked message is sent again", (1,), PARKED, AGAIN, OTHER, LATE, budget=Budget(1, 1, poisoned=2, requeues=1),
    ),
    _scenario(
        "copies of a parked message", (2,), PARKED, AGAIN, BACK, OTHER,
        budget=Budget(poisoned=2, requeues=2, returned=1),
    ),
)  # fmt: skip

LARGE: Final = (
    _scenario(
        "a delivery is given back, two messages", (1, 1), PARKED, BACK, OTHER,
        budget=Budget(crashes=1, poisoned=1, returned=1),
    ),
    _scenario(
        "a group gives a delivery back, lost writes", (1, 1), PARKED, BACK, LATE, group=2,
        budget=Budget(unknown=1, poisoned=1, returned=1),
    ),
    _scenario(
        "a group gives a delivery back, copies", (2, 1), PARKED, BACK, OTHER, group=2,
        budget=Budget(crashes=1, poisoned=1, returned=1),
    ),
    _companions("stream: a group gives a delivery back, all faults", VERSIONS, crashes=1, unknown=1, repeated=1),
    _companions("co-located: a group gives a delivery back, all faults", COLOCATED, crashes=1, unknown=1, repeated=1),
    _companions("resequencer: a group gives a delivery back, all faults", IN_ORDER, crashes=1, unknown=1, repeated=1),
    _scenario(
        "a batch of two comes again, copies and requeues", (2, 1), PARKED, SPOILED, AGAIN,
        budget=Budget(poisoned=2, spoiled=1, requeues=1),
    ),
)  # fmt: skip
