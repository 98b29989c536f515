"""What is checked about the account at start-up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest

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
NAMES: Any = {"uniqueKeys": [{"paths": ["/name"]}]}


@dataclass(frozen=True)
class Checked:
    """A database in an account."""

    emulator: RunningEmulator
    name: str = "nowhere"

    async def verify(self, *entities: EntityContainer, library: str = "exactlyonce") -> None:
        async with cosmos_client(self.emulator.endpoint, self.emulator.key) as client:
            await verify(client, self.name, entities, library)

    async def problems(self, *entities: EntityContainer, library: str = "exactlyonce") -> str:
        """What is wrong, as the operator reads it."""
        with pytest.raises(ConfigurationError) as raised:
            await self.verify(*entities, library=library)
        return str(raised.value)

    async def create(self, name: str, *paths: str, **more: Any) -> None:
        async with cosmos_client(self.emulator.endpoint, self.emulator.key) as client:
            database = client.get_database_client(self.name)
            await database.create_container(name, partition_key=partition_key(paths), **more)


@pytest.fixture
async def database(emulator: RunningEmulator) -> Checked:
    """A database as it has to be, and nothing in it but the two containers of entities and the library's."""
    checked = Checked(emulator, f"db-{uuid4().hex}")
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        await client.create_database(checked.name)
    await checked.create("games", "/gameId")
    await checked.create("boards", "/region", "/boardId", default_ttl=-1)
    await checked.create("exactlyonce", "/pk", default_ttl=-1)
    return checked


async def test_a_database_as_it_has_to_be_is_accepted(database: Checked) -> None:
    await database.verify(GAMES, BOARDS)


async def test_a_missing_database_is_named(emulator: RunningEmulator) -> None:
    assert "no database 'nowhere'" in await Checked(emulator).problems(GAMES)


async def test_missing_containers_are_named(database: Checked) -> None:
    text = await database.problems(EntityContainer("game", "elsewhere", ("/gameId",)), library="nowhere")
    assert "no container 'elsewhere' of entity 'game'" in text
    assert "/gameId" in text
    assert "no container 'nowhere' of the library" in text
    assert "defaultTtl -1" in text


@pytest.mark.parametrize(
    ("container", "paths"),
    [(GAMES, ("/id",)), (GAMES, ("/gameid",)), (GAMES, ("/gameId", "/id")), (BOARDS, ("/boardId", "/region"))],
    ids=str,
)
async def test_another_partition_key_than_declared_is_refused(
    database: Checked, container: EntityContainer, paths: tuple[str, ...]
) -> None:
    text = await database.problems(replace(container, paths=paths))
    assert f"has the partition key {', '.join(container.paths)}, but the entity declares {', '.join(paths)}" in text


async def test_entities_must_not_expire_by_themselves(database: Checked) -> None:
    await database.create("passing", "/gameId", default_ttl=3600)
    text = await database.problems(replace(GAMES, container="passing"))
    assert "'passing' of entity 'game' lets documents expire after 3600 s" in text


@pytest.mark.parametrize("path", ["/id", "/message", "/outputs/first"])
async def test_companions_need_a_partition_key_that_they_can_share(database: Checked, path: str) -> None:
    await database.create("alone", path)
    alone = EntityContainer("game", "alone", (path,), companions=True)
    text = await database.problems(alone)
    assert f"'alone' of entity 'game' has the partition key path '{path}'" in text
    assert "Use a container with another path" in text
    await database.verify(replace(alone, companions=False))  # Without companions any path will do.


@pytest.mark.parametrize("policy", [None, {}, {"uniqueKeys": []}])
async def test_companions_and_entities_share_a_container_without_unique_keys(database: Checked, policy: Any) -> None:
    await database.create("plain", "/gameId", unique_key_policy=policy)
    await database.verify(replace(GAMES, container="plain", companions=True))


async def test_unique_keys_leave_no_room_for_companions_and_for_nothing_else(database: Checked) -> None:
    await database.create("named", "/gameId", unique_key_policy=NAMES)
    named = replace(GAMES, container="named", companions=True)
    text = await database.problems(named, BOARDS)
    assert "'named' of entity 'game' has unique keys: create it anew without them" in text
    assert "boards" not in text
    await database.verify(replace(named, companions=False))


async def test_a_container_that_is_being_created_is_asked_for_again_later(database: Checked) -> None:
    rule: dict[str, Any] = {"operations": ("read_container",), "when": "before", "action": "status"}
    database.emulator.add_fault(FaultRule(database.name, **rule, status=404, substatus=1013))
    with pytest.raises(TryAgainLater, match="container 'games'"):
        await database.verify(GAMES)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"default_ttl": None}, "has the defaultTtl None: set it to -1"),
        ({"default_ttl": 3600}, "has the defaultTtl 3600: set it to -1"),
        # Staging would take the refusal for its own earlier success, and outputs would be lost.
        ({"default_ttl": -1, "unique_key_policy": NAMES}, "has unique keys: create it anew without them"),
    ],
    ids=["documents that never expire", "documents that all expire", "unique keys"],
)
async def test_a_container_that_is_unfit_for_the_library_is_refused(
    database: Checked, more: dict[str, Any], problem: str
) -> None:
    await database.create("records", "/pk", **more)
    assert f"'records' of the library {problem}" in await database.problems(GAMES, library="records")
    assert "has the partition key /gameId: create it anew with /pk" in await database.problems(library="games")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (AccountSettings(consistency="Eventual"), "consistency is Eventual: set it to Session"),
        (AccountSettings(consistency="ConsistentPrefix"), "consistency is ConsistentPrefix: set it to Session"),
        (AccountSettings(multiple_write_locations=True), "turn multi-region writes off"),
    ],
    ids=str,
)
async def test_an_account_that_breaks_the_guarantee_is_refused(settings: AccountSettings, problem: str) -> None:
    with running_emulator(settings) as emulator:
        assert problem in await Checked(emulator).problems()


@pytest.mark.parametrize("level", ["Session", "BoundedStaleness", "Strong"])
async def test_stronger_accounts_are_accepted(level: ConsistencyLevel) -> None:
    with running_emulator(AccountSettings(consistency=level)) as emulator:
        assert "consistency" not in await Checked(emulator).problems()


async def test_an_account_that_does_not_answer_is_asked_again_later() -> None:
    with running_emulator() as emulator:
        client = await cosmos_client(emulator.endpoint, emulator.key).__aenter__()
    with pytest.raises(TryAgainLater, match="endpoint"):
        await verify(client, "db", [GAMES], "exactlyonce")
    await client.close()
