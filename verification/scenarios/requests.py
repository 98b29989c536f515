"""The scenarios in which messages come by requests, whose clients want the committed answer."""

from __future__ import annotations

from typing import Final

from exactlyonce import Outbox
from verification.explorers.requests import LEFT, REFUSED
from verification.scenarios.outbox import LATE, OTHER, OWN, RECORD, STALE
from verification.world.answers import READ
from verification.world.scenario import UNLIMITED, Budget, Request, Scenario

ROOM_FOR_ONE: Final = Outbox(window=1)
K0: Final = Request(0)
K1: Final = Request(1)
K2: Final = Request(2)
OTHER_BODY: Final = Request(0, "c")
"""Another request under the first one's key."""
Requests = tuple[Request | None, ...]


def _scenario(
    name: str, copies: tuple[int, ...], requests: Requests, *seen: str, strategy: Outbox = ROOM_FOR_ONE, **more: object
) -> Scenario:
    witnesses = frozenset((LEFT, *seen))
    return Scenario(name, copies, strategy, requests=requests, witnesses=witnesses, **more)  # type: ignore[arg-type]


def swept(**faults: int) -> Budget:
    """A budget with these faults, in an application that is swept."""
    return Budget(**faults, sweeps=UNLIMITED)


SMALL: Final = (
    _scenario("requests: lost replies", (2,), (K0,), OWN, OTHER, LATE, budget=swept(crashes=1, unknown=1, repeated=1)),
    _scenario("requests: answers leave with their entries", (2, 1), (K0, K1), RECORD, READ, budget=swept(crashes=1)),
    _scenario(
        "requests: stale reads, one instance", (2, 1), (K0, K1), READ, STALE, workers=1,
        budget=swept(crashes=1, unknown=1, stale=1),
    ),
    _scenario("requests: two bodies under one key", (1, 1), (K0, OTHER_BODY), REFUSED, budget=swept(crashes=1, unknown=1)),
    _scenario(
        "requests: two bodies in one commit", (1, 1, 1), (K0, OTHER_BODY, K2), REFUSED, READ, workers=1, group=3,
        budget=swept(crashes=1),
    ),
    _scenario(
        "requests: beside messages from a queue", (2, 1), (K0, None), READ, workers=1, group=2,
        budget=swept(crashes=1, unknown=1),
    ),
    _scenario(
        "requests: outputs staged", (2, 1), (K0, K1), READ, strategy=Outbox.transaction_id(), workers=1,
        budget=swept(crashes=2),
    ),
    _scenario(
        "requests: everything embedded", (2, 1), (K0, K1), OTHER, strategy=Outbox.embedded(), budget=swept(crashes=1)
    ),
)  # fmt: skip

LARGE: Final = (
    _scenario(
        "requests: two instances, all faults", (2, 1), (K0, K1), READ, OWN, LATE, STALE,
        budget=swept(crashes=1, unknown=1, repeated=1, stale=1),
    ),
    _scenario(
        "requests: two bodies and another key in groups", (2, 1, 1), (K0, OTHER_BODY, K2), REFUSED, READ, group=2,
        budget=swept(crashes=1),
    ),
)  # fmt: skip
