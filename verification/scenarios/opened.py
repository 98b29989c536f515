"""The scenarios of requests that were opened: their documents know them, and go once their callers close them."""

from __future__ import annotations

from typing import Final

from verification.explorers.requests import CLOSED, UNKNOWN_NOW
from verification.scenarios.outbox import LATE, OTHER, OWN, STALE
from verification.scenarios.requests import swept
from verification.world.answers import ANSWERED
from verification.world.outbox_handler import LARGE_BODY
from verification.world.scenario import Request, Scenario

O0: Final = Request(0, opened=True)
O1: Final = Request(1, opened=True)
LARGE_ANSWER: Final = Request(0, LARGE_BODY, opened=True)


def _scenario(
    name: str, copies: tuple[int, ...], *seen: str, requests: tuple[Request, ...] = (O0, O1), **more: object
) -> Scenario:
    witnesses = frozenset((CLOSED, UNKNOWN_NOW, *seen))
    asked = requests[: len(copies)]
    return Scenario(f"opened: {name}", copies, requests=asked, witnesses=witnesses, **more)  # type: ignore[arg-type]


SMALL: Final = (
    _scenario("lost replies", (2,), ANSWERED, OWN, OTHER, LATE, budget=swept(unknown=1, repeated=1), states=24_383),
    _scenario("stale reads", (3,), ANSWERED, STALE, workers=1, budget=swept(crashes=1, unknown=1, stale=1)),
    _scenario("two instances", (3,), ANSWERED, OTHER, budget=swept(crashes=1)),
    _scenario("two requests", (1, 1), STALE, workers=1, budget=swept(stale=1), states=2_013),
    _scenario("two requests in groups", (1, 1), workers=1, group=2, budget=swept(crashes=1)),
    _scenario("marks leave", (2, 1), ANSWERED, workers=1, room=0, budget=swept(crashes=1)),
    _scenario("a large answer", (1, 1), requests=(LARGE_ANSWER, O1), workers=1, budget=swept(crashes=1)),
)

LARGE: Final = (
    _scenario(
        "two instances, all faults", (2, 1), ANSWERED, OWN, LATE, STALE,
        budget=swept(crashes=1, unknown=1, repeated=1, stale=1),
    ),
)  # fmt: skip
