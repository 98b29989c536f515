"""What makes the search small must not make it blind."""

from __future__ import annotations

from typing import Any

import pytest

from devtools.modelcheck.explorer import Explorer
from devtools.modelcheck.reductions import State
from devtools.modelcheck.scenarios import Budget, Scenario
from exactlyonce import Outbox

SCENARIOS = (
    Scenario("inline", (2,), Outbox(window=1), budget=Budget(crashes=1, unknown=1)),
    Scenario("two messages", (1, 1), Outbox(window=1), budget=Budget(crashes=1)),
    Scenario("staged", (2,), Outbox.transaction_id(), budget=Budget(crashes=1)),
)


def reachable(scenario: Scenario, *, merge: bool) -> tuple[set[Any], int]:
    """All contents of the store that are ever reached, and the number of states it took."""
    explorer = Explorer(scenario, merge=merge)
    waiting: list[State] = [explorer.start()]
    seen = set(waiting)
    while waiting:
        for move in explorer.moves(waiting.pop()):
            assert move.violation is None
            if move.state not in seen:
                seen.add(move.state)
                waiting.append(move.state)
    stores = {state[0] for state in seen}
    contents = {
        (store.entities[0].versions, store.libraries[0].writes, store.committed, store.published) for store in stores
    }
    return contents, len(seen)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_merging_situations_that_behave_alike_reaches_the_same_worlds(scenario: Scenario) -> None:
    merged, fewer = reachable(scenario, merge=True)
    apart, more = reachable(scenario, merge=False)
    assert merged == apart
    assert fewer <= more
