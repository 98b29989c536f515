"""Tokens of Entra ID: those that a test names are accepted, for data alone."""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos.inprocess import RunningEmulator, running_emulator

KNOWN = "a.b.c"


class Login:
    """A credential that gives one token.

    Args:
        token: that it gives.
    """

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *scopes: str, **options: object) -> AccessToken:
        del scopes, options
        return AccessToken(self._token, 4_102_444_800)

    async def close(self) -> None: ...

    async def __aenter__(self) -> Login:
        return self

    async def __aexit__(self, *error: object) -> None: ...


@pytest.fixture
async def emulator() -> AsyncIterator[RunningEmulator]:
    with running_emulator(tls=True, tokens=(KNOWN,)) as running:
        async with CosmosClient(running.endpoint, running.key) as owner:
            await (await owner.create_database("d")).create_container("c", PartitionKey("/pk"))
        yield running


async def test_a_token_that_is_accepted_reads_and_writes_items(emulator: RunningEmulator) -> None:
    async with CosmosClient(emulator.endpoint, Login(KNOWN)) as client:
        container = client.get_database_client("d").get_container_client("c")
        await container.create_item({"id": "a", "pk": "p"})
        assert (await container.read_item("a", "p"))["id"] == "a"
        rows: list[Any] = [item async for item in container.query_items("SELECT VALUE c.id FROM c")]
        assert rows == ["a"]


async def test_a_token_that_is_accepted_does_not_manage_containers(emulator: RunningEmulator) -> None:
    async with CosmosClient(emulator.endpoint, Login(KNOWN)) as client:
        with pytest.raises(CosmosHttpResponseError) as refused:
            await client.get_database_client("d").create_container("e", PartitionKey("/pk"))
        assert refused.value.status_code == 403


async def test_a_token_that_bears_the_key_as_tokens_for_emulators_do_is_accepted(emulator: RunningEmulator) -> None:
    key = base64.urlsafe_b64encode(emulator.key.encode()).decode().rstrip("=")
    async with CosmosClient(emulator.endpoint, Login(f"e30.e30.{key}")) as client:
        container = client.get_database_client("d").get_container_client("c")
        await container.create_item({"id": "a", "pk": "p"})


@pytest.mark.parametrize(("token", "status"), [(KNOWN, 200), ("x.y.z", 401), ("x.y.eg", 401), ("", 401)])
def test_any_other_token_is_refused(emulator: RunningEmulator, token: str, status: int) -> None:
    context = ssl.create_default_context(cadata=(emulator.certificate or b"").decode())
    connection = http.client.HTTPSConnection(urlsplit(emulator.endpoint).netloc, context=context)
    try:
        headers = {
            "Authorization": quote(f"type=aad&ver=1.0&sig={token}", safe=""),
            "x-ms-date": formatdate(usegmt=True),
        }
        connection.request("GET", "/", headers=headers)
        assert connection.getresponse().status == status
    finally:
        connection.close()
