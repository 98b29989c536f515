"""Scenarios in which a parked message is sent as a new one: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Final

from verification.explorers.ages import REFUSED
from verification.explorers.renewal import ONCE_MORE, renewing_of
from verification.scenarios.outbox import OTHER
from verification.world.scenario import Budget

SMALL: Final = (
    renewing_of(
        "a parked message is renewed, a crash", 3, REFUSED, ONCE_MORE, workers=1, budget=Budget(crashes=1, requeues=2),
        states=2_293,
    ),
    renewing_of(
        "a parked message is renewed, lost replies", 2, REFUSED, ONCE_MORE, workers=1,
        budget=Budget(unknown=1, requeues=2),
    ),
    renewing_of("a parked message is renewed by two", 1, OTHER, budget=Budget(requeues=2), states=858),
    renewing_of(
        "a parked message is renewed, and put back", 3, REFUSED, ONCE_MORE, workers=1,
        budget=Budget(requeues=2, put_back=1), states=1_181,
    ),
)  # fmt: skip

LARGE: Final = (
    renewing_of(
        "a parked message is renewed by two, a crash", 3, REFUSED, ONCE_MORE, OTHER,
        budget=Budget(crashes=1, requeues=2),
    ),
)  # fmt: skip
