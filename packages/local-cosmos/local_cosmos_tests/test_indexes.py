"""Queries that an index answers give what they give by looking at every item, whatever is written in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.requests import OperationKind
from local_cosmos.storage import memory
from local_cosmos.storage.items import Item, PropertyPath, Range
from local_cosmos.storage.keeper import Keeper
from local_cosmos.storage.memory import MemoryItemStore
from local_cosmos.values import parse_own
from local_cosmos_tests.accounts import LocalAccount

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 1.0, 2, 2.5, -3, 10**300),
    *("", "a", "ab", "b", "\ud800", "\ue000", "😀", [1], {"a": 1}),
)
KEYS = ("x", "y")

values = st.sampled_from(VALUES)
writes = st.tuples(
    st.sampled_from(("upsert", "upsert", "delete")), st.sampled_from(KEYS), st.sampled_from("abcdefgh"), values, values
)
conditions = st.sampled_from(
    (
        "c.v = @one",
        "@one = c.v",
        "c.v IN (@one, @other, 1)",
        "c.v BETWEEN @one AND @other",
        "c.v > @one",
        "@one >= c.v AND c.w = @other",
        "NOT c.v = @one",
        "c.v = @one OR c.w = @other",
        "STARTSWITH(c.v, 'a')",
        "c.v < @one AND c.v > @other",
        "c.id = 'a' AND c.v != @one",
        "c['v'] = @one AND ARRAY_LENGTH(c.w) = 1",
        "true",
    )
)
orders = st.sampled_from(("", "ORDER BY c.v", "ORDER BY c.v DESC", "ORDER BY c.id", "ORDER BY c.id DESC"))
queries = st.builds("SELECT {} * FROM c WHERE {} {}".format, st.sampled_from(("", "TOP 3")), conditions, orders)
steps = st.lists(
    writes | st.tuples(st.just("query"), st.sampled_from((None, *KEYS)), queries, values, values), max_size=40
)


@pytest.fixture(autouse=True)
def small_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FEW", 0)
    monkeypatch.setattr(memory, "_SPARED", 1)


class ScanningStore(MemoryItemStore):
    """Finds no index useful."""

    def is_small(self, low: str, high: str) -> bool:
        return True

    def most_selective(
        self, demands: Mapping[PropertyPath, Sequence[Range]], low: str, high: str
    ) -> PropertyPath | None:
        return None


class ScanningKeeper(Keeper):
    def items(self, container_rid: str) -> MemoryItemStore:
        return ScanningStore()


def opened(lag: int, keeper: Keeper | None = None) -> LocalAccount:
    account = LocalAccount(keeper=keeper)
    account.emulator.account.set_lag("d", None, Lag(lag, varying=True))
    return account


def perform(account: LocalAccount, step: tuple[OperationKind, str | None, str, Any, Any]) -> list[tuple[int, bytes]]:
    """A write, or all pages of a query."""
    kind, key, what, value, other = step
    if kind != "query":
        return [(account.ask(kind, {"id": what, "pk": key, "v": value, "w": other}, key, item=what).status, b"")]
    content = {"query": what, "parameters": [{"name": "@one", "value": value}, {"name": "@other", "value": other}]}
    return [(page.status, page.body) for page in account.pages(content, key, cross_partition=True, page_size=2)]


@settings(max_examples=300, deadline=None)
@given(steps, st.sampled_from((0, 3)))
def test_a_query_by_an_index_gives_what_a_scan_gives(story: list[Any], lag: int) -> None:
    indexed, scanning = opened(lag), opened(lag, ScanningKeeper())
    for step in story:
        assert perform(indexed, step) == perform(scanning, step)


@pytest.mark.simplified(
    service="indexes what the policy says from the beginning, here by the first query that has use for it"
)
def test_an_index_looks_at_few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    account = LocalAccount()
    for number in range(5000):
        key = str(number % 10)
        account.ask("create", {"id": str(number), "pk": key, "v": number % 500, "score": -number}, key)
    looked: list[str] = []

    def document(item: Item) -> Any:
        looked.append(item.id)
        return parse_own(item.raw)

    monkeypatch.setattr(Item, "document", property(document))
    for query, most in (
        ("SELECT * FROM c WHERE c.id = '7'", 1),
        ("SELECT * FROM c WHERE c.v = 7 AND c.score > -2500", 10),
        ("SELECT TOP 5 * FROM c ORDER BY c.score", 6),
    ):
        perform(account, ("query", None, query, 0, 0))  # Makes the index.
        looked.clear()
        perform(account, ("query", None, query, 0, 0))
        assert len(set(looked)) <= most, query


def test_lists_that_repeat_a_value_are_searched_for_it_once() -> None:
    account = LocalAccount()
    for number in range(9):
        perform(account, ("create", "x", str(number), number, 0))
    repeated = ", ".join(["7"] * 100)
    query = f"SELECT VALUE c.id FROM c WHERE c.v IN ({repeated}) AND c.v IN ({repeated})"  # noqa: S608  # Test data.
    ((status, body),) = perform(account, ("query", None, query, 0, 0))
    assert (status, b'["7"]' in body) == (200, True)
