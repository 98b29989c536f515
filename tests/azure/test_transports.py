"""Queues and blobs do on a real account what every transport and every place for blobs has to do."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from uuid import uuid4

import pytest
from azure.identity.aio import DefaultAzureCredential
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from exactlyonce.stores.blobs.azure import AzureBlobs
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.testing.contracts.blobs import BlobContract
from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.transports.storage_queue import StorageQueueTransport
from exactlyonce.values.frozen_json import Json
from tests.azure.conftest import Environment
from tests.unreliable import without_replies


class TestStorageQueuesInAzure(TransportContract):
    """On queues that each test makes up, and deletes."""

    @pytest.fixture(autouse=True)
    async def _queues(self, environment: Environment, credential: DefaultAzureCredential | None) -> AsyncIterator[None]:
        account, self._used = environment[1].account, set[str]()
        if credential is None:
            self._service = QueueServiceClient.from_connection_string(account)
        else:
            self._service = QueueServiceClient(account, credential)
        async with self._service:
            yield
            made = {queue.name async for queue in self._service.list_queues(name_starts_with="contract-")}
            for name in made & self._used:
                await self._service.delete_queue(name)

    @pytest.fixture
    async def transport(
        self, environment: Environment, credential: DefaultAzureCredential | None
    ) -> AsyncIterator[AsyncTransport]:
        transport = StorageQueueTransport(environment[1].account, credential)
        yield transport
        await transport.close()

    def address(self) -> str:
        address = super().address()
        self._used.add(address)
        return address

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        messages = self._service.get_queue_client(address).receive_messages(messages_per_page=32)
        return [Json(base64.b64decode(message.content, validate=True).decode()) async for message in messages]

    def unanswered(self, transport: AsyncTransport) -> AbstractContextManager[None]:
        assert isinstance(transport, StorageQueueTransport)
        return without_replies(transport)


class TestBlobsInAzure(BlobContract):
    """In a container that each test makes up, and deletes."""

    @pytest.fixture
    async def blobs(
        self, environment: Environment, credential: DefaultAzureCredential | None
    ) -> AsyncIterator[AsyncBlobs]:
        account, name = environment[1].blobs, f"contract-{uuid4().hex}"
        assert account is not None
        if credential is None:
            service = BlobServiceClient.from_connection_string(account)
        else:
            service = BlobServiceClient(account, credential)
        blobs = AzureBlobs(account, name, credential)
        async with service:
            await service.create_container(name)
            try:
                yield blobs
            finally:
                await blobs.close()
                await service.delete_container(name)
