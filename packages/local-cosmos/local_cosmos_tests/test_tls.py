"""Https, with the emulator's own certificate."""

from __future__ import annotations

import http.client
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.cosmos import CosmosClient as BlockingClient
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos_tests.commands import Process, run

KEY = PartitionKey("/pk")
DOCUMENT = {"id": "a", "pk": "p"}


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    with running_emulator(tls=True) as running:
        yield running


@pytest.fixture
async def client(emulator: RunningEmulator) -> AsyncIterator[CosmosClient]:
    async with CosmosClient(emulator.endpoint, emulator.key) as sdk:
        yield sdk


async def test_the_async_sdk_works_over_https(client: CosmosClient) -> None:
    container = await (await client.create_database("d")).create_container("c", KEY)
    await container.create_item(DOCUMENT)
    assert (await container.read_item("a", "p"))["id"] == "a"
    rows: list[Any] = [row async for row in container.query_items("SELECT VALUE c.id FROM c")]
    assert rows == ["a"]


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # The SDK never checks a certificate of this machine.
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_blocking_sdk_works_over_https_by_either_name(emulator: RunningEmulator, host: str) -> None:
    endpoint = emulator.endpoint.replace("127.0.0.1", host)
    with BlockingClient(endpoint, emulator.key) as client:
        container = client.create_database(host).create_container("c", KEY)
        container.create_item(DOCUMENT)
        assert container.read_item("a", "p")["id"] == "a"


def connect(endpoint: str, context: ssl.SSLContext) -> int:
    """The status of a request without authorization, from a client that checks certificates."""
    connection = http.client.HTTPSConnection(urlsplit(endpoint).netloc, context=context)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_client_that_knows_the_certificate_accepts_it_for_either_name(emulator: RunningEmulator, host: str) -> None:
    assert emulator.certificate is not None
    context = ssl.create_default_context(cadata=emulator.certificate.decode())
    assert connect(emulator.endpoint.replace("127.0.0.1", host), context) == 401


def test_a_client_that_does_not_know_the_certificate_refuses_it(emulator: RunningEmulator) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(emulator.endpoint, ssl.create_default_context())


# asyncio of Python 3.10 leaves the transport of a connection over TLS that is cut off to the garbage collector.
@pytest.mark.filterwarnings(*["ignore:unclosed transport:ResourceWarning"] * (sys.version_info < (3, 11)))
async def test_a_reply_can_be_lost_over_https_too(emulator: RunningEmulator, client: CosmosClient) -> None:
    container = await (await client.create_database("faulty")).create_container("c", KEY)
    emulator.add_fault(FaultRule("faulty", operations=("create",), when="before", action="reset", times=1))
    await container.create_item(DOCUMENT)
    assert [(counted.matched, counted.hit) for counted in emulator.faults()] == [(2, 1)]  # It was sent again.


def test_the_command_writes_its_certificate_to_the_given_path(tmp_path: Path) -> None:
    path = tmp_path / "certificate.pem"
    with Process("--tls", "--certificate", str(path)) as process:
        assert process.endpoint.startswith("https://127.0.0.1:")
        assert connect(process.endpoint, ssl.create_default_context(cafile=str(path))) == 401
        assert process.stop()[0] == 0


def test_a_certificate_without_https_is_refused() -> None:
    refused = run("--certificate", "nowhere.pem")
    assert refused.returncode == 2
    assert "--tls" in refused.stderr
