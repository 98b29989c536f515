"""The scenarios in which books prove what processes have sent: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Any, Final

from verification.explorers.explorer import PROVED
from verification.explorers.requests import LEFT
from verification.scenarios.outbox import LATE, OTHER, OWN, PARKED, STALE
from verification.world.scenario import UNLIMITED, Budget, Request, Scenario, world_of


def _scenario(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    return world_of(f"books: {name}", copies, *seen, books=True, **more)


def _asked(name: str, keys: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    """Messages come by requests, whose clients may leave; then only the sweeper is left, which finds entities by books."""
    return _scenario(name, (1,) * len(keys), LEFT, *seen, requests=tuple(map(Request, keys)), **more)


SMALL: Final = (
    _scenario(
        "one process, then another, every fault", (2,), PROVED, OWN, LATE, STALE, workers=1, budget=Budget(1, 1, 1, 1),
        states=3_498,
    ),
    _scenario("two processes", (2, 1), PROVED, OTHER, crashes=1, states=21_866),
    _scenario("two messages, and the sweeper", (1, 1), LATE, workers=1, crashes=1, unknown=1, sweeps=1, states=7_450),
    _scenario("the settler", (1, 1), PARKED, workers=1, crashes=2, poisoned=1, states=3_673),
    _scenario("from memory", (2, 1), workers=1, remembering=True, room=0, crashes=1, unknown=1, states=13_487),
    _asked("clients leave", (0, 0), LATE, OTHER, workers=1, crashes=1, unknown=1, sweeps=UNLIMITED, states=1_970),
)  # fmt: skip

LARGE: Final = (
    _scenario("two processes, lost writes", (2, 1), LATE, OTHER, crashes=1, unknown=1),
    _scenario("three messages", (1, 1, 1), LATE, STALE, workers=1, budget=Budget(1, 1, 0, 1)),
    _scenario("two messages, two crashes", (2, 1), LATE, workers=1, budget=Budget(2, 1, 1, 1)),
    _scenario("and pages", (2, 1, 1), LATE, workers=1, room=0, crashes=1, unknown=1),
    _asked("two clients leave", (0, 1), LATE, OTHER, crashes=1, unknown=1, sweeps=UNLIMITED),
)
