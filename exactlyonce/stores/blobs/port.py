"""The port of blob stores, and its adapter in memory.

Blob stores perform `WriteOnce` and `DeleteBlobs`; claim checks and clean-up read and list as well. Reading and listing are no
effects: they raise `TryAgainLater` without an answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, NoReturn, Protocol

from exactlyonce.effects.effect import UNKNOWN, Adapter, AsyncPort, Awaited, Effect, NoAnswer, performs
from exactlyonce.effects.library import KEPT, DeleteBlobs, Kept, WriteOnce
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.blobs import Blob, ListedBlob

KeepReply = Kept | Literal[NoAnswer.UNKNOWN]


class AsyncBlobs(AsyncPort, Protocol):
    """Blobs for the async driver, for claim checks and for clean-up."""

    @property
    def address(self) -> str:
        """Address of the container, without a final slash and without any secret; a blob's address adds `/` and its name."""

    async def read(self, name: str, limit: int) -> bytes | None:
        """The content of a blob, or its first `limit + 1` bytes if there are more; None if it is absent.
        Raises `TryAgainLater`: the blob could not be read."""

    def list_blobs(self, prefix: str = "") -> AsyncIterator[ListedBlob]:
        """The blobs whose names begin with `prefix`, in the order of their names.
        Raises `TryAgainLater`: the blobs could not be listed."""


class NoBlobs:
    """The port where no container for blobs is configured."""

    def perform(self, effect: Effect[Any]) -> NoReturn:  # noqa: ARG002
        """Refuse the effect. Raises `ConfigurationError`: always."""
        raise ConfigurationError("There is no container for blobs. Name one in the setting EXACTLYONCE__blobContainer.")


# Blobs in memory, for tests and simulations.


@dataclass(frozen=True, slots=True)
class Written:
    """A blob, and the time of its write by the store's clock."""

    blob: Blob
    at: datetime


class MemoryBlobs(Adapter):
    """Accepts everything, unless `outcome` says otherwise. Blocking; `AwaitedBlobs` makes it an `AsyncBlobs`.

    Args:
        now: the store's clock.
        outcome: whether a blob arrives, and whether the sender gets a reply.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        outcome: Callable[[Blob], tuple[bool, bool]] = lambda _: (True, True),
    ) -> None:
        self._now = now
        self._outcome = outcome
        self.written: dict[str, Written] = {}

    @performs(WriteOnce)
    def write_once(self, effect: WriteOnce) -> KeepReply:
        answered = True
        for blob in effect.blobs:
            arrives, replies = self._outcome(blob)
            if arrives:
                self.written.setdefault(blob.name, Written(blob, self._now()))
            answered = answered and arrives and replies
        return KEPT if answered else UNKNOWN

    @performs(DeleteBlobs)
    def delete_blobs(self, effect: DeleteBlobs) -> None:
        for name in effect.names:
            self.written.pop(name, None)

    def listed(self, prefix: str = "") -> list[ListedBlob]:
        """The blobs whose names begin with `prefix`, in the order of their names."""
        now = self._now()
        return [
            ListedBlob(name, item.blob.author, now - min(item.at, item.blob.author.at if item.blob.author else item.at))
            for name, item in sorted(self.written.items())
            if name.startswith(prefix)
        ]


class AwaitedBlobs(Awaited):
    """The same blobs for the async driver, read and listed as well."""

    def __init__(self, blobs: MemoryBlobs, address: str = "memory://blobs") -> None:
        super().__init__(blobs)
        self._blobs = blobs
        self._address = address

    @property
    def address(self) -> str:
        return self._address

    async def read(self, name: str, limit: int) -> bytes | None:
        written = self._blobs.written.get(name)
        return None if written is None else written.blob.content[: limit + 1]

    async def list_blobs(self, prefix: str = "") -> AsyncIterator[ListedBlob]:
        for item in self._blobs.listed(prefix):
            yield item
