"""Queries that an index answers give what they give by looking at every item, whatever is written in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.requests import OperationKind, Reply, Request
from local_cosmos.storage import memory
from local_cosmos.storage.items import Item, ItemStore, PropertyPath, Range
from local_cosmos.storage.keeper import Keeper, MemoryKeeper
from local_cosmos.storage.memory import MemoryItemStore
from local_cosmos.values import parse_own, serialise

CONTAINER = {"id": "items", "partitionKey": {"paths": ["/key"], "kind": "Hash", "version": 2}}
VALUES = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    2,
    2.5,
    -3,
    10**300,
    "",
    "a",
    "ab",
    "b",
    "\ud800",
    "\ue000",
    "😀",
    [1],
    {"a": 1},
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
        self,
        demands: Mapping[PropertyPath, Sequence[Range]],
        low: str,
        high: str,
    ) -> PropertyPath | None:
        return None


class ScanningKeeper(MemoryKeeper):
    def items(self, container_rid: str) -> ItemStore:
        return ScanningStore()


class Account:
    """An account with one container."""

    def __init__(self, lag: int, keeper: Keeper | None = None) -> None:
        self._emulator = Emulator(AccountSettings(), Clock(lambda: 0.0), lambda: 0.0, keeper=keeper or MemoryKeeper())
        self._emulator.account.set_lag("shop", None, Lag(lag, varying=True))
        self.ask("create_database", {"id": "shop"}, database="")
        self.ask("create_container", CONTAINER, container="")

    def ask(self, operation: OperationKind, content: Any, **said: Any) -> Reply:
        said = {"database": "shop", "container": "items", **said}
        return self._emulator.serve(Request(operation, body=serialise(content), **said), 0.0).reply

    def step(self, kind: str, key: str | None, what: str, value: Any, other: Any) -> list[tuple[int, bytes]]:
        """A write, or all pages of a query."""
        key_text = None if key is None else serialise([key]).decode()
        if kind != "query":
            item = {"id": what, "key": key, "v": value, "w": other}
            operation: OperationKind = "delete" if kind == "delete" else "upsert"
            return [(self.ask(operation, item, item=what, partition_key=key_text).status, b"")]
        parameters = [{"name": "@one", "value": value}, {"name": "@other", "value": other}]
        content = {"query": what, "parameters": parameters}
        said = {"partition_key": key_text, "cross_partition": True, "page_size": 2}
        replies = [self.ask("query", content, **said)]
        while replies[-1].continuation is not None:
            replies.append(self.ask("query", content, continuation=replies[-1].continuation, **said))
        return [(reply.status, reply.body) for reply in replies]


@settings(max_examples=300, deadline=None)
@given(steps, st.sampled_from((0, 3)))
def test_a_query_by_an_index_gives_what_a_scan_gives(story: list[Any], lag: int) -> None:
    indexed, scanning = Account(lag), Account(lag, ScanningKeeper())
    for step in story:
        assert indexed.step(*step) == scanning.step(*step)


@pytest.mark.simplified(
    service="indexes what the policy says from the beginning, here by the first query that has use for it"
)
def test_an_index_looks_at_few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    account = Account(0)
    for number in range(5000):
        item = {"id": str(number), "key": number % 10, "v": number % 500, "score": -number}
        account.ask("create", item, partition_key=f"[{number % 10}]")
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
        account.step("query", None, query, 0, 0)  # Makes the index.
        looked.clear()
        account.step("query", None, query, 0, 0)
        assert len(set(looked)) <= most, query


def test_lists_that_repeat_a_value_are_searched_for_it_once() -> None:
    account = Account(0)
    for number in range(9):
        account.ask("create", {"id": str(number), "key": "x", "v": number}, partition_key='["x"]')
    repeated = ", ".join(["7"] * 100)
    query = f"SELECT VALUE c.id FROM c WHERE c.v IN ({repeated}) AND c.v IN ({repeated})"  # noqa: S608  # Test data.
    ((status, body),) = account.step("query", None, query, 0, 0)
    assert (status, b'["7"]' in body) == (200, True)
