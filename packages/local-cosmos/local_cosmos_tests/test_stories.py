"""Stories: what an emulator was asked is recorded, and ends the same way when it is played again."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient, PartitionKey

from local_cosmos.cli import main
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.replaying import Replay
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.replicas import Lag

pytest_plugins = ["pytester"]

PLUGIN = ["-p", "local_cosmos.pytest_plugin", "-p", "no:asyncio"]
"""Installed, the package brings it along."""

TEST = """
import pytest
from azure.cosmos import CosmosClient

@pytest.mark.local_cosmos(now=1_800_000_000, consistency="Strong")
def test_of_a_marked_account(local_cosmos):
    assert local_cosmos.now() == 1_800_000_000
    with CosmosClient(local_cosmos.endpoint, local_cosmos.key) as client:
        assert client.get_database_account().ConsistencyPolicy == {"defaultConsistencyLevel": "Strong"}

@pytest.mark.parametrize("name", ["a", "b"])
def test_that_fails(local_cosmos, name):
    with CosmosClient(local_cosmos.endpoint, local_cosmos.key) as client:
        client.create_database("shop")
    assert name == "a"
"""


def trouble(emulator: RunningEmulator) -> None:
    """Some of everything that chance and time decide."""
    with CosmosClient(emulator.endpoint, emulator.key) as client:
        database = client.create_database("shop")
        orders = database.create_container("orders", PartitionKey("/customer"), default_ttl=60)
        emulator.set_lag("shop", "orders", Lag(3, varying=True, seed=5))
        emulator.add_fault(
            FaultRule("shop", operations=("replace",), when="later", action="status", status=408, after_writes=2)
        )
        emulator.add_fault(
            FaultRule("shop", operations=("upsert",), action="status", status=429, probability=0.5, seed=3)
        )
        for number in range(10):
            item: dict[str, Any] = {"id": f"{number % 4}", "customer": "ada", "text": "\ud800é", "n": number}
            with suppress(AzureError):
                orders.upsert_item(item)
            with suppress(AzureError):
                orders.replace_item(item["id"], item)
        emulator.split("shop", "orders", "0")
        emulator.advance_clock(61)
        emulator.release_delayed_writes()
        orders.upsert_item({"id": "new", "customer": "ada"})
        list(orders.query_items("SELECT * FROM c ORDER BY c.n", partition_key="ada"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Any], list[Any]]]:
    """A story, and the history and the requests of the emulator that it was recorded from."""
    file = tmp_path_factory.mktemp("stories") / "story.jsonl"
    with running_emulator(AccountSettings(partitions=2), story=file) as emulator:
        trouble(emulator)
        yield file, emulator.history(), emulator.requests()


def test_a_story_ends_the_same_way_when_it_is_played_again(story: tuple[Path, list[Any], list[Any]]) -> None:
    file, history, requests = story
    replay = Replay(file)
    assert replay.differences() == []
    assert replay.emulator.history.read() == history
    played = replay.emulator.log.read()
    assert [(item.operation, item.status, item.fault) for item in played] == [
        (request.operation, request.status, request.fault) for request in requests
    ]


def test_what_is_answered_otherwise_is_named(
    story: tuple[Path, list[Any], list[Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = story[0]
    lines = file.read_text().splitlines()
    (number, first) = next((n, line) for n, line in enumerate(lines) if '"operation": "upsert"' in line)
    changed = json.loads(first)
    changed["reply"]["status"] = 418
    lines[number] = json.dumps(changed)
    (tmp_path / "other.jsonl").write_text("\n".join(lines))
    assert main(["--replay", str(file)]) == 0
    assert main(["--replay", str(tmp_path / "other.jsonl")]) == 1
    assert f"other.jsonl:{number + 1}: upsert was answered {{'status': 418" in capsys.readouterr().out
    (tmp_path / "none.jsonl").write_text("{}")
    assert main(["--replay", str(tmp_path / "none.jsonl")]) == 2


def test_pytest_gives_each_test_an_emulator_and_keeps_the_stories_of_failures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_app=TEST)
    gc.collect()  # What other tests left would be warned of in there.
    result = pytester.runpytest_inprocess("--local-cosmos-stories", "stories", *PLUGIN)
    result.assert_outcomes(passed=2, failed=1)
    (kept,) = (pytester.path / "stories").iterdir()
    assert kept.name == "test_app.py-test_that_fails-b-.jsonl"
    assert Replay(kept).differences() == []
