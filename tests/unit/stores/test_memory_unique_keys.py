"""Unique keys in the memory store, in trouble: a refusal may be lost like any other reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.contracts.samples import AT
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.unit.stores.test_memory_store import Scripted

ANN, BOB = (EntityRef("person", ("acme",), id) for id in ("ann", "bob"))
KEYS = {"person": [["/name/last", "/n"]]}

Save = Callable[[MemoryStore, EntityRef, object], Any]


def document(entity: EntityRef, number: object) -> Json:
    return Json.of({"id": entity.id, "company": "acme", "name": {"last": "Ash"}, "n": number})


def alone(store: MemoryStore, entity: EntityRef, number: object) -> Any:
    return store.perform(SaveEntity(entity, document(entity, number), None))


def in_a_batch(store: MemoryStore, entity: EntityRef, number: object) -> Any:
    return store.perform(SaveBatch(entity, document(entity, number), None))


saving = pytest.mark.parametrize("saving", [alone, in_a_batch], ids=["alone", "in a batch"])


@pytest.fixture
def trouble() -> Scripted:
    return Scripted()


@pytest.fixture
def store(trouble: Scripted) -> MemoryStore:
    """Ann has the number one."""
    found = MemoryStore(ManualClock(AT).now, trouble, KEYS)
    assert isinstance(alone(found, ANN, 1), Saved)
    return found


def written(store: MemoryStore) -> int:
    return len(store.entities["person", "acme"].log)


@saving
@pytest.mark.parametrize("fate", [Fate.ANSWERED, Fate.REPEATED])
def test_a_taken_key_is_refused_however_often_the_save_is_sent(
    store: MemoryStore, trouble: Scripted, saving: Save, fate: Fate
) -> None:
    trouble.current = fate
    with pytest.raises(UniqueKeyTaken, match="bob"):
        saving(store, BOB, 1)
    assert written(store) == 1


@saving
@pytest.mark.parametrize("fate", [Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.DELAYED])
def test_a_refusal_that_is_lost_is_unknown(store: MemoryStore, trouble: Scripted, saving: Save, fate: Fate) -> None:
    trouble.current = fate
    assert saving(store, BOB, 1) is UNKNOWN
    store.land_delayed()
    assert written(store) == 1


@saving
def test_a_late_write_lands_if_the_key_is_free_by_then(store: MemoryStore, trouble: Scripted, saving: Save) -> None:
    trouble.current = Fate.DELAYED
    assert saving(store, BOB, 1) is UNKNOWN
    trouble.current = Fate.ANSWERED
    newest = store.entities["person", "acme"].newest("ann")
    assert newest is not None
    store.perform(SaveEntity(ANN, document(ANN, 3), newest.etag))
    assert store.land_delayed() == 1
    assert written(store) == 3


@saving
def test_a_save_that_is_sent_twice_meets_itself_and_not_its_key(
    store: MemoryStore, trouble: Scripted, saving: Save
) -> None:
    trouble.current = Fate.REPEATED
    assert isinstance(saving(store, BOB, 2), Conflict)
    trouble.current = Fate.BUSY
    assert saving(store, BOB, 1) == Busy()


@pytest.mark.parametrize(("number", "taken"), [(1.0, True), ("1", False), (True, False), (None, False)])
def test_numbers_are_compared_as_numbers_and_kinds_are_kept_apart(
    store: MemoryStore,
    number: object,
    taken: bool,
) -> None:
    if taken:
        with pytest.raises(UniqueKeyTaken):
            alone(store, BOB, number)
    else:
        assert isinstance(alone(store, BOB, number), Saved)


def test_other_entity_types_have_no_such_keys(store: MemoryStore) -> None:
    assert isinstance(alone(store, EntityRef("place", ("acme",), "bob"), 1), Saved)
