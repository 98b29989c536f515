"""The scenarios in which handlers make calls, whose replies the ledger awaits."""

from __future__ import annotations

from typing import Any, Final

from verification.explorers.explorer import FROM_MEMORY as MEMORY
from verification.scenarios.outbox import LATE, OTHER, OWN, PARKED, STALE
from verification.world.scenario import Budget, Reply, Scenario, world_of

FIRST: Final = Reply(0)
TWICE: Final = Reply(0, copies=2)
"""Comes in two copies: the call was made twice."""
SECOND: Final = Reply(0, version=2)
"""Comes if the first message was committed after another one."""
SENT_AGAIN: Final = "a parked message was sent again"
Replies = tuple[Reply | None, ...]


def _scenario(name: str, copies: tuple[int, ...], replies: Replies, *seen: str, **more: Any) -> Scenario:
    return world_of(f"calls: {name}", copies, *seen, replies=replies, **more)


SMALL: Final = (
    _scenario("lost replies", (1, 0), (None, TWICE), OWN, OTHER, LATE, budget=Budget(1, 1, 1)),
    _scenario("stale reads", (2, 0), (None, TWICE), OTHER, STALE, crashes=1, stale=1),
    _scenario(
        "another message comes between", (1, 1, 0, 0), (None, None, TWICE, SECOND), STALE, LATE, workers=1, crashes=1,
        unknown=1, stale=1,
    ),
    _scenario("another message, two instances", (1, 1, 0, 0), (None, None, FIRST, SECOND), OTHER, crashes=1),
    _scenario(
        "in groups with another message", (1, 1, 0, 0), (None, None, TWICE, SECOND), STALE, workers=1, group=2,
        crashes=1, stale=1,
    ),
    _scenario(
        "two calls, answered in one commit", (1, 1, *(0,) * 6),
        (None, None, *(Reply(call, version) for call in (0, 1) for version in (1, 2, 3))), STALE, workers=1, group=2,
        stale=1, states=446,
    ),
    _scenario(
        "a reply that calls in its turn", (1, 0, 0), (None, TWICE, Reply(1, version=2, copies=2)), STALE, workers=1,
        crashes=1, stale=1, states=868,
    ),
    _scenario(
        "the entity is deleted before the reply", (1, 0, 0, 1), (None, TWICE, SECOND, None), STALE, workers=1,
        crashes=1, stale=1, deletes=True, states=1_322,
    ),
    _scenario(
        "from memory", (1, 1, 0, 0), (None, None, FIRST, SECOND), MEMORY, STALE, OTHER, remembering=True, stale=1,
        states=639,
    ),
    _scenario("from memory, a crash", (1, 0), (None, TWICE), MEMORY, OTHER, remembering=True, crashes=1, unknown=1),
    _scenario("given up", (1, 0), (None, TWICE), PARKED, STALE, OTHER, crashes=1, stale=1, poisoned=1),
    _scenario(
        "given up and sent again", (1, 0), (None, TWICE), PARKED, SENT_AGAIN, workers=1,
        budget=Budget(1, 1, 0, 1, poisoned=1, requeues=1),
    ),
    _scenario("marks leave", (1, 1, 0, 0), (None, None, TWICE, SECOND), room=0, workers=1, crashes=1, states=404),
    _scenario("the sweeper", (1, 0), (None, TWICE), LATE, OTHER, crashes=1, unknown=1, sweeps=1),
)  # fmt: skip

LARGE: Final = (
    _scenario(
        "two instances, all faults", (2, 1, 0, 0), (None, None, TWICE, SECOND), OWN, LATE, STALE,
        budget=Budget(1, 1, 1, 1),
    ),
)  # fmt: skip
