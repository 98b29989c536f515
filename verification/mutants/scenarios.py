"""Small worlds in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from typing import Final

from exactlyonce import Outbox
from verification.world.scenario import Budget, Scenario

STAGED: Final = Outbox.transaction_id()
WORLDS: Final = (
    Scenario("a lonely message", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("a lonely message, staged", (1,), STAGED, workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("two in turn", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1)),
    Scenario("two in turn, staged", (2, 1), STAGED, workers=1, budget=Budget(crashes=1)),
    Scenario("two at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1)),
    Scenario("copies at once", (2,), Outbox(window=1), budget=Budget(crashes=1, unknown=1)),
    Scenario("a group", (1, 1, 1), Outbox(window=2), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("a group, staged", (1, 1), Outbox(window=2, inline_limit=0), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("copies in a group", (2, 1), Outbox(window=2), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("a deletion", (1, 2), Outbox(window=1), workers=1, budget=Budget(crashes=1), deletes=True),
    Scenario("a deletion in a group", (1, 2), Outbox(window=2), workers=1, group=2, budget=Budget(1), deletes=True),
    Scenario("swept", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, sweeps=1)),
    Scenario("swept, staged", (1,), STAGED, workers=1, budget=Budget(crashes=1, unknown=1, sweeps=1)),
    Scenario("given up", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, poisoned=1)),
    Scenario("given back", (1,), Outbox(window=1), budget=Budget(poisoned=1, returned=1)),
    Scenario("given up, two messages", (1, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, poisoned=1)),
    Scenario("given up, stale reads", (1, 1), Outbox(window=1), workers=1, budget=Budget(1, stale=1, poisoned=1)),
    Scenario("cleaned", (1,), STAGED, workers=1, budget=Budget(crashes=1, cleanings=1)),
    Scenario("forgotten", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, forgotten=1)),
    Scenario(
        "everything embedded", (2, 1), Outbox.embedded(), workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)
    ),
    Scenario("marking", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1), marking=True),
    Scenario("remembered tokens", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1), tokens=True),
    Scenario("stale reads", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, stale=1)),
    Scenario(
        "remembered tokens, stale reads",
        (2, 1),
        Outbox(window=1),
        workers=1,
        budget=Budget(crashes=1, stale=1),
        tokens=True,
    ),
    Scenario("stale reads, staged", (2,), STAGED, budget=Budget(crashes=1, stale=1)),
    Scenario(
        "marking, stale reads", (2,), Outbox(window=1), workers=1, budget=Budget(unknown=1, stale=1), marking=True
    ),
    Scenario("two at once, lost writes", (1, 1), Outbox(window=1), budget=Budget(unknown=1, repeated=1)),
    Scenario("two at once, staged", (1, 1), STAGED, budget=Budget(crashes=1)),
    Scenario("swept, stale reads", (1, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, stale=1, sweeps=1)),
    Scenario("given up at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1, poisoned=1)),
    Scenario("cleaned, stale reads", (1,), STAGED, workers=1, budget=Budget(crashes=1, stale=1, cleanings=1)),
    Scenario("cleaned at once", (1,), STAGED, budget=Budget(crashes=1, cleanings=1)),
    Scenario("cleaned at once, lost writes", (1,), STAGED, budget=Budget(unknown=1, cleanings=1)),
    Scenario("swept at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1, sweeps=1)),
    Scenario("stale reads at once", (2, 1), Outbox(window=1), budget=Budget(stale=1)),
    Scenario("marking at once", (2, 1), Outbox(window=1), marking=True),
    Scenario("a window of two", (2, 1, 1), Outbox(window=2), workers=1, budget=Budget(crashes=1)),
)

STATES: Final = {
    "a lonely message": 123,
    "a lonely message, staged": 778,
    "two in turn": 186,
    "two in turn, staged": 648,
    "two at once": 728,
    "copies at once": 615,
    "a group": 688,
    "a group, staged": 427,
    "copies in a group": 385,
    "a deletion": 186,
    "a deletion in a group": 385,
    "swept": 231,
    "swept, staged": 926,
    "given up": 218,
    "given back": 83,
    "given up, two messages": 358,
    "given up, stale reads": 1_218,
    "cleaned": 67,
    "forgotten": 257,
    "everything embedded": 1_728,
    "marking": 3_230,
    "remembered tokens": 220,
    "stale reads": 717,
    "remembered tokens, stale reads": 941,
    "stale reads, staged": 5_802,
    "marking, stale reads": 213,
    "two at once, lost writes": 5_160,
    "two at once, staged": 10_202,
    "swept, stale reads": 741,
    "given up at once": 1_862,
    "cleaned, stale reads": 303,
    "cleaned at once": 423,
    "cleaned at once, lost writes": 1_259,
    "swept at once": 4_084,
    "stale reads at once": 2_218,
    "marking at once": 2_368,
    "a window of two": 574,
}
"""Of the shipped strategy. Pinned by a test."""
