"""Trouble in the memory store with companions: a batch is one write, under every fault and for every reader."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved
from exactlyonce.records.companions import id_of
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.contracts.samples import a_colocated, an_entry
from tests.unit.stores.test_memory_store import BODY, ENTITY, Scripted, troubled, written

OWING = a_colocated(ENTITY, "web/m-1", owes=True)
SETTLED = a_colocated(ENTITY, "web/m-1")
ENTRY = an_entry(ENTITY, 1, "web/m-1")


def with_companions() -> tuple[MemoryStore, Scripted]:
    """A store in which an entity was saved together with two companions, as its first three writes."""
    store, trouble = troubled()
    assert store.perform(SaveBatch(ENTITY, BODY, None, (OWING, ENTRY))) == Saved('"1"', "0:-1#3")
    return store, trouble


def companions_of(store: MemoryStore, *companions: Any, token: str | None = None) -> Any:
    return store.perform(LoadCompanions(ENTITY, tuple(id_of(ENTITY, companion) for companion in companions), token))


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_replica_has_all_of_a_batch_or_nothing(lag: int) -> None:
    store, trouble = with_companions()
    trouble.lag = lag
    assert store.perform(LoadEntity(ENTITY)) == Loaded(None, None, 0, "0:-1#0")
    assert companions_of(store, OWING, ENTRY) == FoundCompanions(())
    assert store.perform(FindEntries(ENTITY, ((1, 1),), None)) == FoundCompanions(())
    assert store.perform(FindOwing(ENTITY)) == FoundCompanions(())
    assert store.perform(HasCompanions(ENTITY)) is False


def test_a_batch_follows_what_was_there_before() -> None:
    store, trouble = with_companions()
    store.perform(SaveBatch(ENTITY, BODY, '"1"', (an_entry(ENTITY, 2),), replace=((SETTLED, '"2"'),)))
    for lag in (1, 2, 3):
        trouble.lag = lag
        assert store.perform(FindOwing(ENTITY)) == FoundCompanions(((OWING, '"2"'),))
    trouble.lag = 0
    assert store.perform(FindOwing(ENTITY)) == FoundCompanions(())


def test_companions_are_read_at_the_token_of_their_entity() -> None:
    store, trouble = with_companions()
    trouble.lag = 1
    assert companions_of(store, OWING, token="0:-1#3") is BEHIND
    assert store.perform(FindEntries(ENTITY, ((1, 1),), "0:-1#3")) is BEHIND
    assert store.perform(FindNumbered(ENTITY, "c1", (1, 9), "0:-1#3")) is BEHIND
    trouble.lag = 0
    assert companions_of(store, OWING, token="0:-1#3") == FoundCompanions(((OWING, '"2"'),))
    assert store.perform(FindEntries(ENTITY, ((1, 1),), "0:-1#3")) == FoundCompanions(((ENTRY, '"3"'),))


@pytest.mark.parametrize(
    ("fate", "reply", "found"),
    [
        (Fate.LOST_BEFORE, UNKNOWN, ()),
        (Fate.LOST_AFTER, UNKNOWN, ((OWING, '"2"'), (ENTRY, '"3"'))),
        (Fate.REPEATED, Conflict("0:-1#3"), ((OWING, '"2"'), (ENTRY, '"3"'))),
    ],
)
def test_trouble_meets_a_batch_as_a_whole(fate: Fate, reply: Any, found: Any) -> None:
    store, trouble = troubled(fate)
    assert store.perform(SaveBatch(ENTITY, BODY, None, (OWING, ENTRY))) == reply
    assert trouble.asked == ["save_batch"]
    assert companions_of(store, OWING, ENTRY) == FoundCompanions(found)


def test_a_delayed_batch_lands_only_if_all_its_conditions_still_hold() -> None:
    store, trouble = with_companions()
    trouble.current = Fate.DELAYED
    store.perform(SaveBatch(ENTITY, BODY, '"1"', (an_entry(ENTITY, 2),), replace=((SETTLED, '"2"'),)))
    trouble.current = Fate.ANSWERED
    store.perform(ReplaceCompanions(ENTITY, ((OWING, None),)))
    before = written(store)
    assert store.land_delayed() == 1
    assert written(store) == before


def test_replacing_and_deleting_companions_may_be_lost_without_anybody_knowing() -> None:
    store, trouble = with_companions()
    trouble.current = Fate.LOST_BEFORE
    store.perform(ReplaceCompanions(ENTITY, ((SETTLED, '"2"'),)))
    store.perform(DeleteCompanions(ENTITY, ((id_of(ENTITY, ENTRY), '"3"'),)))
    assert companions_of(store, OWING, ENTRY) == FoundCompanions(((OWING, '"2"'), (ENTRY, '"3"')))
    trouble.current = Fate.LOST_AFTER
    store.perform(ReplaceCompanions(ENTITY, ((SETTLED, '"2"'),)))
    store.perform(DeleteCompanions(ENTITY, ((id_of(ENTITY, ENTRY), '"3"'),)))
    assert companions_of(store, OWING, ENTRY) == FoundCompanions(((SETTLED, '"4"'),))
    assert trouble.asked[-2:] == ["replace_companions", "delete_companions"]
