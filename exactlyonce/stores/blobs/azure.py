"""Azure Blob Storage: a container of blobs, written once and never changed.

A blob is created by a single request (`If-None-Match: *`), so it is there as a whole or not at all. Exceptions of the SDK
become replies by the rules of `stores.cosmos.replies`: an error speaks only for the last send, and a fault that only an
operator can correct is raised as `ConfigurationError`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, unquote

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobProperties, ContentSettings
from azure.storage.blob.aio import ContainerClient

from exactlyonce.effects.effect import UNKNOWN, AsyncAdapter, performs
from exactlyonce.effects.library import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.environment import default_credential
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.blobs import Author, Blob, ListedBlob
from exactlyonce.stores.blobs.port import KeepReply
from exactlyonce.values.envelope import EntityRef

_FAILURES: Final = (AzureError, asyncio.TimeoutError)
_ALREADY_THERE: Final = ("BlobAlreadyExists", "ConditionNotMet")
_ABSENT: Final = ("BlobNotFound",)
_NO_CONTAINER: Final = ("ContainerNotFound", "ResourceNotFound")
_REFUSED: Final = (401, 403)
_EMPTY: Final = 416  # The reply of a blob without content to a request for its first bytes.
_MAX_METADATA_BYTES: Final = 8_000
"""The service takes 8 KiB of names and values."""

_SETTINGS: Final[dict[str, Any]] = {
    # Larger blobs are sent in blocks, invisible before the last request: a larger body would keep the event loop busy.
    "max_single_put_size": 1024 * 1024,
    "max_block_size": 1024 * 1024,
    # As for queues: the SDK's default waits 15 s before a repetition, and a minute for a reply.
    "initial_backoff": 1,
    "increment_base": 2,
    "random_jitter_range": 1,
    "retry_total": 2,
    "connection_timeout": 5,
    "read_timeout": 10,
}

Reply = TypeVar("Reply")
_log = logging.getLogger(__name__)


class AzureBlobs(AsyncAdapter):
    """Blobs in a container, which has to exist.

    Every method raises `ConfigurationError` for faults that only an operator can correct: a wrong key, a missing role, no
    container.

    Args:
        account: a connection string, or the address of the account's blob service (`https://….blob.core.windows.net`).
        container: name of the container.
        credential: for an address; its owner closes it. Without it, the store opens a `DefaultAzureCredential`, and closes it.
        time_limit: most seconds of a write or a read of a blob, with its repetitions.
        concurrency: most blobs on their way at the same time.

    Raises:
        ConfigurationError: the connection string does not name an account.
    """

    def __init__(
        self,
        account: str,
        container: str,
        credential: AsyncTokenCredential | None = None,
        *,
        time_limit: float = 60.0,
        concurrency: int = 8,
    ) -> None:
        self._account = account
        self._name = container
        self._credential = credential
        self._own_credential: AsyncTokenCredential | None = None
        self._time_limit = time_limit
        self._on_their_way = asyncio.Semaphore(concurrency)
        self._open: ContainerClient | None = None
        try:
            # Without its query, which may be a shared access signature: addresses travel in messages.
            self._address = self._client(None).url.partition("?")[0]
        except ValueError:
            raise ConfigurationError(
                "The connection string of the storage account names no account. Copy it from the account's access keys."
            ) from None  # The cause might quote it.

    @property
    def address(self) -> str:
        return self._address

    async def verify(self) -> None:
        """Check that the container exists.

        Raises:
            ConfigurationError: the container is absent, or the account refuses the credential.
            TryAgainLater: the account did not answer.
        """
        try:
            await asyncio.wait_for(self._container().get_container_properties(), self._time_limit)
        except _FAILURES as error:
            self._give_up(error)

    @performs(WriteOnce)
    async def write_once(self, effect: WriteOnce) -> KeepReply:
        kept = await asyncio.gather(*(self._write(blob) for blob in effect.blobs))
        return KEPT if all(kept) else UNKNOWN

    async def read(self, name: str, limit: int) -> bytes | None:
        async def read() -> bytes:
            blob = self._container().get_blob_client(name)
            return await (await blob.download_blob(offset=0, length=limit + 1)).readall()

        try:
            return await self._ask(read)
        except _FAILURES as error:
            if _code(error) in _ABSENT:
                return None
            if _status(error) == _EMPTY:
                return b""
            self._give_up(error)

    @performs(DeleteBlobs)
    async def delete_blobs(self, effect: DeleteBlobs) -> None:
        await asyncio.gather(*(self._delete(name) for name in effect.names))

    async def list_blobs(self, prefix: str = "") -> AsyncIterator[ListedBlob]:
        dates: list[datetime] = []
        listing = self._container().list_blobs(
            name_starts_with=prefix or None,
            include=["metadata"],
            raw_response_hook=lambda response: dates.append(_date(response.http_response.headers)),
        )
        pages = listing.by_page()
        while True:
            try:
                page = await asyncio.wait_for(anext(pages, None), self._time_limit)
            except _FAILURES as error:
                self._give_up(error)
            if page is None:
                return
            async for blob in page:
                yield _listed(blob, dates[-1])

    async def close(self) -> None:
        """Close the client, and the credential if it was opened here. A later use opens both again."""
        client, self._open = self._open, None
        credential, self._own_credential = self._own_credential, None
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _write(self, blob: Blob) -> bool:
        """Whether the blob is there."""
        client, settings = self._container().get_blob_client(blob.name), ContentSettings(content_type=blob.type)
        options: dict[str, Any] = {"content_settings": settings, "metadata": _metadata(blob.author)}
        try:
            await self._ask(lambda: client.upload_blob(blob.content, overwrite=False, max_concurrency=4, **options))
        except _FAILURES as error:
            if _code(error) in _ALREADY_THERE:
                return True  # One's own earlier send, whose reply was lost.
            self._require_set_up(error)
            _log.warning("could not write blob %s: %s, %s", blob.name, type(error).__name__, _code(error))
            return False
        return True

    async def _delete(self, name: str) -> None:
        client = self._container().get_blob_client(name)
        try:
            await self._ask(lambda: client.delete_blob(delete_snapshots="include"))
        except _FAILURES as error:
            if _code(error) in _ABSENT:
                return
            self._require_set_up(error)
            _log.warning("could not delete blob %s: %s, %s", name, type(error).__name__, _code(error))

    async def _ask(self, request: Callable[[], Awaitable[Reply]]) -> Reply:
        async with self._on_their_way:
            return await asyncio.wait_for(request(), self._time_limit)

    def _give_up(self, error: Exception) -> NoReturn:
        self._require_set_up(error)
        raise TryAgainLater(
            f"The blob container {self._address} did not answer ({type(error).__name__}, {_code(error)}). If this stays, check "
            "the connection's blobServiceUri and the network."
        ) from error

    def _require_set_up(self, error: Exception) -> None:
        if _code(error) in _NO_CONTAINER:
            raise ConfigurationError(
                f"There is no blob container {self._address}: create it, or correct EXACTLYONCE__blobContainer."
            ) from error
        if _status(error) in _REFUSED:
            raise ConfigurationError(
                f"The storage account refuses access to the blob container {self._address} ({_status(error)}, {_code(error)}). "
                "Give the identity the role 'Storage Blob Data Contributor' on it, and let the network it calls from through "
                "the account's firewall; with a connection string, check its key, and the clock."
            ) from error

    def _container(self) -> ContainerClient:
        if self._open is None:
            if "=" not in self._account and self._credential is None:
                self._own_credential = default_credential()
            self._open = self._client(self._credential or self._own_credential)
        return self._open

    def _client(self, credential: AsyncTokenCredential | None) -> ContainerClient:
        if "=" in self._account:
            return ContainerClient.from_connection_string(self._account, self._name, **_SETTINGS)
        return ContainerClient(self._account, self._name, credential, **_SETTINGS)


def _code(error: Exception) -> str | None:
    code = getattr(error, "error_code", None)
    return None if code is None else str(getattr(code, "value", code))


def _status(error: Exception) -> int | None:
    return getattr(error, "status_code", None)


def _metadata(author: Author | None) -> dict[str, str] | None:
    """Author as metadata, which are headers: quoted, since messages may have any name."""
    if author is None:
        return None
    metadata = {
        "entity": quote(author.entity.key, safe=""),
        "message": quote(author.message, safe=""),
        "tx": quote(author.tx, safe=""),
        "at": author.at.isoformat(),
        **({} if author.told is None else {"told": quote(author.told, safe="")}),
    }
    # A blob whose author does not fit is written all the same; clean-up will never judge it.
    return metadata if sum(len(name) + len(value) for name, value in metadata.items()) <= _MAX_METADATA_BYTES else None


def _author(metadata: dict[str, str] | None) -> Author | None:
    try:
        fields = {name: unquote(value) for name, value in (metadata or {}).items()}
        type, *partition, id = json.loads(fields["entity"])
        at = datetime.fromisoformat(fields["at"]).astimezone(timezone.utc)
        return Author(EntityRef(type, tuple(partition), id), fields["message"], fields["tx"], at, fields.get("told"))
    except (KeyError, TypeError, ValueError):
        return None  # A foreign blob.


def _listed(blob: BlobProperties, now: datetime) -> ListedBlob:
    author = _author(blob.metadata)
    written = min(blob.creation_time, author.at) if author else blob.creation_time
    return ListedBlob(blob.name, author, max(now - written, timedelta(0)))


def _date(headers: Any) -> datetime:
    """When the service replied; the beginning of time without a date, so that no blob seems old."""
    date = headers.get("Date")
    return parsedate_to_datetime(date) if date else datetime.fromtimestamp(0, tz=timezone.utc)
