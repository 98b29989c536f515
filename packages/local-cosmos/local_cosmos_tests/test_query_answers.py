"""Random queries over random items have the answer of a naive evaluator, in one partition and in several, page by page.

The suite asks some hundreds; `LOCAL_COSMOS_FUZZ=100000` as many as that, each time others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from local_cosmos.query.parser import parse_query
from local_cosmos.query.printing import text
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.requests import OperationKind, Reply, Request
from local_cosmos.storage import memory
from local_cosmos.values import parse, serialise
from local_cosmos_tests import naive_queries, naive_values
from local_cosmos_tests.naive_queries import AskedQuery

EXAMPLES = int(os.environ.get("LOCAL_COSMOS_FUZZ", "0"))
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


class Account:
    """An account with one container.

    Args:
        partitions: Physical ones.
    """

    def __init__(self, items: Sequence[dict[str, Any]], partitions: int) -> None:
        settings = AccountSettings(partitions=partitions)
        self._emulator = Emulator(settings, Clock(lambda: 1000.0), lambda: 0.0, observed=False)
        self._ask("create_database", {"id": "d"})
        self._ask("create_container", {"id": "c", "partitionKey": KEY})
        for item in items:
            self._ask("create", item, partition_key=serialise([item["pk"]]).decode())

    def answer(self, query: str, page_size: int, **said: Any) -> list[Any]:
        """The results on all pages."""
        results: list[Any] = []
        continuation = None
        while True:
            reply = self._ask("query", {"query": query}, page_size=page_size, continuation=continuation, **said)
            results += parse(reply.body)["Documents"]
            continuation = reply.continuation
            if continuation is None:
                return results

    def _ask(self, operation: OperationKind, content: object, **said: Any) -> Reply:
        reply = self._emulator.serve(Request(operation, "d", "c", body=serialise(content), **said), 0.0).reply
        assert reply.status in (200, 201), reply.body
        return reply


@pytest.fixture(autouse=True)
def small_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FEW", 0)
    monkeypatch.setattr(memory, "_SPARED", 1)


@settings(
    max_examples=EXAMPLES or 400,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(naive_queries.collections(), st.lists(naive_queries.queries(), min_size=1, max_size=3), st.integers(1, 4))
def test_a_query_has_the_answer_of_the_naive_evaluator(
    items: list[dict[str, Any]], asked: list[AskedQuery], page_size: int
) -> None:
    whole = Account(items, partitions=1)
    parted = Account([{**item, "pk": str(number)} for number, item in enumerate(items)], partitions=3)
    for query in asked:
        note(query.text)
        tree = parse_query(query.text)
        assert parse_query(text(tree)) == tree
        expected = query.answer(items)
        found = whole.answer(query.text, page_size, partition_key='["p"]')
        assert naive_values.same(found, expected), f"{found} instead of {expected}"
        if query.can_be_parted:
            found = parted.answer(query.text, page_size, cross_partition=True)
            assert len(found) == len(expected)
            assert all(naive_values.is_in(entry, found) for entry in expected), f"{found} instead of {expected}"
