"""Random queries over random items have the answer of a naive evaluator, in one partition and in several, page by page.

The suite asks some hundreds; `LOCAL_COSMOS_FUZZ=100000` as many as that, each time others.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from local_cosmos.query.parser import parse_query
from local_cosmos.query.printing import text
from local_cosmos.storage import memory
from local_cosmos.values import parse
from local_cosmos_tests import naive_queries, naive_values
from local_cosmos_tests.accounts import LocalAccount
from local_cosmos_tests.naive_queries import AskedQuery

EXAMPLES = int(os.environ.get("LOCAL_COSMOS_FUZZ", "0"))


@pytest.fixture(autouse=True)
def small_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FEW", 0)
    monkeypatch.setattr(memory, "_SPARED", 1)


def filled(items: list[dict[str, Any]], partitions: int) -> LocalAccount:
    account = LocalAccount(partitions)
    for item in items:
        assert account.ask("create", item, item["pk"]).status == 201
    return account


def answer(account: LocalAccount, query: str, **more: Any) -> list[Any]:
    """The results on all pages."""
    replies = account.pages({"query": query}, **more)
    assert replies[-1].status == 200, replies[-1].body
    return [row for reply in replies for row in parse(reply.body)["Documents"]]


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
    whole = filled(items, partitions=1)
    parted = filled([{**item, "pk": str(number)} for number, item in enumerate(items)], partitions=3)
    for query in asked:
        note(query.text)
        tree = parse_query(query.text)
        assert parse_query(text(tree)) == tree
        expected = query.answer(items)
        results = answer(whole, query.text, key="p", page_size=page_size)
        assert naive_values.same(results, expected), f"{results} instead of {expected}"
        if query.can_be_parted:
            results = answer(parted, query.text, page_size=page_size, cross_partition=True)
            assert len(results) == len(expected)
            assert all(naive_values.is_in(entry, results) for entry in expected), f"{results} instead of {expected}"
