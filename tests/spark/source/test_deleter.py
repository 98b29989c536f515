"""What one task does to delete documents, in this process: what became of each, in how many requests, at what rate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from exactlyonce import ConfigurationError
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import AccountError, UnsafeError
from spark_jobs.source.feed_ranges import Deleter
from spark_jobs.source.port import Outcome
from tests.spark.source.conftest import HASTE, Fault, Sent, Split, Tally

Documents = list[dict[str, Any]]
Row = dict[str, Any]


@pytest.fixture
def deleting(account: Account, database: DatabaseProxy, tally: Tally) -> Deleter:
    return Deleter(account, database.id, "items", tally, patience=HASTE)


def row_of(document: dict[str, Any], *names: str) -> Row:
    values = [document[name] for name in names or ("pk",)]
    return {"partition": json.dumps(values), "id": document["id"], "etag": document["_etag"]}


def rows_of(documents: Documents) -> list[Row]:
    return sorted(map(row_of, documents), key=lambda row: str(row["partition"]))


def outcomes(deleted: Iterable[tuple[Row, Outcome]]) -> dict[str, str]:
    return {row["id"]: outcome.value for row, outcome in deleted}


def left(container: ContainerProxy) -> set[str]:
    return {item["id"] for item in container.query_items("SELECT c.id FROM c", enable_cross_partition_query=True)}


def test_unchanged_documents_are_deleted(
    deleting: Deleter, container: ContainerProxy, documents: Documents, tally: Tally
) -> None:
    assert outcomes(deleting(rows_of(documents))) == {document["id"]: "deleted" for document in documents}
    assert left(container) == set()
    assert tally.rows == 60
    assert tally.units == pytest.approx(60 * 5.5)


def test_a_changed_document_stays_and_its_neighbours_go(
    deleting: Deleter, container: ContainerProxy, documents: Documents, tally: Tally
) -> None:
    container.upsert_item({"id": "d21", "pk": "p1", "n": -1})
    found = outcomes(deleting(rows_of(documents)))
    assert {id for id, outcome in found.items() if outcome == "changed"} == {"d21"}
    assert {found["d1"], found["d41"]} == {"deleted"}
    assert left(container) == {"d21"}
    assert tally.rows == 59


def test_the_charge_of_a_refusal_is_reported(
    deleting: Deleter, container: ContainerProxy, documents: Documents, tally: Tally
) -> None:
    container.delete_item("d1", "p1")
    assert outcomes(deleting([row_of(documents[1])])) == {"d1": "gone"}
    assert tally.rows == 0
    assert (tally.units or 0) > 0


@pytest.mark.parametrize("missing", ["etag", "id"])
@pytest.mark.parametrize("value", [None, ""])
def test_without_an_etag_nothing_is_deleted(
    deleting: Deleter, container: ContainerProxy, documents: Documents, missing: str, value: str | None
) -> None:
    rows = [row_of(documents[1]), {**row_of(documents[21]), missing: value}]
    with pytest.raises(UnsafeError, match="without its id or the ETag it had"):
        list(deleting(rows))
    assert len(left(container)) == 60


def test_partition_keys_have_values_of_every_type_and_several_paths(
    deleting: Deleter, database: DatabaseProxy, tally: Tally
) -> None:
    keys = PartitionKey(["/tenant", "/number", "/yes"], kind="MultiHash")
    container = database.create_container("deep", keys)
    created = [
        dict(container.create_item({"id": f"d{n}", "tenant": 'a"/ö', "number": n % 2, "yes": True})) for n in range(4)
    ]
    rows = sorted((row_of(item, "tenant", "number", "yes") for item in created), key=lambda row: str(row["partition"]))
    found = outcomes(replace(deleting, container="deep")(rows))
    assert found == {f"d{n}": "deleted" for n in range(4)}
    assert tally.requests == 2


def test_more_than_a_hundred_are_more_than_one_batch(deleting: Deleter, container: ContainerProxy, sent: Sent) -> None:
    many = [dict(container.create_item({"id": f"m{number}", "pk": "one"})) for number in range(201)]
    assert set(outcomes(deleting(rows_of(many))).values()) == {"deleted"}
    assert (sent()["batch"], sent()["delete"]) == (2, 1)


def test_each_request_is_sent_once_the_one_before_is_paid(
    deleting: Deleter, container: ContainerProxy, documents: Documents, tally: Tally, waits: list[float]
) -> None:
    container.upsert_item({"id": "d21", "pk": "p1", "n": -1})
    list(replace(deleting, rate=10.0)(rows_of(documents)))
    assert sum(waits) == pytest.approx(sum(units for _, units in tally.counted[:-1]) / 10)


@pytest.mark.parametrize("status", [429, 449, 410])
def test_a_delete_that_is_refused_for_now_is_sent_again(
    deleting: Deleter, documents: Documents, fault: Fault, status: int
) -> None:
    fault(operations=("batch",), when="before", action="status", status=status, retry_after_ms=1, times=2)
    assert set(outcomes(deleting(rows_of(documents))).values()) == {"deleted"}


def test_throttling_without_end_ends_the_task(
    deleting: Deleter, container: ContainerProxy, documents: Documents, fault: Fault
) -> None:
    fault(operations=("batch", "delete"), when="before", action="status", status=429, retry_after_ms=1)
    with pytest.raises(AccountError, match="429/0 when asked for the container 'items'"):
        list(deleting(rows_of(documents)))
    assert len(left(container)) == 60


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("trouble", [{"action": "close"}, {"action": "status", "status": 500}], ids=str)
def test_a_delete_without_an_answer_is_unknown_and_the_outcome_is_learnt_by_reading(
    deleting: Deleter, documents: Documents, fault: Fault, *, applied: bool, trouble: dict[str, Any]
) -> None:
    fault(**{"operations": ("batch",), "when": "after" if applied else "before", "times": 1, **trouble})
    found = outcomes(deleting(rows_of(documents)))
    assert Counter(found.values()) == {"deleted": 57, "unknown": 3}
    again = [row_of(document) for document in documents if found[document["id"]] == "unknown"]
    assert set(outcomes(deleting(again)).values()) == {"gone" if applied else "deleted"}


def test_a_delete_that_the_sdk_sends_again_by_itself_may_be_reported_as_gone(
    deleting: Deleter, container: ContainerProxy, documents: Documents, fault: Fault
) -> None:
    fault(operations=("batch",), when="after", action="status", status=503, times=1)
    assert Counter(outcomes(deleting(rows_of(documents))).values()) == {"deleted": 57, "gone": 3}
    assert left(container) == set()


def test_a_split_under_a_delete_is_waited_out(
    deleting: Deleter, container: ContainerProxy, documents: Documents, split: Split
) -> None:
    found = deleting(rows_of(documents))
    first = next(found)
    split(0, 1, 2)
    assert set(outcomes([first, *found]).values()) == {"deleted"}
    assert left(container) == set()


def test_a_container_that_is_absent_is_no_document_that_is_gone(deleting: Deleter, documents: Documents) -> None:
    with pytest.raises(ConfigurationError, match="no such thing as the container 'boards'"):
        list(replace(deleting, container="boards")(rows_of(documents)))
