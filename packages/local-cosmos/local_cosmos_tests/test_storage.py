"""The store's versions, checked against the simplest thing that could be right: a copy of everything at every commit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cosmos.storage.items import Item, ItemKey
from local_cosmos.storage.memory import MemoryItemStore

KEYS = ["10", "20", "30"]
IDS = ["a", "b"]


@dataclass(frozen=True)
class Commit:
    """What one commit does to one partition key: for each id, True writes it and False deletes it."""

    key: str
    writes: dict[str, bool]


commits = st.lists(
    st.builds(Commit, st.sampled_from(KEYS), st.dictionaries(st.sampled_from(IDS), st.booleans(), min_size=1)),
    max_size=25,
)


def version(item_id: str, ordinal: int) -> Item:
    return Item(item_id, b"", f'"{ordinal}"', 0, ordinal, None)


def contents(store: MemoryItemStore, lsn: int) -> list[tuple[str, Item]]:
    return list(store.scan("", "FF", lsn))


@settings(max_examples=150, deadline=None)
@given(commits, st.integers(0, 4))
def test_every_version_since_the_horizon_can_be_read(history: list[Commit], lag: int) -> None:
    store = MemoryItemStore()
    ordinals = count()
    copies: list[dict[ItemKey, Item]] = [{}]
    for lsn, commit in enumerate(history, start=1):
        changes = {i: version(i, next(ordinals)) if written else None for i, written in commit.writes.items()}
        store.commit(commit.key, changes, lsn, horizon=lsn - lag)
        copy = dict(copies[-1])
        for item_id, item in changes.items():
            copy.pop((commit.key, item_id), None)
            if item is not None:
                copy[commit.key, item_id] = item
        copies.append(copy)
    newest = len(history)
    for lsn in range(max(0, newest - lag), newest + 1):
        expected = [(key, item) for (key, _), item in copies[lsn].items()]
        assert contents(store, lsn) == sorted(expected, key=lambda row: (row[0], row[1].ordinal))
        for place in product(KEYS, IDS):
            assert store.find(place, lsn) == copies[lsn].get(place)
    assert contents(store, newest) == list(store.scan("", "FF"))


@settings(max_examples=150, deadline=None)
@given(commits, st.integers(0, 4), st.integers(0, 25))
def test_a_feed_has_what_was_written_since_whenever_it_was_read_before(
    history: list[Commit], lag: int, first_read: int
) -> None:
    store = MemoryItemStore()
    ordinals = count()
    newest: list[dict[ItemKey, int]] = [{}]
    for lsn, commit in enumerate(history, start=1):
        changes = {i: version(i, next(ordinals)) if written else None for i, written in commit.writes.items()}
        store.commit(commit.key, changes, lsn, horizon=lsn - lag)
        left = {place: at for place, at in newest[-1].items() if place not in {(commit.key, i) for i in changes}}
        newest.append(left | {(commit.key, i): lsn for i, item in changes.items() if item is not None})
        if lsn >= first_read:
            for seen, after in product(range(max(0, lsn - lag), lsn + 1), range(lsn + 1)):
                found = [(at, item.id) for at, item in store.changes("", "FF", after, seen)]
                expected = [(at, item_id) for (_, item_id), at in newest[seen].items() if at > after]
                assert [at for at, _ in found] == sorted(at for at, _ in expected)
                assert sorted(found) == sorted(expected)


def test_the_log_of_a_feed_does_not_grow_with_every_write() -> None:
    store = MemoryItemStore()
    for lsn in range(1, 10_000):
        store.commit("10", {"a": version("a", lsn)}, lsn, horizon=lsn)
        assert [at for at, _ in store.changes("", "FF", lsn - 1, lsn)] == [lsn]
    assert sum(len(log.lsns) for log in store._logs._logs.values()) <= 1_000


@pytest.mark.simplified(service="does not say how long it keeps old versions")
def test_what_no_reader_can_ask_for_is_forgotten() -> None:
    store = MemoryItemStore()
    for lsn in range(1, 100):
        store.commit("10", {"a": version("a", lsn)}, lsn, horizon=lsn)
    store.commit("10", {"a": None}, 100, horizon=100)
    assert not store._by_key
    assert not store._ordered_keys
    assert not store._superseded
