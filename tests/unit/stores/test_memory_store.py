"""Trouble in the memory store: each fate of a write, views of the past, and writes that land later.

What it owes every caller without trouble is the contract suite's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce.effects import library
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.records.library import ParkedMessage, StagedOutputs
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.contracts.samples import AT, DAY, a_book, a_page
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

ENTITY = EntityRef("account", ("a",), "a")
BODY = Json.of({"id": "a", "owner": "a"})
PAGE = a_page(ENTITY)
STAGED = StagedOutputs(ENTITY.key, "web/m-1", "tx-1", AT, ())
PARKED = ParkedMessage(ENTITY.key, "web/m-1", "its handler raised ValueError", AT, Json.of({"id": "m-1"}))
WRITES: dict[str, Callable[[MemoryStore], Any]] = {
    "save_entity": lambda store: store.perform(SaveEntity(ENTITY, BODY, None)),
    "write_page": lambda store: store.perform(library.WritePage(ENTITY, PAGE, DAY)),
    "write_book": lambda store: store.perform(library.WriteBook(a_book("b-1"), DAY)),
    "stage": lambda store: store.perform(library.Stage(ENTITY, (STAGED,))),
    "park": lambda store: store.perform(library.Park(ENTITY, PARKED)),
    "save_batch": lambda store: store.perform(SaveBatch(ENTITY, BODY, None)),
}


class Scripted:
    """One fate for every write, one lag for every read."""

    def __init__(self, fate: Fate = Fate.ANSWERED, lag: int = 0) -> None:
        self.current, self.lag = fate, lag
        self.asked: list[str] = []

    def fate(self, operation: str) -> Fate:
        self.asked.append(operation)
        return self.current

    def replica(self, newest: int) -> int:
        return max(0, newest - self.lag)


def troubled(fate: Fate = Fate.ANSWERED, lag: int = 0) -> tuple[MemoryStore, Scripted]:
    trouble = Scripted(fate, lag)
    return MemoryStore(ManualClock(AT).now, trouble), trouble


def written(store: MemoryStore) -> int:
    return sum(len(entity.log) for entity in (*store.entities.values(), *store.library.values()))


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize(
    ("fate", "reply", "applied"),
    [(Fate.LOST_BEFORE, UNKNOWN, 0), (Fate.LOST_AFTER, UNKNOWN, 1), (Fate.DELAYED, UNKNOWN, 0), (Fate.BUSY, Busy(), 0)],
)
def test_an_unanswered_write_is_unknown_whether_applied_or_not(
    operation: str, fate: Fate, reply: Any, applied: int
) -> None:
    store, trouble = troubled(fate)
    assert WRITES[operation](store) == reply
    assert written(store) == applied
    assert trouble.asked == [operation]


@pytest.mark.parametrize(
    ("operation", "reply"),
    [
        ("save_entity", Conflict("0:-1#1")),
        ("save_batch", Conflict("0:-1#1")),
        ("stage", Conflict("0:-1#1")),
        ("write_page", library.Written("0:-1#1")),
        ("write_book", library.Written("0:-1#2")),
        ("park", library.Written("0:-1#2")),
    ],
)
def test_a_write_sent_twice_meets_itself(operation: str, reply: Any) -> None:
    store, _ = troubled(Fate.REPEATED)
    assert WRITES[operation](store) == reply


@pytest.mark.parametrize("operation", WRITES)
def test_a_delayed_write_lands_later_and_only_once(operation: str) -> None:
    store, _ = troubled(Fate.DELAYED)
    WRITES[operation](store)
    assert store.land_delayed() == 1
    assert written(store) == 1
    assert store.land_delayed() == 0


def test_a_delayed_save_lands_only_if_its_condition_still_holds() -> None:
    store, trouble = troubled(Fate.DELAYED)
    store.perform(SaveEntity(ENTITY, Json.of({"late": True}), None))
    trouble.current = Fate.ANSWERED
    assert isinstance(store.perform(SaveEntity(ENTITY, BODY, None)), Saved)
    store.land_delayed()
    loaded = store.perform(LoadEntity(ENTITY))
    assert isinstance(loaded, Loaded)
    assert loaded.document == BODY


def test_deleting_staged_documents_may_be_lost_without_anybody_knowing() -> None:
    store, trouble = troubled()
    store.perform(library.Stage(ENTITY, (STAGED,)))
    trouble.current = Fate.LOST_BEFORE
    store.perform(library.DeleteStaged(ENTITY, ("tx-1",)))
    assert store.perform(library.LoadStaged(ENTITY, ("tx-1",), None)) == library.FoundStaged((STAGED,))
    trouble.current = Fate.LOST_AFTER
    store.perform(library.DeleteStaged(ENTITY, ("tx-1",)))
    assert store.perform(library.LoadStaged(ENTITY, ("tx-1",), None)) == library.FoundStaged(())


def test_a_delayed_deletion_leaves_what_was_written_since() -> None:
    store, trouble = troubled()
    store.perform(library.WritePage(ENTITY, PAGE, DAY))
    store.perform(library.Park(ENTITY, PARKED))
    store.perform(library.DeletePages(ENTITY, ((1, '"1"'),)))
    trouble.current = Fate.DELAYED
    store.perform(library.DeletePages(ENTITY, ((1, '"1"'),)))
    store.perform(library.Unpark(ENTITY, "web/m-1", '"2"'))
    trouble.current = Fate.ANSWERED
    store.perform(library.WritePage(ENTITY, PAGE, DAY))
    store.perform(library.Park(ENTITY, PARKED))
    assert store.land_delayed() == 2
    assert store.perform(library.FindPagesAbove(ENTITY, 0, None)) == library.FoundAbove(((PAGE, '"4"'),))
    assert store.perform(library.LoadParked(ENTITY, "web/m-1")) == library.FoundParked(PARKED, '"5"', AT)


def test_a_delayed_page_leaves_another_one_that_was_written_since() -> None:
    store, trouble = troubled(Fate.DELAYED)
    store.perform(library.WritePage(ENTITY, PAGE, DAY))
    trouble.current = Fate.ANSWERED
    other = replace(PAGE, version=11)
    store.perform(library.WritePage(ENTITY, other, DAY))
    assert store.land_delayed() == 1
    assert store.perform(library.FindPages(ENTITY, (), (), 1, None)) == library.FoundPages((other,))
    assert store.perform(library.WritePage(ENTITY, PAGE, DAY)) is library.OTHER


def test_a_delayed_book_takes_back_what_was_proved_since() -> None:
    store, trouble = troubled(Fate.DELAYED)
    store.perform(library.WriteBook(a_book("b-1", 1), DAY))
    trouble.current = Fate.ANSWERED
    store.perform(library.WriteBook(a_book("b-1", 2), DAY))
    assert store.perform(library.ReadBooks(("b-1",))) == library.FoundBooks((a_book("b-1", 2),))
    store.land_delayed()
    assert store.perform(library.ReadBooks(("b-1",))) == library.FoundBooks((a_book("b-1", 1),))


def test_a_parked_message_comes_with_the_present_of_the_servers_clock() -> None:
    clock = ManualClock(AT)
    store = MemoryStore(clock.now)
    store.perform(library.Park(ENTITY, PARKED))
    clock.advance(90)
    assert store.perform(library.LoadParked(ENTITY, "web/m-1")) == library.FoundParked(
        PARKED, '"1"', AT + timedelta(seconds=90)
    )


def two_versions(lag: int) -> MemoryStore:
    store, trouble = troubled()
    first = store.perform(SaveEntity(ENTITY, Json.of({"n": 1}), None))
    assert isinstance(first, Saved)
    store.perform(SaveEntity(ENTITY, Json.of({"n": 2}), first.etag))
    trouble.lag = lag
    return store


@pytest.mark.parametrize(("lag", "document"), [(0, Json.of({"n": 2})), (1, Json.of({"n": 1})), (2, None), (9, None)])
def test_a_replica_that_lags_shows_the_past_or_nothing(lag: int, document: Json | None) -> None:
    loaded = two_versions(lag).perform(LoadEntity(ENTITY))
    assert isinstance(loaded, Loaded)
    assert loaded.document == document
    assert loaded.token == f"0:-1#{max(0, 2 - lag)}"
    for token in range(3):
        at_token = two_versions(lag).perform(LoadEntity(ENTITY, f"0:-1#{token}"))
        assert (at_token is BEHIND) is (token > max(0, 2 - lag))


def test_the_librarys_documents_are_read_at_their_token_too() -> None:
    store, trouble = troubled()
    store.perform(library.WritePage(ENTITY, PAGE, DAY))
    store.perform(library.Stage(ENTITY, (STAGED,)))
    store.perform(library.Park(ENTITY, PARKED))
    trouble.lag = 1
    assert store.perform(library.LoadParked(ENTITY, "web/m-1", "0:-1#3")) is BEHIND
    assert store.perform(library.LoadParked(ENTITY, "web/m-1")) == library.FoundParked(None, None, None)
    trouble.lag = 3
    assert store.perform(library.FindPages(ENTITY, (10_000,), (), 1, "0:-1#1")) is BEHIND
    assert store.perform(library.FindPagesAbove(ENTITY, 0, "0:-1#1")) is BEHIND
    assert store.perform(library.FindBlobs(ENTITY, ("5f",), "0:-1#1")) is BEHIND
    assert store.perform(library.LoadStaged(ENTITY, ("tx-1",), "0:-1#1")) is BEHIND
    assert store.perform(library.HasPages(ENTITY, "0:-1#1")) is BEHIND
    assert store.perform(library.HasPages(ENTITY)) is False
    trouble.lag = 2
    assert store.perform(library.HasPages(ENTITY, "0:-1#1")) is True
    assert store.perform(library.FindPages(ENTITY, (10_000,), (), 1, "0:-1#1")) == library.FoundPages((PAGE,))


def test_books_are_read_in_whatever_view_answers() -> None:
    store, trouble = troubled()
    for used in (1, 2):
        store.perform(library.WriteBook(a_book("b-1", used), DAY))
    trouble.lag = 1
    assert store.perform(library.ReadBooks(("b-1", "b-2"))) == library.FoundBooks((a_book("b-1", 1),))


def test_a_save_from_a_stale_view_conflicts() -> None:
    store = two_versions(lag=1)
    stale = store.perform(LoadEntity(ENTITY))
    assert isinstance(stale, Loaded)
    assert store.perform(SaveEntity(ENTITY, BODY, stale.etag)) == Conflict("0:-1#2")
