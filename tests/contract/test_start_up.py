"""What stops a start: one message that names everything that is wrong with the accounts, each with what to do about it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from azure.cosmos.aio import DatabaseProxy

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.stores.cosmos.client import cosmos_client
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.faults import FaultRule
from tests.contract.conftest import partition_key
from tests.contract.starting import WRONG_KEY, start


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite(blob=True) as running:
        yield running


@asynccontextmanager
async def created(emulator: RunningEmulator, environment: pytest.MonkeyPatch) -> AsyncIterator[DatabaseProxy]:
    """A database with the three containers, as settings name it."""
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        database = await client.create_database(f"db-{uuid4().hex}")
        await database.create_container("games", partition_key=partition_key(("/gameId",)))
        await database.create_container("boards", partition_key=partition_key(("/region", "/boardId")))
        await database.create_container("exactlyonce", partition_key=partition_key(("/pk",)), default_ttl=-1)
        environment.setenv("COSMOS__accountEndpoint", emulator.endpoint)
        environment.setenv("COSMOS__accountKey", emulator.key)
        environment.setenv("COSMOS__database", database.id)
        yield database


async def problems_of_the_accounts() -> str:
    """What keeps the application from processing its first message, and its second."""
    once = start()
    found = []
    for _ in range(2):
        with pytest.raises(ConfigurationError) as raised:
            await once.operator()
        found.append(str(raised.value))
    await once.close()
    assert found[0] == found[1]
    return found[0]


async def anew(database: DatabaseProxy, container: str, path: str, lifetime: int | None = None) -> None:
    await database.delete_container(container)
    await database.create_container(container, partition_key=partition_key((path,)), default_ttl=lifetime)


def refusal(database: DatabaseProxy, container: str, status: int) -> FaultRule:
    """The properties of a container are not returned."""
    operations = ("read_container",)
    return FaultRule(database.id, container, operations, when="before", action="status", status=status)


@pytest.mark.parametrize(
    ("status", "advice"), [(403, "Give the identity the data-plane role"), (401, "Check the account key")]
)
async def test_each_refusal_is_named_once_with_what_to_do_and_the_rest_is_reported_with_it(
    emulator: RunningEmulator, environment: pytest.MonkeyPatch, status: int, advice: str
) -> None:
    async with created(emulator, environment) as database:
        await anew(database, "exactlyonce", "/pk")
        for container in ("games", "boards"):
            emulator.add_fault(refusal(database, container, status))
        problems = await problems_of_the_accounts()
    assert "container 'boards' of entity 'board', container 'games' of entity 'game': Cosmos DB refused" in problems
    assert problems.count(advice) == 1
    assert "has the defaultTtl None" in problems


async def test_a_wrong_key_and_a_blob_container_that_is_not_there_are_reported_in_one_message(
    emulator: RunningEmulator, environment: pytest.MonkeyPatch, storage: Azurite
) -> None:
    async with created(emulator, environment):
        environment.setenv("COSMOS__accountKey", WRONG_KEY)
        environment.setenv("AzureWebJobsStorage", storage.connection_string)
        environment.setenv("EXACTLYONCE__blobContainer", "absent")
        problems = await problems_of_the_accounts()
    assert "Check the account key" in problems
    assert "no blob container" in problems
    assert WRONG_KEY not in problems


async def test_everything_that_is_wrong_with_the_accounts_is_reported_in_one_message(
    environment: pytest.MonkeyPatch, storage: Azurite
) -> None:
    with running_emulator(AccountSettings(consistency="Eventual", multiple_write_locations=True)) as emulator:
        async with created(emulator, environment) as database:
            environment.setenv("AzureWebJobsStorage", storage.connection_string)
            environment.setenv("EXACTLYONCE__blobContainer", "absent")
            await anew(database, "games", "/id", 5)
            await database.delete_container("exactlyonce")
            emulator.add_fault(refusal(database, "boards", 403))
            problems = await problems_of_the_accounts()
    assert problems.count("\n- ") == 6
    for words in (
        "consistency is Eventual: set it to Session or stronger",
        "several regions: turn multi-region writes off",
        "container 'games' of entity 'game' has the partition key /id, but the entity declares /gameId",
        "no container 'exactlyonce' of the library: create it with the partition key /pk",
        "container 'boards' of entity 'board': Cosmos DB refused",
        "no blob container",
    ):
        assert words in problems


async def test_a_container_that_did_not_answer_is_asked_again_unless_something_else_is_wrong(
    emulator: RunningEmulator, environment: pytest.MonkeyPatch
) -> None:
    async with created(emulator, environment) as database:
        rule = refusal(database, "boards", 503)
        emulator.add_fault(rule)
        once = start()
        with pytest.raises(TryAgainLater, match="container 'boards' of entity 'board'"):
            await once.operator()
        emulator.clear_faults()
        await once.operator()
        await once.close()
        emulator.add_fault(rule)
        await database.delete_container("games")
        problems = await problems_of_the_accounts()
    assert "no container 'games'" in problems
    assert "Nothing is known yet of what did not answer: container 'boards' of entity 'board'" in problems
