"""Blobs in Azure do what every place for blobs has to do; on Azurite."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timezone
from uuid import uuid4

import pytest
from azure.storage.blob.aio import ContainerClient

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.effects.library import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.stores.blobs.azure import AzureBlobs
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.testing.contracts.blobs import BlobContract, a_blob, listed
from exactlyonce.values.envelope import EntityRef
from function_host.azurite import ACCOUNT_KEY, Azurite, azurite


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite(blob=True) as running:
        yield running


@pytest.fixture
async def container(storage: Azurite) -> AsyncIterator[ContainerClient]:
    name = f"container-{uuid4().hex}"
    async with ContainerClient.from_connection_string(storage.connection_string, name) as client:
        await client.create_container()
        yield client


@pytest.fixture
async def azure_blobs(storage: Azurite, container: ContainerClient) -> AsyncIterator[AzureBlobs]:
    blobs = AzureBlobs(storage.connection_string, container.container_name)
    yield blobs
    await blobs.close()


class TestAzureBlobs(BlobContract):
    @pytest.fixture
    def blobs(self, azure_blobs: AzureBlobs) -> AsyncBlobs:
        return azure_blobs


async def test_everybody_else_reads_it_at_its_address(
    azure_blobs: AzureBlobs, container: ContainerClient, storage: Azurite
) -> None:
    blob = Blob("account/a/5f/notes/letter.txt", "ÄÖÜ".encode(), "text/plain; charset=utf-8")
    assert await azure_blobs.perform(WriteOnce((blob,))) is KEPT
    assert azure_blobs.address == f"{storage.blob_uri}/{container.container_name}"
    client = container.get_blob_client(blob.name)
    assert client.url == f"{azure_blobs.address}/{blob.name}"
    found = await client.download_blob()
    assert await found.readall() == blob.content
    assert found.properties.content_settings.content_type == blob.type


async def test_a_container_that_is_there_is_fit_and_one_that_is_not_is_reported(
    azure_blobs: AzureBlobs, storage: Azurite
) -> None:
    await azure_blobs.verify()
    absent = AzureBlobs(storage.connection_string, "absent")
    requests = (
        absent.verify,
        lambda: absent.perform(WriteOnce((a_blob(b"x"),))),
        lambda: absent.read("a", 10),
        lambda: absent.perform(DeleteBlobs(("a",))),
        lambda: listed(absent, ""),
    )
    for request in requests:
        with pytest.raises(
            ConfigurationError, match=r"no blob container http.*/absent: create it, or correct EXACTLYONCE"
        ):
            await request()
    await absent.close()


async def test_a_key_that_is_refused_is_reported_and_never_shown(container: ContainerClient, storage: Azurite) -> None:
    wrong = base64.b64encode(b"not the key").decode()
    blobs = AzureBlobs(storage.connection_string.replace(ACCOUNT_KEY, wrong), container.container_name)
    requests = (blobs.verify, lambda: blobs.perform(WriteOnce((a_blob(b"x"),))), lambda: blobs.read("a", 10))
    for request in requests:
        with pytest.raises(ConfigurationError, match=r"refuses access.*403.*Storage Blob Data Contributor") as caught:
            await request()
        assert wrong not in str(caught.value)
    await blobs.close()


async def test_an_account_that_does_not_answer_may_do_so_later(container: ContainerClient) -> None:
    blobs = AzureBlobs(
        f"AccountName=a;AccountKey={ACCOUNT_KEY};BlobEndpoint=http://127.0.0.1:9/a", "some", time_limit=0.5
    )
    for request in (blobs.verify, lambda: blobs.read("a", 10), lambda: listed(blobs, "")):
        with pytest.raises(TryAgainLater, match=r"http://127.0.0.1:9/a/some did not answer"):
            await request()
    await blobs.close()


async def test_a_client_that_was_closed_opens_again(azure_blobs: AzureBlobs) -> None:
    for _ in range(2):
        assert await azure_blobs.perform(WriteOnce((a_blob(b"x"),))) is KEPT
        await azure_blobs.close()
        await azure_blobs.close()


async def test_a_blob_whose_author_has_no_room_in_its_metadata_is_written_and_belongs_to_nobody(
    azure_blobs: AzureBlobs,
) -> None:
    at = datetime.now(timezone.utc)
    for length, known in ((1_000, True), (10_000, False)):
        author = Author(EntityRef("a", ("a",), "a"), "m" * length, "5f", at)
        blob = Blob(f"long/{length}", b"x", "t/x", author)
        assert await azure_blobs.perform(WriteOnce((blob,))) is KEPT
        (found,) = await listed(azure_blobs, blob.name)
        assert (found.author == author, found.author is None) == (known, not known)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"entity": "[]"},
        {"entity": '["a"]', "message": "m", "tx": "t", "at": "2026-01-01T00:00:00+00:00"},
        {"entity": '["a", "b"]', "message": "m", "tx": "t", "at": "yesterday"},
        {"entity": "a", "message": "m", "tx": "t", "at": "2026-01-01T00:00:00+00:00"},
        {"entity": "7", "message": "m", "tx": "t", "at": "2026-01-01T00:00:00+00:00"},
    ],
)
async def test_blobs_of_others_belong_to_nobody(
    azure_blobs: AzureBlobs, container: ContainerClient, metadata: dict[str, str]
) -> None:
    await container.get_blob_client("foreign").upload_blob(b"x", metadata=metadata)
    (found,) = await listed(azure_blobs, "foreign")
    assert found.author is None


async def test_a_blob_with_snapshots_is_deleted_with_them(azure_blobs: AzureBlobs, container: ContainerClient) -> None:
    blob = a_blob(b"x")
    await azure_blobs.perform(WriteOnce((blob,)))
    await container.get_blob_client(blob.name).create_snapshot()
    await azure_blobs.perform(DeleteBlobs((blob.name,)))
    assert await listed(azure_blobs, blob.name) == []
