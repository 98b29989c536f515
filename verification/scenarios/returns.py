"""Scenarios in which messages go back to their queues: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Any, Final

from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS
from exactlyonce.hosting.deliveries.triggers import Cause
from verification.explorers.returns import ASIDE, REFUSED, REQUEUED, RETURNED, STAYS, TOO_OLD, ReturningScenario
from verification.scenarios.outbox import LATE, OTHER, PARKED
from verification.world.scenario import Ages, Budget

SPOILED: Final = "a batch came again"
SOME: Final = (Cause.OWN, Cause.UNKNOWN)


def _scenario(name: str, budget: Budget, *seen: str, **more: Any) -> ReturningScenario:
    witnesses = frozenset((RETURNED, PARKED, *seen))
    return ReturningScenario(name, **{"copies": (1,), "budget": budget, "witnesses": witnesses, **more})


SMALL: Final = (
    _scenario("returned, a crash", Budget(crashes=1, poisoned=2), STAYS, OTHER),
    _scenario("returned, lost replies", Budget(unknown=1, poisoned=2), STAYS, LATE, states=1_761),
    _scenario("returned, copies", Budget(poisoned=2, spoiled=1), STAYS, OTHER, copies=(2,), causes=SOME),
    _scenario(
        "returned for the last time", Budget(crashes=1, poisoned=2), STAYS, ASIDE, rounds=UNEXPLAINED_ROUNDS,
        states=788,
    ),
    _scenario("returned with a batch", Budget(poisoned=2, spoiled=1), STAYS, SPOILED, causes=SOME, states=711),
    _scenario(
        "returned with a batch, lost replies", Budget(unknown=1, poisoned=1, spoiled=1), STAYS, SPOILED, LATE,
        causes=SOME,
    ),
    _scenario(
        "returned from a poison queue", Budget(crashes=1, unknown=1, poisoned=1), STAYS, LATE, runs_out=True,
        causes=SOME,
    ),
    _scenario(
        "returned from dead letters", Budget(crashes=1, poisoned=1), STAYS, counted=False, causes=SOME, states=291,
    ),
    _scenario("returned until too old", Budget(unknown=1, poisoned=1), REFUSED, ASIDE, ages=Ages(3, (0,))),
    _scenario(
        "parked until too old", Budget(poisoned=1, requeues=2), causes=(Cause.OWN,), ages=Ages(3, (0,)),
        witnesses=frozenset((PARKED, REQUEUED, TOO_OLD, REFUSED)), states=2_286,
    ),
)  # fmt: skip

LARGE: Final = (
    _scenario("returned, a crash and lost replies", Budget(1, 1, poisoned=1), STAYS, LATE, OTHER),
    _scenario("returned, copies under all causes", Budget(crashes=1, poisoned=2), STAYS, OTHER, copies=(2,)),
    _scenario("returned, copies, lost replies", Budget(unknown=1, poisoned=2), STAYS, LATE, copies=(2,)),
    _scenario("returned from dead letters, twice", Budget(crashes=1, poisoned=2), STAYS, counted=False),
    _scenario("returned until too old, a crash", Budget(crashes=1, poisoned=1), REFUSED, ASIDE, ages=Ages(3, (0,))),
)
