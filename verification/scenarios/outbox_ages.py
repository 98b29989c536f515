"""Scenarios in which time passes: small ones for every test run, large ones for `make model`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.records.sequences import milliseconds
from exactlyonce.values.lifetimes import CLOCK_TOLERANCE, Lifetimes, Retention
from verification.explorers.ages import REFUSED
from verification.scenarios.outbox import FORGOTTEN, INLINE, OTHER, RECORD
from verification.world.answers import OVERDUE
from verification.world.scenario import AT, TICK, UNLIMITED, Ages, Budget, Scenario

STAGED_EMBEDDED: Final = Outbox(None, 0)
"""A ledger that keeps everything, and outputs apart from it: as where presets were exchanged."""


def _scenario(name: str, copies: tuple[int, ...], strategy: Outbox, ages: Ages, *seen: str, **more: Any) -> Scenario:
    return Scenario(name, copies, strategy, ages=ages, witnesses=frozenset((REFUSED, *seen)), **{"workers": 1, **more})


def changing(kind: type[Retention], days: int, before: int, tick: int = 3) -> Ages:
    """A retention that is changed.

    Args:
        kind: what ships, or a broken twin of it.
        days, before: that it is, and that it was.
        tick: at which it is changed.
    """
    hour = timedelta(hours=1)
    changed = kind(timedelta(days=days), timedelta(days=before), AT + tick * TICK)
    return Ages(6, (0, 0), Lifetimes(changed, hour), Lifetimes(Retention(timedelta(days=before)), hour))


def trimming(kind: type[Retention], days: int, before: int) -> Ages:
    """A retention that is changed when commits have begun to trim the ledger, as for `changing`."""
    return replace(changing(kind, days, before, 6), last=7, times=(2, 7, 8))


FORGETTING: Final = Outbox(window=1, forget_after=timedelta(days=2))
BEGUN: Final = Ages(5, (0,), Lifetimes(Retention(timedelta(days=3) + CLOCK_TOLERANCE), timedelta(hours=1)))
"""First messages of channels are judged as messages are that are kept for a day longer: up to an age of two days."""
CHANNEL: Final = f"{milliseconds(AT):012x}"

CLEANING: Final = Budget(forgotten=UNLIMITED)

SMALL: Final = (
    _scenario(
        "records go with age, a sender's clock a day ahead", (2, 1), INLINE, Ages(6, (2, 0)), RECORD, FORGOTTEN,
        budget=CLEANING,
    ),
    _scenario(
        "records go with age, the present half a day behind", (2, 1), INLINE, Ages(6, (0, 0), behind=1), RECORD, FORGOTTEN,
        budget=CLEANING,
    ),
    _scenario(
        "records go with age, the sweeper", (2, 1), INLINE, Ages(5, (0, 0)), RECORD, FORGOTTEN, OVERDUE,
        budget=Budget(sweeps=1, forgotten=UNLIMITED),
    ),
    _scenario(
        "a retention is shortened", (2, 1), INLINE, changing(Retention, 2, 4), RECORD, FORGOTTEN, budget=CLEANING
    ),
    _scenario(
        "a retention is lengthened", (2, 1), INLINE, changing(Retention, 4, 2), RECORD, FORGOTTEN, budget=CLEANING
    ),
    _scenario("entries go with age", (2, 1, 1), Outbox.embedded(), Ages(5, (0, 5, 5))),
    _scenario("entries go while a retention is shortened", (2, 1, 1), Outbox.embedded(), trimming(Retention, 2, 4)),
    _scenario("entries go while a retention is lengthened", (2, 1, 1), Outbox.embedded(), trimming(Retention, 4, 2)),
    _scenario("entries that owe stay", (1, 1, 1), STAGED_EMBEDDED, Ages(5, (0, 5, 5)), OVERDUE, budget=Budget(crashes=1)),
    _scenario(
        "what is owed grows too old", (1, 1), INLINE, Ages(4, (0, 0)), OVERDUE, budget=Budget(crashes=1, sweeps=1)
    ),
    _scenario(
        "a channel is new, and began long ago", (2,), FORGETTING, BEGUN, OVERDUE, places=((CHANNEL, 1),),
        budget=Budget(crashes=1, stale=1),
    ),
)  # fmt: skip

LARGE: Final = (
    _scenario(
        "records go with age, two workers", (2, 1), INLINE, Ages(6, (2, 0)), RECORD, FORGOTTEN, OTHER, workers=2,
        budget=CLEANING,
    ),
    _scenario(
        "records go with age, a crash and the sweeper", (2, 1), INLINE, Ages(6, (2, 0)), RECORD, FORGOTTEN, OVERDUE,
        budget=Budget(crashes=1, sweeps=1, forgotten=UNLIMITED),
    ),
    _scenario(
        "records go with age, lost writes", (2, 1), INLINE, Ages(6, (2, 0)), RECORD, FORGOTTEN,
        budget=Budget(unknown=1, forgotten=UNLIMITED),
    ),
    _scenario(
        "a retention is shortened, two workers", (2, 1), INLINE, changing(Retention, 2, 4), RECORD, FORGOTTEN, workers=2,
        budget=CLEANING,
    ),
    _scenario(
        "a retention is lengthened, two workers", (2, 1), INLINE, changing(Retention, 4, 2), RECORD, FORGOTTEN, workers=2,
        budget=CLEANING,
    ),
    _scenario("entries that owe stay, longer", (1, 1, 1), STAGED_EMBEDDED, Ages(6, (0, 5, 5)), budget=Budget(crashes=1)),
    _scenario("inline entries that owe stay", (1, 1, 1), Outbox.embedded(), Ages(6, (0, 5, 5)), budget=Budget(crashes=1)),
)  # fmt: skip
