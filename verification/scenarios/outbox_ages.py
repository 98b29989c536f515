"""Scenarios in which time passes: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from exactlyonce.values.lifetimes import Lifetimes, Retention
from verification.explorers.ages import REFUSED
from verification.scenarios.outbox import OTHER
from verification.world.answers import EXPIRED, FOUND, OVERDUE
from verification.world.scenario import AT, TICK, UNLIMITED, Ages, Budget, Scenario, world_of
from verification.world.writes import CUT, PAGES_GONE


def _scenario(name: str, copies: tuple[int, ...], ages: Ages, *seen: str, **more: Any) -> Scenario:
    return world_of(name, copies, REFUSED, *seen, ages=ages, **{"workers": 1, "room": 0, **more})


def changing(kind: type[Retention], days: int, before: int, tick: int = 3) -> Ages:
    """A retention that is changed."""
    hour = timedelta(hours=1)
    changed = kind(timedelta(days=days), timedelta(days=before), AT + tick * TICK)
    return Ages(6, (0, 0), Lifetimes(changed, hour), Lifetimes(Retention(timedelta(days=before)), hour))


CLEANING: Final = Budget(forgotten=UNLIMITED)
UNTIMED: Final = Ages(5, (0, 1, 1), untimed=frozenset({0}))

SMALL: Final = (
    _scenario(
        "pages go with age, a sender's clock a day ahead", (2, 1), Ages(6, (2, 0)), CUT, FOUND, EXPIRED, states=3_077,
    ),
    _scenario("pages go with age, three messages", (2, 1, 1), Ages(5, (0, 1, 1)), CUT, FOUND, states=16_646),
    _scenario("pages go with age, clean-up", (2, 1), Ages(6, (0, 1)), PAGES_GONE, FOUND, budget=CLEANING, states=3_664),
    _scenario(
        "pages go with age, the present half a day behind", (2, 1), Ages(5, (0, 1), behind=1), FOUND, states=3_929,
    ),
    _scenario("pages go with age, one message has no stable time", (2, 1, 1), UNTIMED, FOUND, states=19_160),
    _scenario("marks go with age", (2, 1, 1), Ages(5, (0, 5, 5)), room=3, states=1_337),
    _scenario("a retention is shortened", (2, 1), changing(Retention, 2, 4), FOUND, budget=CLEANING, states=3_526),
    _scenario("a retention is lengthened", (2, 1), changing(Retention, 4, 2), FOUND, budget=CLEANING, states=2_228),
    _scenario("what is owed grows too old", (1, 1), Ages(4, (0, 0)), OVERDUE, crashes=1, sweeps=1, states=17_228),
)  # fmt: skip

LARGE: Final = (
    _scenario("pages go with age, two workers", (2, 1), Ages(6, (2, 0)), FOUND, OTHER, workers=2),
    _scenario("pages go with age, lost writes", (2, 1), Ages(6, (2, 0)), FOUND, unknown=1, forgotten=UNLIMITED),
    _scenario("pages go with age, room for one", (2, 1, 1, 1), Ages(5, (0, 1, 1, 2)), FOUND, room=1),
    _scenario(
        "pages go with age, two messages have no stable time", (2, 2, 1), Ages(6, (0, 1, 1), untimed=frozenset({0, 1})),
        FOUND,
    ),
    _scenario(
        "pages go with age, a crash and the sweeper", (2, 1), Ages(6, (2, 0)), FOUND, OVERDUE, crashes=1, sweeps=1,
    ),
)  # fmt: skip
