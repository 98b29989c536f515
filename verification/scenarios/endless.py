"""The endless streams: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Any, Final

from verification.explorers.ages import REFUSED
from verification.explorers.explorer import PROVED
from verification.scenarios.outbox import BEHIND, EVERYTHING, LATE, OTHER, OWN, STALE
from verification.world.answers import EXPIRED, FOUND, OVERDUE
from verification.world.scenario import UNLIMITED, Ages, Budget, Scenario
from verification.world.writes import CUT

FAULTS: Final = Budget(crashes=UNLIMITED, unknown=UNLIMITED, repeated=UNLIMITED)
UNTIMED: Final = (None, None)


def _stream(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    defaults = {"workers": 1, "room": 0, "budget": EVERYTHING, "delayed": 0}
    return Scenario(f"endless: {name}", copies, endless=True, witnesses=frozenset((CUT, *seen)), **{**defaults, **more})


def _aging(name: str, copies: tuple[int, ...], ages: Ages, *seen: str, **more: Any) -> Scenario:
    budget = Budget(crashes=UNLIMITED)
    return _stream(name, copies, REFUSED, EXPIRED, *seen, ages=ages, **{"budget": budget, **more})


SMALL: Final = (
    _stream("a message at a time, two workers", (2,), FOUND, OWN, OTHER, STALE, BEHIND, workers=2, states=1_070),
    _stream("a message at a time, a delayed write", (2,), FOUND, OWN, LATE, delayed=1, states=341),
    _stream("a message at a time, books", (2,), FOUND, PROVED, books=True, states=885),
    _aging("a message at a time, expiry", (2,), Ages(0, ()), FOUND, OVERDUE, states=4_330),
    _aging("a message at a time, expiry, untimed", (2,), Ages(0, (), untimed=frozenset({0})), FOUND, states=5_246),
    _stream("two messages", (2, 1), FOUND, OWN, OTHER, STALE, BEHIND, states=16_884),
)

LARGE: Final = (
    _stream("two messages, room for one", (2, 1), FOUND, OWN, OTHER, STALE, BEHIND, room=1),
    _stream("two messages, untimed", (2, 1), FOUND, OWN, OTHER, since=UNTIMED),
    _stream("two messages, a delayed write", (2, 1), FOUND, OWN, LATE, delayed=1),
    _stream("two messages, books", (2, 1), FOUND, PROVED, books=True),
    _stream("two messages, two workers", (2, 1), FOUND, OWN, OTHER, STALE, BEHIND, workers=2),
    _aging("two messages, expiry", (2, 1), Ages(0, ()), FOUND, OVERDUE),
)
