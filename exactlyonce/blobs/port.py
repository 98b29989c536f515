"""What a place for blobs has to offer: writing once, reading, and what clean-up needs.

As a store, it never raises into a strategy for what the world does to it. Reading and listing are not for strategies: they
raise `TryAgainLater` where there was no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from exactlyonce.effects.blobs import DeleteBlobs, Kept, WriteOnce
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.records.blobs import ListedBlob

KeepReply = Kept | Literal[NoAnswer.UNKNOWN]


class Blobs(Protocol):
    """Blobs for the blocking driver."""

    def write_once(self, effect: WriteOnce) -> KeepReply: ...
    def delete_blobs(self, effect: DeleteBlobs) -> None: ...


class AsyncBlobs(Protocol):
    """Blobs for the async driver, and for those who read them."""

    @property
    def address(self) -> str:
        """Of the container, without a slash at its end and without any secret; a blob's is this, `/` and its name."""
        ...

    async def write_once(self, effect: WriteOnce) -> KeepReply:
        """Create blobs; KEPT only if every one of them is there. One that was there before stays as it is."""
        ...

    async def read(self, name: str, limit: int) -> bytes | None:
        """The content of a blob, or its first `limit + 1` bytes if there are more; None if it is absent.

        Raises:
            TryAgainLater: it could not be read.
        """
        ...

    async def delete_blobs(self, effect: DeleteBlobs) -> None:
        """Delete those of the blobs that exist, best effort."""
        ...

    def list_blobs(self, prefix: str = "") -> AsyncIterator[ListedBlob]:
        """The blobs whose names begin like this, in the order of their names.

        Raises:
            TryAgainLater: they could not be listed.
        """
        ...
