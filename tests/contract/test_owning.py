"""Whose a library container is: what the first start of an application writes down, and what every other one compares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.cosmos.aio import DatabaseProxy

from exactlyonce import ConfigurationError, Entity, Outbox, TryAgainLater
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import NewerSchema
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from exactlyonce.stores.cosmos.client import cosmos_client
from exactlyonce.testing.world import ManualClock
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.contract.conftest import partition_key
from tests.samples import Account


def entity(name: str, container: str, key: str = "/id") -> Entity[Any]:
    return Entity(name, state=Account, container=container, partition_key=key, strategy=Outbox())


@dataclass
class Place:
    """A database with some containers of entities and one of the library, in which applications start."""

    emulator: RunningEmulator
    database: DatabaseProxy

    def application(self, *entities: Entity[Any], clock: ManualClock | None = None, **settings: Any) -> ExactlyOnce:
        given = {
            "COSMOS__accountEndpoint": self.emulator.endpoint,
            "COSMOS__accountKey": self.emulator.key,
            "COSMOS__database": self.database.id,
            **{f"EXACTLYONCE__{name}": value for name, value in settings.items()},
        }
        return ExactlyOnce(
            entities,
            settings=Settings.model_validate(given),
            storage=StorageConnection("UseDevelopmentStorage=true"),
            runtime=Runtime(clock) if clock else None,
        )

    async def start(self, *entities: Entity[Any], **settings: Any) -> None:
        """Start an application, and end it."""
        once = self.application(*entities, **settings)
        try:
            await once.operator()
        finally:
            await once.close()

    async def refusal(self, *entities: Entity[Any], **settings: Any) -> str:
        with pytest.raises(ConfigurationError) as raised:
            await self.start(*entities, **settings)
        return str(raised.value)

    @property
    def library(self) -> Any:
        return self.database.get_container_client("exactlyonce")

    async def document(self) -> dict[str, Any]:
        found = dict(await self.library.read_item("application", "application"))
        return {name: value for name, value in found.items() if not name.startswith("_")}


@pytest.fixture
async def place(emulator: RunningEmulator) -> AsyncIterator[Place]:
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        database = await client.create_database(f"db-{uuid4().hex}")
        for name in ("accounts", "accounts-b", "orders"):
            await database.create_container(name, partition_key=partition_key(("/id",)))
        await database.create_container("exactlyonce", partition_key=partition_key(("/pk",)), default_ttl=-1)
        yield Place(emulator, database)


ACCOUNTS = entity("account", "accounts")
ORDERS = entity("order", "orders")


async def test_the_first_start_writes_down_whose_the_container_is(place: Place) -> None:
    await place.start(ORDERS, ACCOUNTS, application="shop", retention="P20D")
    assert await place.document() == {
        "id": "application",
        "pk": "application",
        "kind": "application",
        "schema": 1,
        "name": "shop",
        "types": [
            {"type": "account", "container": "accounts", "paths": ["/id"]},
            {"type": "order", "container": "orders", "paths": ["/id"]},
        ],
        "retention": {"current": "P20D", "previous": None, "changed": None},
    }


async def test_a_start_that_changes_nothing_writes_nothing(place: Place) -> None:
    await place.start(ACCOUNTS)
    before = (await place.library.read_item("application", "application"))["_etag"]
    await place.start(ACCOUNTS)
    assert (await place.library.read_item("application", "application"))["_etag"] == before


async def test_two_applications_with_a_type_of_one_name_in_two_containers_cannot_share_a_library_container(
    place: Place,
) -> None:
    await place.start(ACCOUNTS)
    text = await place.refusal(entity("account", "accounts-b"))
    assert "Entities of type 'account' live in container 'accounts', not in 'accounts-b'" in text
    await place.start(ACCOUNTS)


async def test_two_applications_of_different_names_cannot_share_a_library_container(place: Place) -> None:
    await place.start(ACCOUNTS, application="bank")
    text = await place.refusal(ORDERS, application="shop")
    assert "It belongs to application 'bank'. Set EXACTLYONCE__container to a container of your own" in text
    assert [item["type"] for item in (await place.document())["types"]] == ["account"]


async def test_a_type_does_not_move_to_another_partition_key(place: Place) -> None:
    await place.start(ACCOUNTS)
    await place.database.delete_container("accounts")
    await place.database.create_container("accounts", partition_key=partition_key(("/owner",)))
    text = await place.refusal(entity("account", "accounts", "/owner"))
    assert "has the partition key /id, not /owner" in text


async def test_all_that_differs_is_reported_at_once(place: Place) -> None:
    await place.start(ACCOUNTS, ORDERS, application="bank")
    text = await place.refusal(
        entity("account", "accounts-b"), entity("order", "accounts"), application="shop", retention="P20D"
    )
    assert text.count("\n- ") == 4
    assert "Its retention is 30 days, 0:00:00, but EXACTLYONCE__retention is 20 days" in text


async def test_a_retention_that_agrees_or_is_not_set_is_taken(place: Place) -> None:
    await place.start(ACCOUNTS, retention="P20D")
    await place.start(ACCOUNTS, retention="1728000")
    await place.start(ACCOUNTS)


@pytest.mark.parametrize(("retention", "limit"), [("P15D", "P7D"), ("P30D", "P15D")])
async def test_a_retention_in_which_nothing_could_be_published_is_refused(
    place: Place, retention: str, limit: str
) -> None:
    text = await place.refusal(ACCOUNTS, retention=retention, deliveryLimit=limit)
    assert "too short for a delivery limit" in text
    assert [item async for item in place.library.read_all_items()] == []


async def test_a_new_version_adds_its_types_while_the_old_one_runs_on(place: Place) -> None:
    clock = ManualClock()
    old = place.application(ACCOUNTS, clock=clock)
    await old.operator()
    await place.start(ACCOUNTS, ORDERS)
    clock.advance(3_601)
    await old.operator()
    await old.close()
    await place.start(ACCOUNTS)
    assert [item["type"] for item in (await place.document())["types"]] == ["account", "order"]


async def test_many_instances_of_several_versions_start_at_once(place: Place) -> None:
    versions = [(ACCOUNTS,), (ACCOUNTS, ORDERS), (entity("third", "accounts"), ACCOUNTS)]
    await asyncio.gather(*(place.start(*versions[number % 3]) for number in range(12)))
    assert [item["type"] for item in (await place.document())["types"]] == ["account", "order", "third"]


async def test_a_document_of_a_newer_version_of_the_library_is_refused(place: Place) -> None:
    await place.start(ACCOUNTS)
    document = await place.library.read_item("application", "application")
    await place.library.upsert_item({**document, "schema": 2, "color": "green"})
    with pytest.raises(NewerSchema, match="document of the application"):
        await place.start(ACCOUNTS)


async def test_a_document_whose_reply_was_lost_is_the_application_s_own(place: Place) -> None:
    operations = ("create", "replace")
    lost = FaultRule(place.database.id, "exactlyonce", operations, when="after", action="status", status=503, times=2)
    place.emulator.add_fault(lost)
    await place.start(ACCOUNTS)
    assert (await place.document())["name"] == "exactlyonce"


async def test_while_the_document_cannot_be_read_work_goes_on_for_six_hours(place: Place) -> None:
    clock = ManualClock()
    once = place.application(ACCOUNTS, clock=clock)
    await once.operator()
    place.emulator.add_fault(
        FaultRule(place.database.id, "exactlyonce", ("create",), when="before", action="status", status=503)
    )
    clock.advance(timedelta(hours=5, minutes=58).total_seconds())
    await once.operator()
    clock.advance(120)
    with pytest.raises(TryAgainLater):
        await once.operator()
    place.emulator.clear_faults()
    await once.operator()
    await once.close()
