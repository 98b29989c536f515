"""`exactlyonce doctor` on the local Cosmos and Azurite: what is wrong with accounts is found, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import azure.functions as func
import pytest
from azure.cosmos import ThroughputProperties
from azure.cosmos.aio import DatabaseProxy
from azure.storage.queue import QueueClient

from exactlyonce.cli.doctor import main
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.hosting import ExactlyOnce, StorageConnection
from exactlyonce.hosting.doctor import Finding, of_cosmos, of_queues, verified
from exactlyonce.stores.cosmos.client import cosmos_client
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.contract.conftest import partition_key
from tests.contract.starting import start
from tests.packaging.sources import ROOT

ALL: Any = {"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": []}
WITHOUT_HASHES: Any = {**ALL, "excludedPaths": [{"path": "/hashes/*"}]}
NOTHING: Any = {"indexingMode": "consistent", "includedPaths": [], "excludedPaths": [{"path": "/*"}]}


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite() as running:
        yield running


@pytest.fixture
async def database(emulator: RunningEmulator, environment: pytest.MonkeyPatch) -> AsyncIterator[DatabaseProxy]:
    """The accounts of the application, as they should be but for the indexes of `games` and of `hashes`."""
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        made = await client.create_database(f"db-{uuid4().hex}")
        await made.create_container("games", partition_key=partition_key(("/gameId",)), indexing_policy=NOTHING)
        await made.create_container(
            "boards", partition_key=partition_key(("/region", "/boardId")), offer_throughput=ThroughputProperties(4000)
        )
        await made.create_container(
            "exactlyonce", partition_key=partition_key(("/pk",)), default_ttl=-1, indexing_policy=WITHOUT_HASHES
        )
        for name, value in {
            "accountEndpoint": emulator.endpoint,
            "accountKey": emulator.key,
            "database": made.id,
        }.items():
            environment.setenv(f"COSMOS__{name}", value)
        yield made


async def seen(skew: timedelta = timedelta()) -> list[Finding]:
    once = start()
    try:
        return await of_cosmos(once, lambda: SystemClock().now() + skew)
    finally:
        await once.close()


def at(found: list[Finding], subject: str, level: str) -> list[str]:
    return [item.text for item in found if (item.subject, item.level) == (subject, level)]


async def test_a_search_without_an_index_is_found_and_costs_are_told(database: DatabaseProxy) -> None:
    found = await seen()
    owing, due = at(found, "container 'games'", "advice")
    assert "does not index /_ledger/outbox/[]/tx/?, so the sweeper reads the whole container every minute" in owing
    assert "does not index /_ledger/kept/[]/due/?" in due
    (library,) = at(found, "container 'exactlyonce'", "advice")
    assert "does not index /hashes/[]/?, so every look for an old message reads all" in library
    assert at(found, "container 'boards'", "cost") == ["4000 RU/s: about 234 USD a month"]
    assert [item for item in found if item.level in ("wrong", "unknown")] == []
    assert len([item for item in found if item.subject == "clock" and item.level == "fine"]) == 1


@pytest.mark.parametrize(
    ("seconds", "level", "words"), [(20, "advice", "ahead of"), (-20, "advice", "behind"), (90, "wrong", "ahead of")]
)
async def test_a_clock_that_is_off_is_found(database: DatabaseProxy, seconds: int, level: str, words: str) -> None:
    (text,) = at(await seen(timedelta(seconds=seconds)), "clock", level)
    assert words in text


@pytest.mark.parametrize("refused", ["read", "query", "replace", "delete"])
async def test_a_right_that_is_missing_is_found(
    database: DatabaseProxy, emulator: RunningEmulator, refused: str
) -> None:
    rule = {"container": "boards", "operations": (refused,), "when": "before", "action": "status", "status": 403}
    emulator.add_fault(FaultRule(database.id, **rule))  # type: ignore[arg-type]
    found = await seen()
    (text,) = at(found, "container 'boards'", "wrong")
    assert f"may not {refused}:" in text
    assert at(found, "container 'games'", "wrong") == []


async def test_problems_that_a_start_refuses_are_listed_one_by_one(database: DatabaseProxy) -> None:
    await database.delete_container("games")
    await database.delete_container("exactlyonce")
    once = start()
    found = await verified(once)
    await once.close()
    assert [item.level for item in found] == ["wrong", "wrong"]
    assert ["'games'" in found[0].text, "'exactlyonce'" in found[1].text] == [True, True]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("EXACTLYONCE__application", "another", "belongs to 'exactlyonce', and this is 'another'"),
        ("EXACTLYONCE__retention", "P40D", "EXACTLYONCE__retention is 40 days"),
    ],
)
async def test_a_container_of_another_application_is_found(
    database: DatabaseProxy, environment: pytest.MonkeyPatch, setting: str, value: str, words: str
) -> None:
    first = start()
    await first.operator()  # It stores whose the container is.
    await first.close()
    environment.setenv(setting, value)
    once = start()
    found = await verified(once)
    await once.close()
    (text,) = at(found, "application", "wrong")
    assert words in text


async def test_nothing_is_changed(database: DatabaseProxy) -> None:
    await seen()
    for name in ("games", "boards", "exactlyonce"):
        assert [item async for item in database.get_container_client(name).read_all_items()] == []


async def test_an_account_that_does_not_answer_is_told_in_a_sentence(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("COSMOS__accountEndpoint", "http://127.0.0.1:9/")
    environment.setenv("COSMOS__accountKey", "c2VjcmV0")
    (only,) = await seen()
    assert (only.level, only.subject) == ("unknown", "Cosmos DB")


def module(once: ExactlyOnce, *queues: str) -> ModuleType:
    """The module of a function app."""
    app = func.FunctionApp()
    for name in queues:

        async def take(message: func.QueueMessage) -> None:
            del message

        take.__name__ = f"take_{name.replace('-', '_')}"
        app.queue_trigger(arg_name="message", queue_name=name, connection="AzureWebJobsStorage")(take)
    made = ModuleType("app_of_a_doctor")
    made.once, made.app = once, app  # type: ignore[attr-defined]
    return made


async def test_the_command_prints_what_to_change_and_its_exit_code_says_whether_there_is_anything(
    database: DatabaseProxy,
    storage: Azurite,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment.setenv("AzureWebJobsStorage", storage.connection_string)
    environment.chdir(ROOT)
    name = f"orders-{uuid4().hex[:8]}"
    queues = [QueueClient.from_connection_string(storage.connection_string, item) for item in (name, f"{name}-poison")]
    for queue in queues:
        queue.create_queue()
    queues[1].send_message("one")
    environment.setitem(sys.modules, "app_of_a_doctor", module(start(), name, f"{name}-poison"))

    code = await asyncio.to_thread(main, ["--app", "app_of_a_doctor"])
    text = capsys.readouterr().out
    assert code == 1
    assert text.startswith("exactlyonce ")
    assert "Change this:\n- functions: no function has a timer" in text
    assert f"- queue '{name}-poison': 1 messages wait in it." in text
    assert f"- queue '{name}': 0 messages wait in it" in text
    assert "- application: it has never started" in text
    assert "Nothing has to be changed" not in text

    environment.setitem(sys.modules, "app_of_a_doctor", module(start(), name, f"{name}-poison"))
    assert await asyncio.to_thread(main, ["--app", "app_of_a_doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["versions"]["azure-cosmos"]
    assert {"level": "wrong", "subject": "functions"}.items() <= told["findings"][1].items()
    for queue in queues:
        queue.close()


def test_settings_that_are_missing_are_the_first_thing_it_says(
    environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "an_app_without_settings.py").write_text("from tests.contract.starting import start\nonce = start()\n")
    environment.delenv("COSMOS__database")
    environment.syspath_prepend(tmp_path)
    assert main(["--app", "an_app_without_settings"]) == 2
    assert "COSMOS__database is missing" in capsys.readouterr().err


async def test_queues_that_are_not_there_and_accounts_that_do_not_answer_are_told(storage: Azurite) -> None:
    there = StorageConnection(storage.connection_string)
    (absent,) = await of_queues(there, ["never-made", "never-made-poison"])
    assert (absent.level, absent.subject) == ("advice", "queue 'never-made'")
    away = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;QueueEndpoint=http://127.0.0.1:9/a;"
    (silent,) = await of_queues(StorageConnection(away), ["orders"])
    assert (silent.level, silent.text) == ("unknown", "the account did not answer: is it running?")
    wrong_key = there.account.replace("AccountKey=", "AccountKey=AAAA")
    (refused,) = await of_queues(StorageConnection(wrong_key), ["orders"])
    assert (refused.level, refused.text) == ("unknown", "the account refuses to show it to this identity")
