"""Any sequence of operations through the SDK does what the reference model does.

Splits and clock moves come in between. `LOCAL_COSMOS_RUNS=1000` plays more than the suite has time for, each time others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.clock import Clock
from local_cosmos_tests.reference_model import Document, Key, Model, Operation, is_number

RUNS = int(os.environ.get("LOCAL_COSMOS_RUNS", "0"))
MOST_RANGES = 6

keys: st.SearchStrategy[Key] = st.sampled_from(["p", "q", 7])
ids = st.sampled_from(["a", "b", "c é"])
conditions: Any = st.sampled_from(["none", "none", "current", "stale", "any"])
values: st.SearchStrategy[Any] = st.sampled_from([0, 1, 2, -3, 2.5, "text", True, None, [1]])
contents = st.fixed_dictionaries({"n": values}, optional={"ttl": st.sampled_from([5, 10, -1])})
changes = st.lists(
    st.builds(
        lambda op, path, value: {"op": op, "path": path} | ({} if op == "remove" else {"value": value}),
        st.sampled_from(["set", "add", "replace", "remove", "incr"]),
        st.sampled_from(["/n", "/m"]),
        st.integers(-3, 3),
    ),
    min_size=1,
    max_size=2,
)
patches = st.fixed_dictionaries({"operations": changes}, optional={"above": st.integers(-1, 2)})
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Operation, st.sampled_from(["create", "upsert", "replace"]), ids, contents, conditions),
    st.builds(Operation, st.just("patch"), ids, patches, conditions),
    st.builds(Operation, st.sampled_from(["read", "delete"]), ids, st.just({}), conditions),
)


class Comparison(RuleBasedStateMachine):
    """Does everything twice: in a container of its own, perhaps with a unique key, and in the model."""

    def __init__(self, emulator: RunningEmulator, client: CosmosClient, number: int, unique: str | None) -> None:
        super().__init__()
        self.emulator = emulator
        self.database, self.name = f"d{number}-{unique}", "items"
        database = client.create_database(self.database)
        policy: Any = {"uniqueKeys": [{"paths": [f"/{unique}"]}]} if unique else None
        self.container = database.create_container(
            self.name, PartitionKey("/pk"), default_ttl=-1, offer_throughput=20_000, unique_key_policy=policy
        )
        # Of containers in which a client wrote before it read, the SDK mixes the session tokens.
        _outcome(lambda: self.container.read_item("-", "-"))
        self.ranges = ["0", "1"]
        self.model = Model(int(emulator.now()), unique)

    @rule(key=keys, operation=operations)
    def perform(self, key: Key, operation: Operation) -> None:
        completed = self._completed(key, operation)
        etag = self._etag(key, completed)
        status, document = _outcome(lambda: _send(self.container, key, completed, etag))
        expected = self.model.perform(key, completed)
        assert status == (expected if expected >= 400 else 0)
        self._compare(key, operation.id, document)

    @rule(key=keys, batch=st.lists(operations, min_size=1, max_size=4))
    def perform_batch(self, key: Key, batch: list[Operation]) -> None:
        completed = [self._completed(key, operation) for operation in batch]
        sent = [_batched(operation, self._etag(key, operation)) for operation in completed]
        try:
            results = self.container.execute_item_batch(sent, key)
        except CosmosBatchOperationError as failure:
            results = failure.operation_responses
        assert [result["statusCode"] for result in results] == self.model.batch(key, completed)
        last = {operation.id: result for operation, result in zip(batch, results, strict=True)}
        for item, result in last.items():
            self._compare(key, item, result.get("resourceBody"))

    @rule(key=keys | st.just(...), bound=st.integers(-3, 3), page=st.sampled_from([1, 2, 100]))
    def query(self, key: Any, bound: int, page: int) -> None:
        where = "SELECT * FROM c WHERE c.n >= @bound"
        found = self._query(where, key, page, bound)
        expected = self.model.documents(lambda d: is_number(d.get("n")) and d["n"] >= bound, key)
        assert _sorted(map(_own, found)) == _sorted(expected)

    @rule(key=keys | st.just(...), page=st.sampled_from([1, 2, 100]))
    def query_in_order(self, key: Any, page: int) -> None:
        found = self._query("SELECT c.pk, c.id, c.n FROM c WHERE IS_NUMBER(c.n) ORDER BY c.n DESC", key, page)
        expected = self.model.documents(lambda d: is_number(d.get("n")), key)
        assert [item["n"] for item in found] == sorted((d["n"] for d in expected), reverse=True)
        assert _sorted(found) == _sorted({name: d[name] for name in ("pk", "id", "n")} for d in expected)

    @rule(key=keys | st.just(...))
    def count(self, key: Any) -> None:
        assert self._query("SELECT VALUE COUNT(1) FROM c", key, 100) == [len(self.model.documents(key=key))]

    @rule(seconds=st.sampled_from([1, 5, 5, 10]))
    def move_the_clock(self, seconds: int) -> None:
        self.model.now = int(self.emulator.advance_clock(seconds))

    @rule(chosen=st.integers(0, MOST_RANGES))
    def split(self, chosen: int) -> None:
        if len(self.ranges) < MOST_RANGES:
            gone = self.ranges.pop(chosen % len(self.ranges))
            self.ranges += self.emulator.split(self.database, self.name, gone)

    def teardown(self) -> None:
        # The SDK ends its round before the parts of a range that it finds split under way.
        list(self.container.read_feed_ranges(force_refresh=True))
        changed = self.container.query_items_change_feed(start_time="Beginning")
        assert _sorted(_own(item) for item in changed) == _sorted(self.model.documents())
        replayed = {(write.partition_key, write.id): write.document for write in self.emulator.history(self.database)}
        stored = [_own(document) for document in replayed.values() if document is not None]
        assert _sorted(stored) == _sorted(entry.document for entry in self.model.entries.values())

    def _completed(self, key: Key, operation: Operation) -> Operation:
        """A write's document gets its id and partition key; replacing what is not there needs no ETag."""
        if operation.name not in {"create", "upsert", "replace"}:
            return operation
        content = {"id": operation.id, "pk": key, **operation.content}
        return Operation(operation.name, operation.id, content, operation.condition)

    def _etag(self, key: Key, operation: Operation) -> str | None:
        entry = self.model.visible(key, operation.id)
        current = entry.etag if entry else '"gone"'
        return {"none": None, "current": current, "stale": '"stale"', "any": "*"}[operation.condition]

    def _compare(self, key: Key, item: str, document: Document | None) -> None:
        """The document that a reply shows; its ETag is learnt."""
        entry = self.model.visible(key, item)
        if document and entry:
            assert _own(document) == entry.document
            entry.etag = document["_etag"]

    def _query(self, text: str, key: Any, page: int, bound: int = 0) -> list[Any]:
        if key is ...:  # The SDK merges rows twice when it does not know of a split yet.
            list(self.container.read_feed_ranges(force_refresh=True))
        where: dict[str, Any] = {"enable_cross_partition_query": True} if key is ... else {"partition_key": key}
        parameters: list[dict[str, object]] = [{"name": "@bound", "value": bound}]
        return list(self.container.query_items(text, parameters=parameters, max_item_count=page, **where))


