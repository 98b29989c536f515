"""What is checked about the account at start-up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from azure.cosmos.aio import CosmosClient, DatabaseProxy

from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.stores.cosmos.application import verify
from exactlyonce.stores.cosmos.client import cosmos_client
from exactlyonce.stores.cosmos.partition import EntityContainer
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.requests import ConsistencyLevel
from tests.contract.conftest import partition_key

GAMES = EntityContainer("game", "games", ("/gameId",))
BOARDS = EntityContainer("board", "boards", ("/region", "/boardId"))


@asynccontextmanager
async def opened(emulator: RunningEmulator) -> AsyncIterator[CosmosClient]:
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        yield client


@pytest.fixture
async def database(emulator: RunningEmulator) -> AsyncIterator[DatabaseProxy]:
    """A database as it has to be, and nothing in it but the two containers of entities and the library's."""
    async with opened(emulator) as client:
        database = await client.create_database(f"db-{uuid4().hex}")
        await database.create_container("games", partition_key=partition_key(("/gameId",)))
        await database.create_container("boards", partition_key=partition_key(("/region", "/boardId")), default_ttl=-1)
        await database.create_container("exactlyonce", partition_key=partition_key(("/pk",)), default_ttl=-1)
        yield database


async def problems(
    emulator: RunningEmulator, database: str, *entities: EntityContainer, library: str = "exactlyonce"
) -> str:
    """What is wrong, as the operator reads it."""
    async with opened(emulator) as client:
        with pytest.raises(ConfigurationError) as raised:
            await verify(client, database, entities, library)
    return str(raised.value)


async def test_a_database_as_it_has_to_be_is_accepted(emulator: RunningEmulator, database: DatabaseProxy) -> None:
    async with opened(emulator) as client:
        await verify(client, database.id, [GAMES, BOARDS], "exactlyonce")


async def test_a_missing_database_is_named(emulator: RunningEmulator) -> None:
    assert "no database 'nowhere'" in await problems(emulator, "nowhere", GAMES)


async def test_missing_containers_are_named(emulator: RunningEmulator, database: DatabaseProxy) -> None:
    elsewhere = EntityContainer("game", "elsewhere", ("/gameId",))
    text = await problems(emulator, database.id, elsewhere, library="nowhere")
    assert "no container 'elsewhere' of entity 'game'" in text
    assert "/gameId" in text
    assert "no container 'nowhere' of the library" in text
    assert "defaultTtl -1" in text


@pytest.mark.parametrize("paths", [("/id",), ("/gameid",), ("/gameId", "/id")])
async def test_another_partition_key_than_declared_is_refused(
    emulator: RunningEmulator, database: DatabaseProxy, paths: tuple[str, ...]
) -> None:
    text = await problems(emulator, database.id, EntityContainer("game", "games", paths))
    assert f"has the partition key /gameId, but the entity declares {', '.join(paths)}" in text


