"""`make test-azure`, tried on the local stack: it says what it lacks, runs on what settings name, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from azure.cosmos import CosmosClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from exactlyonce.stores.cosmos.client import cosmos_client
from exactlyonce.testing.contracts.samples import ENTITY_TYPES
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology
from tests.contract.conftest import create_containers

ROOT = Path(__file__).parents[2]
SOME = "envelope_arrives or what_was_written_is_read or parked or written_twice or books_are or listed_once or over_together"
"""One or two tests of each suite, so that every kind of document is written. All of them run on this stack as they are."""


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite(blob=True) as running:
        yield running


def make_test_azure(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the suites with these settings and no others."""
    kept = {"PATH": os.environ["PATH"], "EXACTLYONCE_TEST_AZURE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/azure", *arguments]
    return subprocess.run(command, cwd=ROOT, env=kept | settings, capture_output=True, text=True, check=False)


def test_without_settings_it_names_all_that_it_lacks_and_runs_nothing() -> None:
    ran = make_test_azure()
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    for lacking in ("COSMOS__accountEndpoint", "COSMOS__database", "AzureWebJobsStorage", "CONTRIBUTING.md"):
        assert lacking in ran.stderr
    half = {"COSMOS__accountEndpoint": "https://a/", "COSMOS__database": "d"}
    ran = make_test_azure(**half, AzureWebJobsStorage__queueServiceUri="https://a.queue.core.windows.net")
    assert "AzureWebJobsStorage__blobServiceUri" in ran.stderr


async def test_suites_run_on_the_accounts_that_settings_name_and_leave_nothing_behind(
    emulator: RunningEmulator, storage: Azurite
) -> None:
    name = f"db-{uuid4().hex}"
    async with cosmos_client(emulator.endpoint, emulator.key) as client:
        await create_containers(await client.create_database(name))
    ran = make_test_azure(
        *("-k", SOME, "-rs"),
        COSMOS__accountEndpoint=emulator.endpoint,
        COSMOS__accountKey=emulator.key,
        COSMOS__database=name,
        AzureWebJobsStorage=storage.connection_string,
    )
    assert ran.returncode == 0, ran.stdout
    assert "No setting names a namespace of Service Bus" in ran.stdout
    assert len(emulator.history(name)) > 10
    with CosmosClient(emulator.endpoint, emulator.key) as cosmos:
        database = cosmos.get_database_client(name)
        left = {
            kind: [*database.get_container_client(kind).read_all_items()] for kind in (*ENTITY_TYPES, "exactlyonce")
        }
    assert not any(left.values()), left
    with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
        assert [*queues.list_queues()] == []
    with BlobServiceClient.from_connection_string(storage.connection_string) as blobs:
        assert [*blobs.list_containers()] == []


def test_where_a_namespace_is_named_its_queues_are_tested_too() -> None:
    queues = (Queue("contract-1"), Queue("contract-2"), Queue("contract-sessions", requires_session=True))
    with endpoint(Topology(queues)) as bus:
        ran = make_test_azure(
            *("-k", "test_service_bus"),
            COSMOS__accountEndpoint="https://a/",
            COSMOS__database="d",
            AzureWebJobsStorage__queueServiceUri="https://a.queue.core.windows.net",
            AzureWebJobsStorage__blobServiceUri="https://a.blob.core.windows.net",
            ServiceBus=bus.connection_string,
        )
        assert ran.returncode == 0, ran.stdout
        assert "10 passed" in ran.stdout
        assert [bus.counts(queue.name).active for queue in queues] == [0, 0, 0]
