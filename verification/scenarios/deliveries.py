"""Scenarios about what host and driver do with deliveries: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Any, Final

from verification.scenarios.companions import COLOCATED, IN_ORDER, ONE, numbered
from verification.scenarios.companions import STREAM as VERSIONS
from verification.scenarios.outbox import LATE, OTHER, PARKED, STALE
from verification.world.scenario import Budget, Scenario, scenario_of, world_of

AGAIN: Final = "a parked message was sent again"
BACK: Final = "a delivery was given back while its attempt went on"
SPOILED: Final = "a batch came again"


def _companions(name: str, strategy: Any, **more: int) -> Scenario:
    messages = numbered(1, 1) if strategy is IN_ORDER else (ONE, ONE)
    return scenario_of(name, messages, strategy, PARKED, BACK, OTHER, poisoned=1, returned=1, group=2, **more)


SMALL: Final = (
    world_of(
        "a delivery is given back", (1,), PARKED, BACK, OTHER, LATE, STALE,
        budget=Budget(1, 1, 0, 1, poisoned=1, returned=1),
    ),
    world_of("a copy is given back", (2,), PARKED, BACK, crashes=1, poisoned=2, returned=1, states=2_392),
    world_of(
        "a group gives a delivery back", (1, 1), PARKED, BACK, OTHER, group=2, poisoned=1, returned=1, states=2_106,
    ),
    world_of("a group gives all back", (1, 1), PARKED, BACK, OTHER, group=2, poisoned=1, returned=2),
    _companions("stream: a group gives a delivery back", VERSIONS, states=1_844),
    _companions("co-located: a group gives a delivery back", COLOCATED),
    _companions("resequencer: a group gives a delivery back", IN_ORDER, states=1_600),
    world_of(
        "a batch comes again, all faults", (1,), PARKED, SPOILED, LATE, STALE,
        budget=Budget(1, 1, 0, 1, poisoned=1, spoiled=1), states=1_672,
    ),
    world_of("a batch of two comes again", (1, 1), PARKED, SPOILED, OTHER, crashes=1, poisoned=2, spoiled=2),
    world_of(
        "a parked message is sent again", (1,), PARKED, AGAIN, OTHER, LATE, crashes=1, unknown=1, poisoned=2,
        requeues=1,
    ),
    world_of("copies of a parked message", (2,), PARKED, AGAIN, BACK, OTHER, poisoned=2, requeues=2, returned=1),
)  # fmt: skip

LARGE: Final = (
    world_of("a delivery is given back, two messages", (1, 1), PARKED, BACK, OTHER, crashes=1, poisoned=1, returned=1),
    world_of(
        "a group gives a delivery back, lost writes", (1, 1), PARKED, BACK, LATE, group=2, unknown=1, poisoned=1,
        returned=1,
    ),
    world_of(
        "a group gives a delivery back, copies", (2, 1), PARKED, BACK, OTHER, group=2, crashes=1, poisoned=1,
        returned=1,
    ),
    _companions("stream: a group gives a delivery back, all faults", VERSIONS, crashes=1, unknown=1, repeated=1),
    _companions("co-located: a group gives a delivery back, all faults", COLOCATED, crashes=1, unknown=1, repeated=1),
    _companions("resequencer: a group gives a delivery back, all faults", IN_ORDER, crashes=1, unknown=1, repeated=1),
    world_of(
        "a batch of two comes again, copies and requeues", (2, 1), PARKED, SPOILED, AGAIN, poisoned=2, spoiled=1,
        requeues=1,
    ),
)  # fmt: skip
