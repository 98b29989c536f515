"""Every preset under every trouble: what `make model` explores apart from the scenarios of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from exactlyonce import Outbox
from verification.scenarios.outbox import CLEANED, FORGOTTEN, LATE, OTHER, PARKED
from verification.world.scenario import Budget, Scenario

PRESETS: Final = {
    "Outbox(window=1)": Outbox(window=1),
    "transaction_id()": Outbox.transaction_id(),
    "Outbox(window=2)": Outbox(window=2),
    "window of 2, staged": Outbox(window=2, inline_limit=0),
    "Outbox(window=3)": Outbox(window=3),
    "window of 3, staged": Outbox(window=3, inline_limit=0),
    "embedded()": Outbox.embedded(),
}
MANY: Final = 3
"""A window so large that there are enough deliveries without copies."""
TROUBLE: Final = {
    "a crash": Scenario("", (), budget=Budget(crashes=1)),
    "a lost write": Scenario("", (), budget=Budget(unknown=1)),
    "a repeated write": Scenario("", (), budget=Budget(repeated=1)),
    "stale reads": Scenario("", (), budget=Budget(stale=2)),
    "marking": Scenario("", (), marking=True, budget=Budget(crashes=1)),
    "tokens": Scenario("", (), tokens=True, budget=Budget(stale=1)),
    "groups": Scenario("", (), group=2),
    "deletion": Scenario("", (), deletes=True, budget=Budget(crashes=1)),
    "the sweeper": Scenario("", (), budget=Budget(crashes=1, sweeps=1)),
    "the settler": Scenario("", (), budget=Budget(unknown=1, poisoned=1), witnesses=frozenset({PARKED, LATE})),
    "clean-up": Scenario("", (), budget=Budget(crashes=1, cleanings=1), witnesses=frozenset({CLEANED})),
    "retention": Scenario("", (), budget=Budget(crashes=1, forgotten=1), witnesses=frozenset({FORGOTTEN})),
}


def matrix() -> Iterator[Scenario]:
    """A scenario for every preset and trouble that it may meet: more messages than the window holds, one of them twice."""
    for preset, strategy in PRESETS.items():
        for trouble, scenario in TROUBLE.items():
            if _may_meet(strategy, trouble):
                name = f"{preset}: {trouble}"
                seen = scenario.witnesses | {OTHER}
                yield replace(scenario, name=name, strategy=strategy, copies=_copies(strategy, trouble), witnesses=seen)


def _may_meet(strategy: Outbox, trouble: str) -> bool:
    """Whether there is anything to clean up, to forget, or to group."""
    match trouble:
        case "clean-up":
            return strategy.inline_limit == 0
        case "retention":
            return strategy.window is not None
        case "groups":
            return strategy.window != 1
        case _:
            return True


def _copies(strategy: Outbox, trouble: str) -> tuple[int, ...]:
    window = strategy.window or 1
    twice = strategy.inline_limit != 0 and window < MANY and trouble != "the settler"
    return (2 if twice else 1, *(1,) * window)