async def test_a_hierarchical_key_in_another_order_is_refused(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    text = await problems(emulator, database.id, EntityContainer("board", "boards", ("/boardId", "/region")))
    assert "has the partition key /region, /boardId" in text


async def test_entities_must_not_expire_by_themselves(emulator: RunningEmulator, database: DatabaseProxy) -> None:
    await database.create_container("passing", partition_key=partition_key(("/gameId",)), default_ttl=3600)
    text = await problems(emulator, database.id, EntityContainer("game", "passing", ("/gameId",)))
    assert "'passing' of entity 'game' lets documents expire after 3600 s" in text


@pytest.mark.parametrize("path", ["/id", "/message", "/outputs/first"])
async def test_companions_need_a_partition_key_that_they_can_share(
    emulator: RunningEmulator, database: DatabaseProxy, path: str
) -> None:
    await database.create_container("alone", partition_key=partition_key((path,)))
    text = await problems(emulator, database.id, EntityContainer("game", "alone", (path,), companions=True))
    assert f"'alone' of entity 'game' has the partition key path '{path}'" in text
    assert "Use a container with another path" in text
    async with opened(emulator) as client:  # Without companions any path will do.
        await verify(client, database.id, [EntityContainer("game", "alone", (path,))], "exactlyonce")


@pytest.mark.parametrize("policy", [None, {}, {"uniqueKeys": []}])
async def test_companions_and_entities_share_a_container_without_unique_keys(
    emulator: RunningEmulator, database: DatabaseProxy, policy: Any
) -> None:
    await database.create_container("plain", partition_key=partition_key(("/gameId",)), unique_key_policy=policy)
    async with opened(emulator) as client:
        await verify(
            client, database.id, [EntityContainer("game", "plain", ("/gameId",), companions=True)], "exactlyonce"
        )


async def test_unique_keys_leave_no_room_for_companions_and_for_nothing_else(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    await _with_unique_keys(database, "named", "/gameId")
    named = EntityContainer("game", "named", ("/gameId",), companions=True)
    text = await problems(emulator, database.id, named, BOARDS)
    assert "'named' of entity 'game' has unique keys: create it anew without them" in text
    assert "boards" not in text
    async with opened(emulator) as client:
        await verify(client, database.id, [replace(named, companions=False)], "exactlyonce")


async def test_unique_keys_leave_no_room_for_the_librarys_documents(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    """Staging would take the refusal for its own earlier success, and what was to be published would be lost."""
    await _with_unique_keys(database, "records", "/pk")
    text = await problems(emulator, database.id, GAMES, library="records")
    assert "'records' of the library has unique keys: create it anew without them" in text


async def _with_unique_keys(database: DatabaseProxy, name: str, path: str) -> None:
    policy: Any = {"uniqueKeys": [{"paths": ["/name"]}]}
    key = partition_key((path,))
    await database.create_container(name, partition_key=key, default_ttl=-1, unique_key_policy=policy)


async def test_a_container_that_is_being_created_is_asked_for_again_later(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    rule = FaultRule(
        database.id, operations=("read_container",), when="before", action="status", status=404, substatus=1013
    )
    emulator.add_fault(rule)
    async with opened(emulator) as client:
        with pytest.raises(TryAgainLater, match="container 'games'"):
            await verify(client, database.id, [GAMES], "exactlyonce")


@pytest.mark.parametrize("lifetime", [None, 3600])
async def test_the_librarys_records_expire_only_when_they_say_so(
    emulator: RunningEmulator, database: DatabaseProxy, lifetime: int | None
) -> None:
    await database.create_container("records", partition_key=partition_key(("/pk",)), default_ttl=lifetime)
    text = await problems(emulator, database.id, GAMES, library="records")
    assert f"'records' of the library has the defaultTtl {lifetime}: set it to -1" in text


async def test_the_librarys_partition_key_is_not_for_choosing(
    emulator: RunningEmulator, database: DatabaseProxy
) -> None:
    text = await problems(emulator, database.id, library="games")
    assert "has the partition key /gameId: create it anew with /pk" in text


@pytest.mark.parametrize("level", ["Eventual", "ConsistentPrefix"])
async def test_an_account_weaker_than_session_is_refused(level: ConsistencyLevel) -> None:
    with running_emulator(AccountSettings(consistency=level)) as emulator:
        assert f"consistency is {level}: set it to Session" in await problems(emulator, "nowhere")


@pytest.mark.parametrize("level", ["Session", "BoundedStaleness", "Strong"])
async def test_stronger_accounts_are_accepted(level: ConsistencyLevel) -> None:
    with running_emulator(AccountSettings(consistency=level)) as emulator:
        assert "consistency" not in await problems(emulator, "nowhere")


async def test_an_account_that_writes_in_several_regions_is_refused() -> None:
    with running_emulator(AccountSettings(multiple_write_locations=True)) as emulator:
        assert "turn multi-region writes off" in await problems(emulator, "nowhere")


async def test_an_account_that_does_not_answer_is_asked_again_later() -> None:
    with running_emulator() as emulator:
        client = await cosmos_client(emulator.endpoint, emulator.key).__aenter__()
    with pytest.raises(TryAgainLater, match="endpoint"):
        await verify(client, "db", [GAMES], "exactlyonce")
    await client.close()
