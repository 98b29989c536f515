"""The scenarios in which handlers keep messages until they are due, and cancel them."""

from __future__ import annotations

from typing import Final

from verification.scenarios.outbox import LATE, OTHER, OWN, STALE
from verification.world.scenario import UNLIMITED, Budget, Scenario

CLEANED: Final = "staged outputs were cleaned up"
GONE: Final = "staged outputs were gone"


def _scenario(name: str, copies: tuple[int, ...], *seen: str, **more: object) -> Scenario:
    """The first message keeps its output; the second one, if there is one, cancels it."""
    cancels = (None, 0, *(None,) * len(copies))[: len(copies)]
    return Scenario(
        f"kept: {name}", copies, keeps=frozenset({0}), cancels=cancels, witnesses=frozenset(seen), **more  # type: ignore[arg-type]
    )  # fmt: skip


def swept(**faults: int) -> Budget:
    """Faults in a world in which the sweeper comes at any moment."""
    return Budget(sweeps=UNLIMITED, **faults)


SMALL: Final = (
    _scenario("released, lost replies", (1,), LATE, OTHER, budget=swept(crashes=1, unknown=1)),
    _scenario("released, repeated saves", (1,), OWN, OTHER, budget=swept(repeated=1), states=296),
    _scenario("released, stale reads", (1,), STALE, OTHER, budget=swept(stale=1), states=287),
    _scenario("cancelled, lost replies", (1, 1), LATE, OTHER, workers=1, budget=swept(unknown=1, repeated=1)),
    _scenario("cancelled, stale reads", (1, 1), STALE, workers=1, budget=swept(crashes=1, stale=1)),
    _scenario("cancelled, two instances", (1, 1), OTHER, budget=swept()),
    _scenario(
        "cancelled in the commit that keeps", (1, 1), room=3, group=2, workers=1, budget=swept(crashes=1), states=564,
    ),
    _scenario("cleaned up meanwhile", (1,), CLEANED, workers=1, budget=swept(crashes=1, cleanings=1, unknown=1)),
    _scenario("the entity is deleted before it is due", (1, 1, 1), workers=1, deletes=True, budget=swept(), states=366),
)  # fmt: skip

LARGE: Final = (
    _scenario("cancelled, two instances, a crash", (1, 1), OTHER, budget=swept(crashes=1)),
    _scenario("cancelled, two instances, stale reads", (1, 1), STALE, OTHER, budget=swept(stale=1)),
    _scenario(
        "two instances, lost and repeated replies", (1,), OWN, LATE, budget=swept(crashes=1, unknown=1, repeated=1),
    ),
)  # fmt: skip
