"""What makes the search small must not make it blind: with and without, the same worlds are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import permutations
from typing import Any

import pytest

from exactlyonce.effects.entity import Loaded, LoadEntity
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage
from exactlyonce.records.ledger import by_hash
from exactlyonce.values.envelope import message_hash
from tests.model.searches import name_of
from verification.explorers import explorer as exploring
from verification.explorers import moves as deliveries
from verification.explorers.explorer import Explorer
from verification.explorers.moves import State
from verification.scenarios.companions import COLOCATED, FAULTS, IN_ORDER, ONE, ONE_BY_ONE, STREAM, TWO, numbered
from verification.world.answers import STALE, World
from verification.world.outbox import key_of_number
from verification.world.scenario import UNLIMITED, Budget, Scenario, scenario_of
from verification.world.store import NOW, Entity, Library, Store, StoredPage, history_of, position_of, token_at
from verification.world.writes import Answer

LOST, OLD = Budget(crashes=1, unknown=1), Budget(stale=UNLIMITED)
OUTBOX = (
    Scenario("copies", (2,), budget=LOST),
    Scenario("two messages", (1, 1), budget=Budget(crashes=1)),
    Scenario("room for none", (2, 1), room=0, workers=1, budget=LOST),
    Scenario("stale reads", (1, 1), budget=Budget(stale=1)),
    Scenario("a message without a time", (1, 1), since=(None, 0), room=0, workers=1, budget=LOST),
    Scenario("a group", (1, 1, 1), group=2, workers=1),
    Scenario("books", (1, 1), books=True, workers=1, budget=Budget(crashes=1)),
)
KEPT = Scenario("kept", (1,), keeps=frozenset({0}), budget=Budget(unknown=1, sweeps=UNLIMITED))
FED = Scenario("fed", (1, 0), budget=Budget(crashes=2, unknown=1), targets=(0, 1), feeds=(1, None))
COMPANIONS = (
    scenario_of("stream, copies", (TWO,), STREAM, budget=FAULTS),
    scenario_of("stream, two messages", (ONE, ONE), STREAM, budget=replace(OLD, crashes=1)),
    scenario_of("co-located, copies", (TWO,), COLOCATED, budget=FAULTS),
    scenario_of("co-located, two messages", (ONE, ONE), COLOCATED, budget=Budget(unknown=1)),
    scenario_of("resequencer, copies", numbered(2, 1), IN_ORDER, budget=LOST),
    scenario_of("resequencer, one by one", numbered(1, 1), ONE_BY_ONE, budget=LOST),
    scenario_of("stream, clean-up", (TWO, ONE), STREAM, budget=Budget(unknown=1, forgotten=1)),
    scenario_of("co-located, clean-up", (TWO,), COLOCATED, budget=replace(LOST, forgotten=1)),
)


KEYS = {message_hash(key): key for key in map(key_of_number, range(3))}
Name = Callable[[str], str]


def every_version(world: World, effect: LoadEntity, store: Store) -> Iterator[Answer]:
    """Loads of every version, each with its own token, those that show the same included."""
    entity = store.partition
    for position in range(max(position_of(effect.token), entity.first), entity.newest + 1):
        version = entity.versions[position - entity.first]
        loaded = Loaded(version.document, version.etag, NOW if version.document else 0, token_at(position))
        yield Answer(loaded, store, None if version.etag == entity.truth.etag else STALE)
    yield from world._unanswered(store, may_be_behind=effect.token is not None)


REDUCTIONS: dict[str, tuple[Any, ...]] = {
    "workers are interchangeable": (exploring, "sorted_workers", lambda others, moved: (*others, moved)),
    "messages are interchangeable": (exploring, "interchangeable", lambda _kinds, _keys, _state: {}),
    "staged outputs that nothing refers to are swept": (
        exploring, "swept", lambda _stores, store, _workers, _delayed, **_: store,
    ),
    "delayed saves that cannot take effect are dropped": (exploring, "alive", lambda delayed, _store: delayed),
    "copies at a consumer are capped": (deliveries, "COPIES", 4),
    "drafts that are saved in vain are forgotten": (exploring, "without_vain_drafts", lambda _workers, state: state),
    "of views that show the same the oldest is enough": (World, "_load", every_version),
}  # fmt: skip
OF_COMPANIONS = ("workers", "messages", "delayed", "drafts", "of views")
OF_THE_OUTBOX = ("workers", "messages", "staged", "delayed", "copies")
"""Beginnings of the names of the reductions that make those scenarios smaller."""


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
    ordered = scenario.protocol == "resequencer" or bool(scenario.since or scenario.keeps)
    return {observed(store, len(scenario.copies) if not ordered else 1) for store in {state[0] for state in seen}}, len(
        seen
    )


@cache
def as_ships(scenario: Scenario) -> tuple[set[Any], int]:
    """What is reached with all reductions."""
    return reachable(scenario)


def observed(store: Store, alike: int) -> str:
    """A store without names of transactions, times and versions, without garbage, where messages that differ in
    their names only are alike."""
    return min(repr(_parts(store, partial(renamed, order=order))) for order in permutations(range(alike)))


def _parts(store: Store, name: Name) -> Any:
    committed = store.committed if store.libraries else ((key, "") for key, _ in store.committed)
    return (
        [_of_entity(entity, name) for entity in store.entities],
        [_of_library(entity, library, name) for entity, library in zip(store.entities, store.libraries, strict=False)],
        sorted((name(key), name(said)) for key, said in committed),
        sorted(map(name, store.published)),
    )


def _of_entity(entity: Entity, name: Name) -> Any:
    return (
        name(history_of(entity.truth.document)),
        _known(entity.ledger.marks, name),
        sorted(name(KEYS.get(entry.cause, "released")) for entry in entity.ledger.outbox),
        [(reception.channel, reception.next, reception.held) for reception in entity.ledger.receptions],
        sorted(shown(item, name) for item, _ in entity.now.values()),
    )


def _of_library(entity: Entity, library: Library, name: Name) -> Any:
    staged = [f"staged:{item.tx}" in library.now for item in entity.ledger.kept]
    pages = (item.page for item in library.now.values() if isinstance(item, StoredPage))
    return entity.newest, staged, sorted((page.version, _known(page.marks, name)) for page in pages)


def _known(marks: str, name: Name) -> list[str]:
    return sorted(name(KEYS.get(hash, "released")) for hash in by_hash(marks))


def shown(companion: Companion, name: Name) -> tuple[Any, ...]:
    owed = companion.owed is None if isinstance(companion, ColocatedRecord) else None
    held = companion.held is None if isinstance(companion, NumberedMessage) else None
    return (name(str(companion.message)), owed, held)


def renamed(text: str, order: tuple[int, ...]) -> str:
    for number, other in enumerate(order):
        text = text.replace(f"m{number}", f"M{other}")
    return text.replace("M", "m")


@pytest.mark.parametrize("scenario", OUTBOX + COMPANIONS, ids=name_of)
def test_merging_situations_and_drafts_that_behave_alike_reaches_the_same_worlds(scenario: Scenario) -> None:
    merged, fewer = as_ships(scenario)
    apart, more = reachable(scenario, merge=False)
    assert merged == apart
    assert fewer <= more


@pytest.mark.parametrize("scenario", COMPANIONS, ids=name_of)
def test_distinct_attempts_reach_no_other_worlds(scenario: Scenario) -> None:
    together, fewer = as_ships(scenario)
    apart, more = reachable(replace(scenario, apart=True))
    assert together == apart
    assert fewer <= more


@pytest.mark.parametrize(
    ("reduction", "scenarios"),
    [
        *((item, COMPANIONS) for item in REDUCTIONS if item.startswith(OF_COMPANIONS)),
        *((item, (*OUTBOX, KEPT, FED)) for item in REDUCTIONS if item.startswith(OF_THE_OUTBOX)),
    ],
    ids=lambda item: item if isinstance(item, str) else item[0].name,
)
def test_without_a_reduction_the_same_worlds_are_reached_by_more_states(
    reduction: str, scenarios: tuple[Scenario, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = {scenario.name: as_ships(scenario) for scenario in scenarios}
    monkeypatch.setattr(*REDUCTIONS[reduction])
    full = {scenario.name: reachable(scenario) for scenario in scenarios}
    for name, (worlds, states) in full.items():
        assert worlds == reduced[name][0]
        assert states >= reduced[name][1] or scenarios is COMPANIONS
    assert sum(states for _, states in full.values()) > sum(states for _, states in reduced.values())
