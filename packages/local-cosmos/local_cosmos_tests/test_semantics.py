"""Any sequence of operations, checked against a dictionary; and the history, replayed, against the container."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from local_cosmos.semantics.account import Account, AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.history import History
from local_cosmos.semantics.requests import Reply, Request

ABSENT, STALE, CURRENT = "absent", "stale", "current"

steps = st.tuples(
    st.sampled_from(["create", "replace", "upsert", "delete"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([ABSENT, STALE, CURRENT]),
    st.integers(0, 9),
)


@dataclass
class Model:
    """Values and ETags by id, and the documented table of conditions written down once more."""

    values: dict[str, int] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)

    def expect(self, operation: str, item: str, condition: str, value: int) -> int:
        """The status of an operation; applies it."""
        exists = item in self.values
        if operation == "create" and exists:
            return 409
        if operation in {"replace", "delete"} and not exists:
            return 404
        if operation != "create" and exists and condition == STALE:
            return 412
        if operation == "delete":
            del self.values[item]
            return 204
        self.values[item] = value
        return 200 if exists else 201


class Driver:
    """Sends operations to a container of one account."""

    def __init__(self) -> None:
        self.history = History(kept=True)
        self.account = Account(AccountSettings(), Clock(lambda: 1000.0), self.history)
        self.execute("create_database", body={"id": "d"})
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        self.execute("create_container", body={"id": "c", "partitionKey": key})

    def execute(self, operation: Any, body: Any = None, **fields: Any) -> Reply:
        request = Request(operation, "d", "c", body=json.dumps(body).encode(), partition_key='["p"]', **fields)
        return self.account.execute(request)

    def contents(self) -> dict[str, dict[str, Any]]:
        reply = self.execute("query", {"query": "SELECT * FROM c"})
        return {document["id"]: document for document in json.loads(reply.body)["Documents"]}


def etag(model: Model, item: str, condition: str) -> str | None:
    current = model.etags.get(item, '"none"')
    return {ABSENT: None, STALE: '"stale"', CURRENT: current}[condition]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(steps, st.lists(steps, min_size=1, max_size=4)), max_size=12))
def test_every_sequence_of_operations_and_batches_does_what_the_table_says(sequence: list[Any]) -> None:
    driver, model = Driver(), Model()
    for step in sequence:
        if isinstance(step, tuple):
            single(driver, model, step)
        else:
            batch(driver, model, step)
        contents = driver.contents()
        assert {item: document["n"] for item, document in contents.items()} == model.values
        model.etags = {item: document["_etag"] for item, document in contents.items()}
    replayed: dict[str, Any] = {}
    for write in driver.history.read():
        if write.document is None:
            del replayed[write.id]
        else:
            replayed[write.id] = write.document
    assert replayed == driver.contents()


def single(driver: Driver, model: Model, step: tuple[str, str, str, int]) -> None:
    operation, item, condition, value = step
    reply = driver.execute(
        operation,
        {"id": item, "pk": "p", "n": value},
        item=item if operation in {"replace", "delete"} else "",
        if_match=etag(model, item, condition),
    )
    expected = model.expect(*step)
    assert reply.status == expected
    assert reply.applied is (expected < 300)


def batch(driver: Driver, model: Model, batched: list[tuple[str, str, str, int]]) -> None:
    body = [
        {"operationType": operation.title(), "id": item, "resourceBody": {"id": item, "pk": "p", "n": value}}
        | ({"ifMatch": match} if (match := etag(model, item, condition)) else {})
        for operation, item, condition, value in batched
    ]
    statuses = [entry["statusCode"] for entry in json.loads(driver.execute("batch", body).body)]
    tentative = Model(dict(model.values))
    expected = []
    touched: set[str] = set()
    for operation, item, condition, value in batched:
        # An ETag from before the batch is stale once the batch itself has written the item.
        now = STALE if condition == CURRENT and item in touched else condition
        expected.append(tentative.expect(operation, item, now, value))
        touched.add(item)
        if expected[-1] >= 400:
            expected = [424] * (len(expected) - 1) + [expected[-1]] + [424] * (len(batched) - len(expected))
            break
    else:
        model.values = tentative.values
    assert statuses == expected
