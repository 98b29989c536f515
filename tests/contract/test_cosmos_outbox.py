"""The outbox on Cosmos DB: what has left a ledger is known through a page, whichever process asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from azure.functions.queue import QueueMessage

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import DatabaseRestored
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from exactlyonce.stores.cosmos.client import cosmos_client
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.envelope import STABLE_TIME, Envelope
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.clock import Clock
from tests.contract.conftest import partition_key
from tests.samples import SENT, accounts, deposit, ledger_queue

MANY = 60
"""Messages, of which the first 34 leave the ledger in two pages."""

_LONGEST_PAUSE = 1.0
"""Seconds. Time limits are longer."""


class Impatient(ManualClock):
    """A clock by which pauses between attempts are over at once, and longer ones never."""

    async def sleep(self, seconds: float) -> None:
        if seconds > _LONGEST_PAUSE:
            await super().sleep(seconds)


@dataclass
class Bank:
    """A database with accounts, and processes that work on it."""

    emulator: RunningEmulator
    database: Any

    async def process(self, *messages: Envelope) -> None:
        """Process messages, one after the other, in a process that is new."""
        settings = {
            "COSMOS__accountEndpoint": self.emulator.endpoint,
            "COSMOS__accountKey": self.emulator.key,
            "COSMOS__database": self.database.id,
        }
        entity = accounts()
        once = ExactlyOnce(
            [entity],
            destinations=[ledger_queue],
            settings=Settings.model_validate(settings),
            storage=StorageConnection("UseDevelopmentStorage=true"),
            runtime=Runtime(Impatient(SENT)),
        )
        try:
            for number, one in enumerate(messages):
                body = one.to_json().text.encode()
                message = QueueMessage(id=f"q-{number}", body=body, dequeue_count=1)  # type: ignore[no-untyped-call]
                await once.process(message, entity)
        finally:
            await once.close()

    async def total(self) -> int:
        found = await self.database.get_container_client("accounts").read_item("a", "a")
        return int(found["total"])

    @property
    def library(self) -> Any:
        return self.database.get_container_client("exactlyonce")

    async def pages(self) -> list[dict[str, Any]]:
        return [dict(item) async for item in self.library.read_all_items() if item["kind"] == "page"]


@pytest.fixture
async def bank() -> AsyncIterator[Bank]:
    with running_emulator(clock=Clock(SENT.timestamp)) as emulator:
        async with cosmos_client(emulator.endpoint, emulator.key) as client:
            database = await client.create_database("bank")
            await database.create_container("accounts", partition_key=partition_key(("/owner",)))
            await database.create_container("exactlyonce", partition_key=partition_key(("/pk",)), default_ttl=-1)
            yield Bank(emulator, database)


def messages(*, timed: bool) -> Iterator[Envelope]:
    """Deposits of one each, an hour old and a second apart."""
    for number in range(MANY):
        at = SENT - timedelta(hours=1) + timedelta(seconds=number)
        one = replace(deposit(f"m-{number}", answers=0), time=at)
        yield replace(one, extensions=((STABLE_TIME, at.isoformat().replace("+00:00", "Z")),)) if timed else one


@pytest.mark.parametrize("timed", [True, False])
async def test_a_message_that_has_left_the_ledger_is_known_to_every_process_by_one_look(
    bank: Bank, timed: bool
) -> None:
    sent = tuple(messages(timed=timed))
    await bank.process(*sent)
    assert [page["version"] for page in await bank.pages()] == [32, 52]
    before = bank.emulator.last_request()
    await bank.process(sent[0], sent[MANY - 1])
    assert await bank.total() == MANY
    looks = [request for request in bank.emulator.requests(before) if request.operation == "query"]
    assert len(looks) == 1


async def test_a_page_that_is_gone_before_its_time_is_missed(bank: Bank) -> None:
    sent = tuple(messages(timed=True))
    await bank.process(*sent)
    for page in await bank.pages():
        await bank.library.delete_item(page["id"], page["pk"])
    with pytest.raises(DatabaseRestored):
        await bank.process(sent[0])
    assert await bank.total() == MANY


async def test_an_entity_that_was_put_back_goes_on_and_takes_what_it_has_not_seen(bank: Bank) -> None:
    """The page that its lost history left is in the way of the one that it leaves now."""
    sent = tuple(messages(timed=True))
    await bank.process(*sent[:40])
    container = bank.database.get_container_client("accounts")
    earlier = await container.read_item("a", "a")
    await bank.process(*sent[40:])
    await container.replace_item("a", dict(earlier))
    (lost,) = [page for page in await bank.pages() if page["version"] == 52]
    others = [replace(item, id=f"n-{item.id}") for item in sent[:10]]
    await bank.process(*others, *sent, *others)
    assert await bank.total() == MANY + len(others)
    pages = {page["version"]: page for page in await bank.pages()}
    assert [*pages] == [32, 52]
    assert (pages[52]["id"], pages[52]["marks"] != lost["marks"]) == (lost["id"], True)
