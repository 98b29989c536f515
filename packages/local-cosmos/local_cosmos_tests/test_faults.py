"""Faults: what the real SDK makes of each. It repeats writes on its own, so lost replies look like lost races."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, IncompleteReadError, ServiceRequestError, ServiceResponseError
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import (
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
)

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos_tests.raw import RawClient

IF_MATCH = MatchConditions.IfNotModified


def database_of(container: ContainerProxy) -> str:
    return str(container.container_link.split("/")[1])


def sends(emulator: RunningEmulator, container: ContainerProxy, operation: str) -> list[bool]:
    """For every request of one operation: whether it was applied."""
    database = database_of(container)
    return [r.applied for r in emulator.requests() if (r.database, r.operation) == (database, operation)]


@pytest.fixture
async def item(container: ContainerProxy) -> dict[str, Any]:
    return await container.create_item({"id": "a", "pk": "p", "n": 1})


@pytest.fixture
async def patient(emulator: RunningEmulator, container: ContainerProxy) -> AsyncIterator[ContainerProxy]:
    """The same container through a client that repeats nothing on connection errors and waits one second at most."""
    async with CosmosClient(emulator.endpoint, emulator.key, retry_total=0, read_timeout=1) as sdk:
        database, _, name = container.container_link.removeprefix("dbs/").partition("/colls/")
        proxy = sdk.get_database_client(database).get_container_client(name)
        await proxy.read()
        yield proxy


async def replace(container: ContainerProxy, item: dict[str, Any]) -> None:
    await container.replace_item("a", {**item, "n": 2}, etag=item["_etag"], match_condition=IF_MATCH)


async def create(container: ContainerProxy, _: object = None) -> None:
    await container.create_item({"id": "b", "pk": "p"})


async def delete(container: ContainerProxy, item: dict[str, Any]) -> None:
    await container.delete_item("a", "p", etag=item["_etag"], match_condition=IF_MATCH)


async def batch(container: ContainerProxy, item: dict[str, Any]) -> None:
    replaced = ("replace", ("a", {**item, "n": 2}), {"if_match_etag": item["_etag"]})
    await container.execute_item_batch([replaced, ("create", ({"id": "b", "pk": "p"},))], "p")


@pytest.mark.parametrize(
    ("write", "fault", "status"),
    [
        pytest.param(replace, {}, 412, id="a replace"),
        pytest.param(replace, {"action": "reset"}, 412, id="a replace whose connection is reset"),
        *(
            pytest.param(
                replace,
                {"action": "status", "status": status, "substatus": substatus},
                412,
                id=f"a replace answered by {status}/{substatus}",
            )
            for status, substatus in [(403, 3), (400, 1024), (404, 1002), (503, 0)]
        ),
        pytest.param(create, {}, 409, id="a create"),
        pytest.param(delete, {}, 404, id="a delete"),
        pytest.param(batch, {}, 412, id="a batch"),
    ],
)
async def test_a_write_whose_reply_is_lost_is_repeated_by_the_sdk_and_reports_a_refusal_against_itself(
    emulator: RunningEmulator, container: ContainerProxy, item: dict[str, Any], *, write: Any, fault: Any, status: int
) -> None:
    before = len(sends(emulator, container, write.__name__))
    emulator.add_fault(FaultRule(database_of(container), operations=(write.__name__,), times=1, **fault))
    with pytest.raises(HttpResponseError) as refused:
        await write(container, item)
    assert refused.value.status_code == status
    assert sends(emulator, container, write.__name__)[before:] == [True, False]


async def test_an_increment_whose_reply_is_lost_is_applied_twice_and_reports_success(
    emulator: RunningEmulator, container: ContainerProxy, item: dict[str, Any]
) -> None:
    emulator.add_fault(FaultRule(database_of(container), operations=("patch",), times=1))
    patched = await container.patch_item("a", "p", [{"op": "incr", "path": "/n", "value": 1}])
    assert patched["n"] == 3


async def test_a_batch_whose_reply_is_lost_reports_412_against_itself(
    emulator: RunningEmulator, container: ContainerProxy, item: dict[str, Any]
) -> None:
    emulator.add_fault(FaultRule(database_of(container), operations=("batch",), times=1))
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch(
            [
                ("replace", ("a", {**item, "n": 2}), {"if_match_etag": item["_etag"]}),
                ("create", ({"id": "b", "pk": "p"},)),
            ],
            "p",
        )
    assert failure.value.status_code == 412
    assert sends(emulator, container, "batch") == [True, False]


async def test_a_close_before_applying_changes_nothing_and_the_repetition_succeeds(
    emulator: RunningEmulator, container: ContainerProxy, item: dict[str, Any]
) -> None:
    emulator.add_fault(FaultRule(database_of(container), operations=("replace",), when="before", times=1))
    await replace(container, item)
    assert sends(emulator, container, "replace") == [False, True]


@pytest.mark.parametrize(
    ("action", "error"),
    [("close", ServiceRequestError), ("truncate", IncompleteReadError), ("hang", ServiceResponseError)],
)
async def test_a_write_that_was_applied_may_end_in_an_error_of_the_connection(
    emulator: RunningEmulator, patient: ContainerProxy, action: Any, error: type[Exception]
) -> None:
    emulator.add_fault(FaultRule(database_of(patient), operations=("create",), action=action))
    with pytest.raises(error):
        await create(patient)
    sent = sends(emulator, patient, "create")
    assert sent[0]
    assert len(sent) == 1 or action == "hang"


async def test_a_hanging_request_is_let_go_when_its_rule_is_deleted(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    rule = emulator.add_fault(FaultRule(database_of(container), operations=("create",), action="hang", times=1))
    creating = asyncio.ensure_future(create(container))
    while not emulator.faults()[0].hit:  # noqa: ASYNC110  # The emulator runs in another thread.
        await asyncio.sleep(0)
    await asyncio.to_thread(emulator.remove_fault, rule)
    with pytest.raises(CosmosResourceExistsError):  # The connection was closed; the SDK repeated the create.
        await creating


@pytest.mark.parametrize("status", [408, 500, 502, 449])
async def test_a_status_after_applying_reaches_the_application_with_one_send(
    emulator: RunningEmulator, container: ContainerProxy, status: int
) -> None:
    emulator.add_fault(FaultRule(database_of(container), operations=("create",), action="status", status=status))
    with pytest.raises(CosmosHttpResponseError) as failure:
        await create(container)
    assert failure.value.status_code == status
    assert sends(emulator, container, "create") == [True]


async def test_a_throttled_request_is_repeated_by_the_sdk_after_the_time_in_the_reply(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    emulator.add_fault(
        FaultRule(
            database_of(container), operations=("create",), when="before",
            action="status", status=429, substatus=3200, retry_after_ms=1, times=2,
        )
    )  # fmt: skip
    await container.create_item({"id": "b", "pk": "p"})
    assert sends(emulator, container, "create") == [False, False, True]


def test_a_throttled_reply_says_when_to_come_back(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.add_fault(
        FaultRule(database_of(container), when="before", action="status", status=429, substatus=3200, retry_after_ms=7)
    )
    reply = raw.send("GET", f"{container.container_link}/docs/a", key="p")
    assert (reply.status, reply.substatus, reply.headers["x-ms-retry-after-ms"]) == (429, 3200, "7")


async def test_a_delayed_write_lands_after_the_next_writes(
    emulator: RunningEmulator, patient: ContainerProxy, item: dict[str, Any]
) -> None:
    emulator.add_fault(
        FaultRule(database_of(patient), operations=("upsert",), id="late", when="later", after_writes=2, times=1)
    )
    with pytest.raises(ServiceRequestError):
        await patient.upsert_item({"id": "late", "pk": "p"})
    await patient.upsert_item({"id": "b", "pk": "p"})
    assert emulator.delayed_writes() == 1
    await patient.upsert_item({"id": "c", "pk": "p"})
    assert emulator.delayed_writes() == 0
    assert [write.id for write in emulator.history(database_of(patient))] == ["a", "b", "c", "late"]


async def test_a_delayed_write_is_judged_when_it_lands(
    emulator: RunningEmulator, patient: ContainerProxy, item: dict[str, Any]
) -> None:
    emulator.add_fault(FaultRule(database_of(patient), operations=("patch",), when="later", times=1))
    operations = [{"op": "set", "path": "/n", "value": 5}]
    with pytest.raises(ServiceRequestError):
        await patient.patch_item("a", "p", operations, etag=item["_etag"], match_condition=IF_MATCH)
    await patient.upsert_item({**item, "n": 2})
    assert emulator.release_delayed_writes(database_of(patient)) == 1
    assert (await patient.read_item("a", "p"))["n"] == 2
    late = [request for request in emulator.requests() if request.delayed and request.database == database_of(patient)]
    assert [request.applied for request in late] == [False]


def test_skip_and_times_choose_which_matching_requests_are_hit(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.add_fault(
        FaultRule(database_of(container), operations=("read",), when="before", action="status", skip=1, times=2)
    )
    path = f"{container.container_link}/docs/a"
    assert [raw.send("GET", path, key="p").status for _ in range(4)] == [404, 503, 503, 404]
    assert [(fault.matched, fault.hit) for fault in emulator.faults()] == [(4, 2)]


def test_a_probability_with_the_same_seed_hits_the_same_requests(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    rule = FaultRule(database_of(container), when="before", action="status", probability=0.5, seed=7)
    path = f"{container.container_link}/docs/a"

    def statuses() -> list[int]:
        emulator.clear_faults()
        emulator.add_fault(rule)
        return [raw.send("GET", path, key="p").status for _ in range(20)]

    first = statuses()
    assert first == statuses()
    assert set(first) == {404, 503}


def test_a_rule_matches_by_container_item_and_body(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    database, docs = database_of(container), f"{container.container_link}/docs"
    for rule in (
        FaultRule(database, container="other", when="before", action="status"),
        FaultRule("other", when="before", action="status"),
        FaultRule(database, id="b", when="before", action="status", status=500),
        FaultRule(database, body_contains="poison", when="before", action="status", status=502),
    ):
        emulator.add_fault(rule)
    assert raw.send("POST", docs, {"id": "a", "pk": "p"}, key="p").status == 201
    assert raw.send("POST", docs, {"id": "b", "pk": "p"}, key="p").status == 500
    assert raw.send("POST", docs, {"id": "c", "pk": "p", "text": "poison"}, key="p").status == 502


@pytest.mark.parametrize(
    "fields",
    [{"database": ""}, {"action": "truncate", "when": "before"}, {"action": "explode"}, {"operations": ("raed",)}],
)
def test_a_rule_that_could_never_do_what_it_says_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"fault|operations|truncated"):
        FaultRule(**{"database": "d"} | fields)
