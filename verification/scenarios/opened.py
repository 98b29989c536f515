"""The scenarios of requests that were opened: their documents know them, and go once their callers close them."""

from __future__ import annotations

from typing import Any, Final

from verification.explorers.requests import CLOSED, UNKNOWN_NOW
from verification.scenarios.outbox import LATE, OTHER, OWN, STALE
from verification.world.answers import ANSWERED
from verification.world.outbox import LARGE_BODY
from verification.world.scenario import UNLIMITED, Request, Scenario, world_of

O0: Final = Request(0, opened=True)
O1: Final = Request(1, opened=True)
LARGE_ANSWER: Final = Request(0, LARGE_BODY, opened=True)


def _scenario(
    name: str, copies: tuple[int, ...], *seen: str, requests: tuple[Request, ...] = (O0, O1), **more: Any
) -> Scenario:
    seen = (CLOSED, UNKNOWN_NOW, *seen)
    return world_of(f"opened: {name}", copies, *seen, requests=requests[: len(copies)], sweeps=UNLIMITED, **more)


SMALL: Final = (
    _scenario("lost replies", (2,), ANSWERED, OWN, OTHER, LATE, unknown=1, repeated=1, states=24_383),
    _scenario("stale reads", (3,), ANSWERED, STALE, workers=1, crashes=1, unknown=1, stale=1),
    _scenario("two instances", (3,), ANSWERED, OTHER, crashes=1),
    _scenario("two requests", (1, 1), STALE, workers=1, stale=1, states=2_013),
    _scenario("two requests in groups", (1, 1), workers=1, group=2, crashes=1),
    _scenario("marks leave", (2, 1), ANSWERED, workers=1, room=0, crashes=1),
    _scenario("a large answer", (1, 1), requests=(LARGE_ANSWER, O1), workers=1, crashes=1),
)

LARGE: Final = (
    _scenario(
        "two instances, all faults", (2, 1), ANSWERED, OWN, LATE, STALE, crashes=1, unknown=1, repeated=1, stale=1,
    ),
)  # fmt: skip
