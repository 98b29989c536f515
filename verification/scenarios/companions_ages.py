"""Scenarios of one partition in which time passes: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from exactlyonce.values.lifetimes import Retention
from verification.explorers.ages import KNOWN, REFUSED
from verification.scenarios.companions import COLOCATED, KEEPS, KEEPS_ONCE, ONE, RECORD, STREAM, TWO
from verification.scenarios.outbox import LATE, OTHER
from verification.scenarios.outbox_ages import changing
from verification.world.answers import OLD, OVERDUE
from verification.world.scenario import UNLIMITED, Ages, Budget, Message, Scenario, scenario_of
from verification.world.writes import DELETED

CLEANING: Final = Budget(forgotten=UNLIMITED)
ANY_VIEW: Final = replace(CLEANING, stale=UNLIMITED, unknown=1)
"""Replies are lost once, and any read may be as old as its token allows."""
AHEAD: Final = Ages(6, (2, 0))
"""The clock of the first sender is a day ahead."""
PROMPT: Final = Ages(6, (2,), prompt=True)


def _scenario(name: str, messages: tuple[Message, ...], strategy: Any, ages: Ages, *seen: str, **more: Any) -> Scenario:
    return scenario_of(
        name, messages, strategy, REFUSED, *seen, ages=ages, **{"workers": 1, "budget": CLEANING, **more}
    )


def _changing(days: int, before: int) -> Ages:
    return replace(changing(Retention, days, before), times=(0,))


SMALL: Final = (
    _scenario("co-located: records go with age", (TWO, ONE), COLOCATED, AHEAD, RECORD, DELETED, states=4_617),
    _scenario(
        "co-located: records go with age, any view", (TWO,), COLOCATED, PROMPT, RECORD, OTHER, OLD, LATE, DELETED,
        workers=2, budget=ANY_VIEW, states=5_170,
    ),
    _scenario("co-located: a retention is shortened", (TWO,), COLOCATED, _changing(2, 4), RECORD, DELETED, states=397),
    _scenario("co-located: a retention is lengthened", (TWO,), COLOCATED, _changing(4, 2), RECORD, DELETED, states=251),
    _scenario(
        "co-located: what is owed grows too old", (KEEPS_ONCE, KEEPS_ONCE), COLOCATED, Ages(3, (0, 0)), OVERDUE,
        budget=Budget(crashes=2, sweeps=1), states=28_958,
    ),
    _scenario("stream: entries go with age", (TWO, ONE), STREAM, AHEAD, RECORD, DELETED, states=5_644),
    _scenario(
        "stream: entries go with age, any view", (TWO,), STREAM, PROMPT, RECORD, OTHER, OLD, LATE, DELETED, KNOWN,
        workers=2, budget=ANY_VIEW, states=5_362,
    ),
    _scenario(
        "stream: a way back goes with age", (TWO, ONE), STREAM, Ages(4, (0, 6)), DELETED, KNOWN, workers=2, group=2,
        states=2_028,
    ),
    _scenario(
        "stream: events go with age", (ONE, TWO), STREAM, Ages(6, (2, 2), prompt=True), DELETED, KNOWN, LATE,
        budget=CLEANING, unknown=1, sourced=True, states=10_288,
    ),
    _scenario(
        "stream: what is computed again is too old", (KEEPS,), STREAM, Ages(5, (0,)), OVERDUE, DELETED, budget=CLEANING,
        crashes=1, states=1_280,
    ),
)  # fmt: skip

LARGE: Final = (
    _scenario("co-located: records go with age, two workers", (TWO, ONE), COLOCATED, AHEAD, RECORD, OTHER, workers=2),
    _scenario(
        "co-located: records go with age, a crash and the sweeper", (KEEPS, ONE), COLOCATED, AHEAD, RECORD, OVERDUE,
        budget=CLEANING, crashes=1, sweeps=1,
    ),
    _scenario("stream: entries go with age, two workers", (TWO, ONE), STREAM, AHEAD, RECORD, OTHER, KNOWN, workers=2),
    _scenario(
        "stream: entries go with age, a part of them", (TWO, ONE), STREAM, Ages(6, (2, 2)), LATE, KNOWN,
        budget=CLEANING, unknown=1,
    ),
    _scenario(
        "stream: events go with age, two workers", (ONE, TWO), STREAM, Ages(6, (2, 2)), OTHER, KNOWN, workers=2,
        sourced=True,
    ),
)  # fmt: skip
