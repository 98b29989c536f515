"""Blobs in memory, for tests and simulations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from exactlyonce.blobs.port import KeepReply
from exactlyonce.effects.blobs import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.port import Adapter, Awaited, performs
from exactlyonce.records.blobs import Blob, ListedBlob


@dataclass(frozen=True, slots=True)
class Written:
    """A blob, and when it was written by the clock of the place."""

    blob: Blob
    at: datetime


class MemoryBlobs(Adapter):
    """Takes everything, unless `outcome` says otherwise. Blocking; `AwaitedBlobs` makes it an `AsyncBlobs`.

    Args:
        now: the clock of the place.
        outcome: asked for each blob whether it arrives, and whether its sender gets a reply.
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
        """The blobs whose names begin like this, in the order of their names."""
        now = self._now()
        return [
            ListedBlob(name, one.blob.author, now - min(one.at, one.blob.author.at if one.blob.author else one.at))
            for name, one in sorted(self.written.items())
            if name.startswith(prefix)
        ]


class AwaitedBlobs(Awaited):
    """The same blobs for the async driver, read and listed as well.

    Args:
        blobs: that are kept.
        address: of the container.
    """

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
        for one in self._blobs.listed(prefix):
            yield one