def _send(container: ContainerProxy, key: Key, operation: Operation, etag: str | None) -> Any:
    guard: dict[str, Any] = {}
    if etag is not None:
        match = MatchConditions.IfPresent if etag == "*" else MatchConditions.IfNotModified
        guard = {"match_condition": match} | ({} if etag == "*" else {"etag": etag})
    match operation.name:
        case "create":
            return container.create_item(operation.content)
        case "upsert":
            return container.upsert_item(operation.content, **guard)
        case "replace":
            return container.replace_item(operation.id, operation.content, **guard)
        case "patch":
            more = guard | _predicate(operation)
            return container.patch_item(operation.id, key, operation.content["operations"], **more)
        case "read":
            return container.read_item(operation.id, key)
        case "delete":
            return container.delete_item(operation.id, key, **guard)


def _batched(operation: Operation, etag: str | None) -> Any:
    options = {} if etag is None or operation.name in {"create", "read"} else {"if_match_etag": etag}
    match operation.name:
        case "create" | "upsert":
            return (operation.name, (operation.content,), options)
        case "replace":
            return (operation.name, (operation.id, operation.content), options)
        case "patch":
            return (operation.name, (operation.id, operation.content["operations"]), options | _predicate(operation))
        case _:
            return (operation.name, (operation.id,), options)


def _predicate(operation: Operation) -> dict[str, Any]:
    above = operation.content.get("above")
    return {} if above is None else {"filter_predicate": f"from c where c.n > {above}"}


def _outcome(call: Callable[[], Any]) -> tuple[int, Document | None]:
    """The status of a refusal, or 0 (the SDK does not tell 200 from 201), and the document that the reply shows."""
    try:
        return 0, call()
    except CosmosHttpResponseError as error:
        return error.status_code or -1, None


def _own(document: Any) -> Document:
    """A document without what the service adds."""
    return {name: value for name, value in document.items() if not name.startswith("_")}


def _sorted(documents: Any) -> list[str]:
    return sorted(repr(sorted(document.items())) for document in documents)


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    """A container of it with 20,000 RU/s has two physical partitions."""
    with running_emulator(clock=Clock(lambda: 1_800_000_000.0)) as running:
        yield running


@pytest.mark.parametrize(("unique", "runs"), [(None, 70), ("n", 20)], ids=["without unique keys", "with a unique key"])
def test_the_emulator_never_differs_from_the_model(emulator: RunningEmulator, unique: str | None, runs: int) -> None:
    numbers = count(1)
    with CosmosClient(emulator.endpoint, emulator.key) as client:
        run_state_machine_as_test(
            lambda: Comparison(emulator, client, next(numbers), unique),  # type: ignore[arg-type]  # It only calls it.
            settings=settings(
                max_examples=RUNS or runs,
                stateful_step_count=50,
                derandomize=not RUNS,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
