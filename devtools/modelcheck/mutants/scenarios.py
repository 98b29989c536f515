"""Small worlds in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.scenarios import Budget, Scenario
from exactlyonce import Outbox

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
    Scenario("stale reads at once", (2, 1), Outbox(window=1), budget=Budget(stale=1)),
    Scenario("marking at once", (2, 1), Outbox(window=1), marking=True),
    Scenario("a window of two", (2, 1, 1), Outbox(window=2), workers=1, budget=Budget(crashes=1)),
)

STATES: Final = {
    "a lonely message": 96,
    "a lonely message, staged": 718,
    "two in turn": 162,
    "two in turn, staged": 586,
    "two at once": 530,
    "copies at once": 469,
    "a group": 284,
    "a group, staged": 205,
    "copies in a group": 204,
    "a deletion": 162,
    "everything embedded": 933,
    "marking": 2_176,
    "remembered tokens": 189,
    "stale reads": 583,
    "remembered tokens, stale reads": 707,
    "stale reads, staged": 3_778,
    "marking, stale reads": 157,
    "two at once, lost writes": 2_903,
    "two at once, staged": 7_852,
    "stale reads at once": 1_907,
    "marking at once": 1_925,
    "a window of two": 486,
}
"""Of the shipped strategy. Pinned by a test."""
