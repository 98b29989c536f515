"""What makes the search small must not make it blind: with and without, the same worlds are reached."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any

import pytest

from exactlyonce import Outbox
from verification.explorers import explorer as exploring
from verification.explorers.explorer import Explorer
from verification.explorers.reductions import State
from verification.world.scenario import Budget, Scenario
from verification.world.store import Store, told_history

INLINE, STAGED = Outbox(window=1), Outbox.transaction_id()
LOST = Budget(crashes=1, unknown=1)
SCENARIOS = (
    Scenario("inline", (2,), INLINE, budget=LOST),
    Scenario("two messages", (1, 1), INLINE, budget=Budget(crashes=1)),
    Scenario("staged", (2,), STAGED, budget=LOST),
    Scenario("stale reads", (1, 1), INLINE, budget=Budget(stale=1)),
)
FED = Scenario("fed", (1, 0), INLINE, budget=Budget(crashes=2, unknown=1), targets=(0, 1), feeds=(1, None))
REDUCTIONS: dict[str, Any] = {
    "workers are interchangeable": ("sorted_workers", lambda others, moved: (*others, moved)),
    "staged outputs that nothing refers to are swept": ("swept", lambda _stores, store, _workers, _delayed, **_: store),
    "delayed saves that cannot take effect are dropped": ("alive", lambda delayed, _store: delayed),
    "messages are interchangeable": ("interchangeable", lambda _kinds, _keys, _state: {}),
    "copies at a consumer are capped": ("COPIES", 4),
}


def reachable(scenario: Scenario, *, merge: bool = True) -> tuple[set[Any], int]:
    """What can be observed of all stores that are ever reached, and the number of states it took."""
    explorer = Explorer(scenario, merge=merge)
    waiting: list[State] = [explorer.start()]
    seen = set(waiting)
    while waiting:
        for move in explorer.moves(waiting.pop()):
            assert move.violation is None
            if move.state not in seen:
                seen.add(move.state)
                waiting.append(move.state)
    return {observed(store, len(scenario.copies)) for store in {state[0] for state in seen}}, len(seen)


def observed(store: Store, messages: int) -> Any:
    """A store without names of transactions, without garbage, and with messages that only their names tell apart alike."""
    told = [
        (
            entity.newest,
            told_history(entity.truth.document),
            [
                (entry.message, entry.owed is None, f"staged:{entry.tx}" in library.now)
                for entry in entity.ledger.entries
            ],
            sorted(id for id in library.now if id.startswith("processed:")),
        )
        for entity, library in zip(store.entities, store.libraries, strict=True)
    ]
    text = repr((told, sorted(store.committed), sorted(store.published)))
    return min(renamed(text, order) for order in permutations(range(messages)))


def renamed(text: str, order: tuple[int, ...]) -> str:
    for number, other in enumerate(order):
        text = text.replace(f"m{number}", f"M{other}")
    return text


@cache
def as_ships(scenario: Scenario) -> tuple[set[Any], int]:
    """The same with all reductions."""
    return reachable(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_merging_situations_that_behave_alike_reaches_the_same_worlds(scenario: Scenario) -> None:
    merged, fewer = as_ships(scenario)
    apart, more = reachable(scenario, merge=False)
    assert merged == apart
    assert fewer <= more


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_without_a_reduction_the_same_worlds_are_reached_by_more_states(
    reduction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = {scenario.name: as_ships(scenario) for scenario in (*SCENARIOS, FED)}
    monkeypatch.setattr(exploring, *REDUCTIONS[reduction])
    full = {scenario.name: reachable(scenario) for scenario in (*SCENARIOS, FED)}
    for name, (worlds, states) in full.items():
        assert worlds == reduced[name][0]
        assert states >= reduced[name][1]
    assert sum(states for _, states in full.values()) > sum(states for _, states in reduced.values())
