"""What makes the search in one partition small must not make it blind: with and without, the same worlds are reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import pytest

from exactlyonce.effects.entity import Loaded, LoadEntity
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage
from exactlyonce.records.ledger import Ledger
from verification.explorers import explorer as exploring
from verification.explorers.explorer import Explorer
from verification.explorers.reductions import State
from verification.scenarios.companions import BESIDE, FAULTS, IN_ORDER, ONE, ONE_BY_ONE, STREAM, TWO, numbered
from verification.world.answers import STALE, World
from verification.world.scenario import UNLIMITED, Budget, Scenario, scenario_of
from verification.world.store import NOW, Store, position_of, token_at, told_history
from verification.world.writes import Answer

LOST, OLD = Budget(crashes=1, unknown=1), Budget(stale=UNLIMITED)
SCENARIOS = (
    scenario_of("stream, copies", (TWO,), STREAM, budget=FAULTS),
    scenario_of("stream, two messages", (ONE, ONE), STREAM, budget=replace(OLD, crashes=1)),
    scenario_of("co-located, copies", (TWO,), BESIDE, budget=FAULTS),
    scenario_of("co-located, two messages", (ONE, ONE), BESIDE, budget=Budget(unknown=1)),
    scenario_of("resequencer, copies", numbered(2, 1), IN_ORDER, budget=LOST),
    scenario_of("resequencer, one by one", numbered(1, 1), ONE_BY_ONE, budget=LOST),
    scenario_of("stream, clean-up", (TWO, ONE), STREAM, budget=Budget(unknown=1, forgotten=1)),
    scenario_of("co-located, clean-up", (TWO,), BESIDE, budget=replace(LOST, forgotten=1)),
)


def every_version(world: World, effect: LoadEntity, store: Store) -> Iterator[Answer]:
    """Loads of every version, each with its own token, those that show the same included."""
    partition = store.partition
    for position in range(max(position_of(effect.token), partition.first), partition.newest + 1):
        version = partition.versions[position - partition.first]
        loaded = Loaded(version.document, version.etag, NOW if version.document else 0, token_at(position))
        yield Answer(loaded, store, None if version.etag == partition.truth.etag else STALE)
    yield from world._unanswered(store, may_be_behind=effect.token is not None)


REDUCTIONS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "workers are interchangeable": ((exploring, "sorted_workers", lambda others, moved: (*others, moved)),),
    "messages are interchangeable": ((exploring, "interchangeable", lambda _kinds, _keys, _state: {}),),
    "delayed saves that cannot take effect are dropped": ((exploring, "alive", lambda delayed, _store: delayed),),
    "who saves in vain has forgotten what": ((Explorer, "_without_vain_drafts", lambda _self, state: state),),
    "of views that show the same the oldest is enough": ((World, "_load", every_version),),
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
    alike = scenario.protocol != "resequencer"
    return {observed(store, len(scenario.copies) if alike else 1) for store in {state[0] for state in seen}}, len(seen)


@cache
def as_ships(scenario: Scenario) -> tuple[set[Any], int]:
    """The same with all reductions."""
    return reachable(scenario)


def observed(store: Store, alike: int) -> str:
    """A store without names of transactions, times and versions, and with messages that only their names tell apart alike."""
    partition = store.partition
    ledger = partition.view.ledger or Ledger()
    told = (
        told_history(partition.truth.document),
        [(entry.message, entry.owed is None) for entry in ledger.entries],
        [(one.source, one.next, one.held) for one in ledger.receptions],
        sorted(shown(one) for one, _ in partition.now.values()),
        sorted(key for key, _ in store.committed),
        sorted(store.published),
    )
    return min(renamed(repr(told), order) for order in permutations(range(alike)))


def shown(companion: Companion) -> tuple[Any, ...]:
    owed = companion.owed is None if isinstance(companion, ColocatedRecord) else None
    held = companion.held is None if isinstance(companion, NumberedMessage) else None
    return (str(companion.message), owed, held)


def renamed(text: str, order: tuple[int, ...]) -> str:
    for number, other in enumerate(order):
        text = text.replace(f"m{number}", f"M{other}")
    return text.replace("M", "m")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_merging_situations_and_drafts_that_behave_alike_reaches_the_same_worlds(scenario: Scenario) -> None:
    merged, fewer = as_ships(scenario)
    apart, more = reachable(scenario, merge=False)
    assert merged == apart
    assert fewer <= more


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_telling_attempts_apart_reaches_no_other_worlds(scenario: Scenario) -> None:
    together, fewer = as_ships(scenario)
    apart, more = reachable(replace(scenario, apart=True))
    assert together == apart
    assert fewer <= more


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_without_a_reduction_the_same_worlds_are_reached_by_more_states(
    reduction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = {scenario.name: as_ships(scenario) for scenario in SCENARIOS}
    for patch in REDUCTIONS[reduction]:
        monkeypatch.setattr(*patch)
    full = {scenario.name: reachable(scenario) for scenario in SCENARIOS}
    assert {name: worlds for name, (worlds, _) in full.items()} == {
        name: worlds for name, (worlds, _) in reduced.items()
    }
    assert sum(states for _, states in full.values()) > sum(states for _, states in reduced.values())
