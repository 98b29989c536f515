"""The client of Cosmos DB: a single client per process, opened on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, Final
from urllib.request import getproxies

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.pipeline.transport import AioHttpTransport
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from exactlyonce.environment import default_credential
from exactlyonce.stores.cosmos.replies import FAILURES, Operation, answered_at, meaning_of

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 6
"""How long a send waits for its reply: the service gives an operation 5 s. The SDK's default is 65 s."""

REQUEST_CHARGE: Final = "x-ms-request-charge"

_ANY: Final = "-"


def cosmos_client(
    endpoint: str,
    credential: str | AsyncTokenCredential,
    charged: Callable[[float], None] | None = None,
    dated: Callable[[datetime], None] | None = None,
) -> CosmosClient:
    """A client with the settings that the protocols rely on. The callbacks are those of `CosmosConnection`."""
    latest = ""

    def report(response: Any) -> None:
        nonlocal latest
        headers = response.http_response.headers
        if charged is not None and (units := headers.get(REQUEST_CHARGE)) is not None:
            charged(float(units))
        if dated is not None and (date := headers.get("Date", "")) != latest:
            latest = date
            if (answered := answered_at(headers)) is not None:
                dated(datetime.fromtimestamp(answered, timezone.utc))

    return CosmosClient(
        endpoint,
        credential,
        # By default every request looks for a proxy, in threads, which takes a quarter of its CPU time.
        transport=AioHttpTransport(use_env_settings=bool(getproxies())),
        # Without it, on accounts of a stronger level, the SDK drops the session tokens of requests (measured with 4.17).
        consistency_level="Session",
        # The default escapes every character beyond ASCII, and a document in Greek would be three times its size.
        enable_compact_utf8_item_writes=True,
        connection_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        # A single repetition saves an attempt when an idle connection was closed; drivers repeat with more patience. A lost
        # reply to a write then often comes back as a conflict with oneself, which protocols have to survive in any case.
        retry_total=1,
        retry_connect=1,
        retry_read=1,
        # The SDK waits as long as the service asks, which no caller does for writes; but a query repeats in two nested loops
        # (measured: 10 times 10 sends with the default of 9), and a request should end within its time limit.
        retry_throttle_total=3,
        retry_throttle_backoff_max=5,
        raw_response_hook=report,
        # Neither `retry_write` nor an availability strategy: both send writes again on purpose.
    )


class CosmosConnection:
    """A client and the credential behind it, opened on first use and closed together.

    Args:
        endpoint: address of the account.
        database: name of the database with all containers.
        key: the account key; for local use. Without it, the credential is `DefaultAzureCredential`.
        client_id: client id of a user-assigned identity; None for the default identity.
        charged: called with the request units of every reply, in the task that waits for it; None for no call.
        dated: called with the service's time of replies, once a second at most; None for no call.
    """

    def __init__(
        self,
        endpoint: str,
        database: str,
        *,
        key: str | None = None,
        client_id: str | None = None,
        charged: Callable[[float], None] | None = None,
        dated: Callable[[datetime], None] | None = None,
    ) -> None:
        self.database = database
        self._endpoint = endpoint
        self._key = key
        self._client_id = client_id
        self._charged = charged
        self._dated = dated
        self._opening = asyncio.Lock()
        self._identity: AsyncTokenCredential | None = None
        self._client: CosmosClient | None = None
        self._containers: dict[str, ContainerProxy] = {}

    async def client(self) -> CosmosClient:
        """The client, open.

        Raises:
            ConfigurationError: the account refuses the credential.
            AzureError: the account could not be reached.
        """
        async with self._opening:
            return await self._opened()

    async def container(self, name: str) -> ContainerProxy:
        """A container that certainly exists. The first use reads it, as the SDK would, and a document of it.

        Raises:
            ConfigurationError: the container is absent, or the account refuses the credential.
            AzureError: the container could not be read.
        """
        async with self._opening:
            if name not in self._containers:
                client = await self._opened()
                container = client.get_database_client(self.database).get_container_client(name)
                try:
                    await _read_first(container)
                except FAILURES as error:
                    meaning_of(error, Operation.OPEN)
                    raise
                self._containers[name] = container
            return self._containers[name]

    async def close(self) -> None:
        """Close client and credential. A later use opens them again."""
        client, self._client = self._client, None
        identity, self._identity = self._identity, None
        self._containers.clear()
        if client is not None:
            await client.close()
        if identity is not None:
            await identity.close()

    async def _opened(self) -> CosmosClient:
        if self._client is None:
            client = cosmos_client(self._endpoint, self._key or self._own_identity(), self._charged, self._dated)
            try:
                await client.__aenter__()
            except BaseException as error:
                await client.close()
                if isinstance(error, FAILURES):
                    meaning_of(error, Operation.OPEN)
                raise
            self._client = client
        return self._client

    def _own_identity(self) -> AsyncTokenCredential:
        if self._identity is None:
            self._identity = default_credential(self._client_id)
        return self._identity


async def _read_first(container: ContainerProxy) -> None:
    """Read a container, and a document that need not exist, before the first write.

    The SDK (4.17) files the session token of a write whose reply has no body under the container's resource id, or under none
    before the first read. Containers whose first request is a write would share a file, and a read of a container would be
    asked to be as new as another container.
    """
    properties = await container.read()
    with suppress(CosmosResourceNotFoundError):
        await container.read_item(_ANY, [_ANY for _ in properties["partitionKey"]["paths"]])
