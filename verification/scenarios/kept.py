"""The scenarios in which handlers keep messages until they are due, and cancel them."""

from __future__ import annotations

from typing import Any, Final

from verification.scenarios.outbox import LATE, OTHER, OWN, STALE
from verification.world.scenario import UNLIMITED, Scenario, world_of

CLEANED: Final = "staged outputs were cleaned up"
GONE: Final = "staged outputs were gone"


def _scenario(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    """The first message keeps its output; the second one, if there is one, cancels it. The sweeper comes at any moment."""
    cancels = (None, 0, *(None,) * len(copies))[: len(copies)]
    return world_of(f"kept: {name}", copies, *seen, keeps=frozenset({0}), cancels=cancels, sweeps=UNLIMITED, **more)


SMALL: Final = (
    _scenario("released, lost replies", (1,), LATE, OTHER, crashes=1, unknown=1),
    _scenario("released, repeated saves", (1,), OWN, OTHER, repeated=1, states=296),
    _scenario("released, stale reads", (1,), STALE, OTHER, stale=1, states=287),
    _scenario("cancelled, lost replies", (1, 1), LATE, OTHER, workers=1, unknown=1, repeated=1),
    _scenario("cancelled, stale reads", (1, 1), STALE, workers=1, crashes=1, stale=1),
    _scenario("cancelled, two instances", (1, 1), OTHER),
    _scenario("cancelled in the commit that keeps", (1, 1), room=3, group=2, workers=1, crashes=1, states=564),
    _scenario("cleaned up meanwhile", (1,), CLEANED, workers=1, crashes=1, cleanings=1, unknown=1),
    _scenario("the entity is deleted before it is due", (1, 1, 1), workers=1, deletes=True, states=366),
)

LARGE: Final = (
    _scenario("cancelled, two instances, a crash", (1, 1), OTHER, crashes=1),
    _scenario("cancelled, two instances, stale reads", (1, 1), STALE, OTHER, stale=1),
    _scenario("two instances, lost and repeated replies", (1,), OWN, LATE, crashes=1, unknown=1, repeated=1),
)
