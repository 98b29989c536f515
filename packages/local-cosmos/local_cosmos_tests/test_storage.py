"""The store's versions, checked against the simplest thing that could be right: a copy of everything at every commit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product

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


def test_what_no_reader_can_ask_for_is_forgotten() -> None:
    store = MemoryItemStore()
    for lsn in range(1, 100):
        store.commit("10", {"a": version("a", lsn)}, lsn, horizon=lsn)
    store.commit("10", {"a": None}, 100, horizon=100)
    assert not store._by_key
    assert not store._ordered_keys
    assert not store._superseded
