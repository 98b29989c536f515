"""What the client of Cosmos DB sends, how often, and what it does not spend its time on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from exactlyonce.effects.entity import LoadEntity
from exactlyonce.stores.cosmos import client as cosmos_client
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.replies import SESSION_TOKEN
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import PLAIN
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.requests import ConsistencyLevel
from tests.contract.conftest import ENTITY_CONTAINERS, Place
from tests.contract.cosmos_requests import READS, REPEATED, WRITES, create, total


@pytest.mark.parametrize(("proxies", "needed"), [({}, False), ({"no": "*"}, True)])
async def test_a_request_needs_a_thread_only_where_a_proxy_is_set(
    at: Place, monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], needed: bool
) -> None:
    monkeypatch.setattr(cosmos_client, "getproxies", lambda: proxies)
    handed: list[object] = []
    async with cosmos_client.cosmos_client(at.emulator.endpoint, at.emulator.key) as client:
        monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", recording(handed))
        await anext(client.list_databases(), None)
    assert bool(handed) is needed


@pytest.mark.parametrize("consistency", ["Strong", "BoundedStaleness", "Session"])
async def test_tokens_are_sent_to_accounts_of_every_level_that_will_do(consistency: ConsistencyLevel) -> None:
    """Where an account is stronger than Session, the SDK drops the tokens it is given, unless the client names the level."""
    sent: list[Any] = []
    with running_emulator(AccountSettings(consistency=consistency)) as account:
        async with cosmos_client.cosmos_client(account.endpoint, account.key) as client:
            database = await client.create_database("db")
            container = await database.create_container("items", PartitionKey("/id"))
            await container.create_item({"id": "a"})
            await container.read_item("a", "a", session_token="0:-1#1", raw_request_hook=sent.append)
    assert [request.http_request.headers.get(SESSION_TOKEN) for request in sent] == ["0:-1#1"]


async def test_letters_of_all_languages_are_sent_as_they_are(emulator: RunningEmulator) -> None:
    """Escaped, a document in Greek would have three times the size, and the service would take a third of it."""
    sent: list[Any] = []
    async with cosmos_client.cosmos_client(emulator.endpoint, emulator.key) as client:
        database = await client.create_database(f"db-{uuid4().hex}")
        container = await database.create_container("items", PartitionKey("/id"))
        await container.create_item({"id": "a", "text": "ΑΒΓ"}, raw_request_hook=sent.append)
    body = sent[0].http_request.body
    assert "ΑΒΓ" in (body.decode() if isinstance(body, bytes) else body)


async def test_a_send_without_an_answer_ends_by_itself_and_not_with_the_request(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosmos_client, "READ_SECONDS", 0.1)
    hasty = CosmosConnection(at.emulator.endpoint, at.connection.database, key=at.emulator.key)
    await hasty.container(PLAIN)
    at.fault(action="hang", when="before", times=1)
    assert await asyncio.wait_for(total(CosmosStore(hasty, ENTITY_CONTAINERS, time_limit=1800), at.entity), 900) is None
    await hasty.close()


@pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED])
async def test_a_request_that_is_throttled_without_end_is_sent_a_few_times(at: Place, name: str) -> None:
    """By default the SDK sends a query a hundred times."""
    await create(at.store, at.entity)
    before = at.emulator.last_request()
    at.fault(action="status", when="before", status=429, substatus=3200, retry_after_ms=1)
    await at.ask(name)
    assert 1 < len(at.emulator.requests(before)) <= 16


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_whose_replies_are_lost_is_sent_twice_at_most(at: Place, name: str) -> None:
    await at.perform(LoadEntity(at.entity))
    before = at.emulator.last_request()
    at.fault(action="close", when="after")
    await at.ask(name)
    assert 1 <= len(at.emulator.requests(before)) <= 2


async def test_a_container_that_was_written_first_is_not_asked_to_be_as_new_as_another(at: Place) -> None:
    name = f"db-{uuid4().hex}"
    async with cosmos_client.cosmos_client(at.emulator.endpoint, at.emulator.key) as client:
        database = await client.create_database(name)
        for container in ("busy", "quiet"):
            await database.create_container(container, PartitionKey("/id"))
    connection = CosmosConnection(at.emulator.endpoint, name, key=at.emulator.key)
    busy, quiet = [await connection.container(container) for container in ("busy", "quiet")]
    for number in range(5):
        await busy.create_item({"id": str(number)}, no_response=True)
    await quiet.create_item({"id": "a"}, no_response=True)
    assert (await quiet.read_item("a", "a"))["id"] == "a"
    await connection.close()


@pytest.mark.parametrize(
    "error", [ServiceRequestError("?"), asyncio.CancelledError()], ids=lambda item: type(item).__name__
)
async def test_a_client_that_could_not_be_opened_is_opened_by_the_next_caller(
    at: Place, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter, errors = CosmosClient.__aenter__, [error]

    async def entering(client: CosmosClient) -> CosmosClient:
        if errors:
            raise errors.pop()
        return await enter(client)

    monkeypatch.setattr(CosmosClient, "__aenter__", entering)
    later = CosmosConnection(at.emulator.endpoint, at.connection.database, key=at.emulator.key)
    with pytest.raises(type(error)):
        await later.container(PLAIN)
    assert (await later.container(PLAIN)).id == PLAIN
    await later.close()


def recording(handed: list[object]) -> Callable[..., Awaitable[Any]]:
    """In place of `run_in_executor`: does at once what a thread would do."""

    async def run(_: object, function: Callable[..., Any], *args: Any) -> Any:
        handed.append(function)
        return function(*args)

    return run
