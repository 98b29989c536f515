"""Every preset under every trouble: what `make model` explores besides the scenarios of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from devtools.modelcheck.scenarios import Budget, Scenario
from exactlyonce import Outbox

PRESETS: Final = {
    "Outbox(window=1)": Outbox(window=1),
    "transaction_id()": Outbox.transaction_id(),
    "Outbox(window=2)": Outbox(window=2),
    "window of 2, staged": Outbox(window=2, inline_limit=0),
    "Outbox(window=3)": Outbox(window=3),
    "window of 3, staged": Outbox(window=3, inline_limit=0),
    "embedded()": Outbox.embedded(),
}
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
    "the settler": Scenario("", (), budget=Budget(unknown=1, poisoned=1)),
    "clean-up": Scenario("", (), budget=Budget(crashes=1, cleanings=1)),
    "retention": Scenario("", (), budget=Budget(crashes=1, forgotten=1)),
}


def matrix() -> Iterator[Scenario]:
    """A scenario for every preset and trouble that it may meet: one message more than the window holds, the first one twice."""
    for preset, strategy in PRESETS.items():
        for trouble, scenario in TROUBLE.items():
            if trouble == "clean-up" and strategy.inline_limit != 0:
                continue  # There is nothing staged.
            if (trouble == "retention" and strategy.window is None) or (trouble == "groups" and strategy.window == 1):
                continue  # There are no records, or there can be no groups.
            messages = 2 if strategy.window is None else min(strategy.window + 1, 3)
            staged = strategy.inline_limit == 0
            copies = (1 if staged or trouble == "the settler" else 2, *(1,) * (messages - 1))
            yield replace(scenario, name=f"{preset}: {trouble}", strategy=strategy, copies=copies)
