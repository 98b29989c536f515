"""Blob stores perform the effects of `effects.blobs`; claim checks and clean-up read and list as well.

Reading and listing are no effects: they raise `TryAgainLater` where there was no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, NoReturn, Protocol

from exactlyonce.effects.blobs import Kept
from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.effects.port import AsyncPort
from exactlyonce.errors import ConfigurationError
from exactlyonce.records.blobs import ListedBlob

KeepReply = Kept | Literal[NoAnswer.UNKNOWN]


class AsyncBlobs(AsyncPort, Protocol):
    """Blobs for the async driver, for claim checks and for clean-up."""

    @property
    def address(self) -> str:
        """Of the container, without a slash at its end and without any secret; a blob's is this, `/` and its name."""
        ...

    async def read(self, name: str, limit: int) -> bytes | None:
        """The content of a blob, or its first `limit + 1` bytes if there are more; None if it is absent.

        Raises:
            TryAgainLater: it could not be read.
        """
        ...

    def list_blobs(self, prefix: str = "") -> AsyncIterator[ListedBlob]:
        """The blobs whose names begin like this, in the order of their names.

        Raises:
            TryAgainLater: they could not be listed.
        """
        ...


class NoBlobs:
    """The port where no container for blobs is configured."""

    def perform(self, effect: Effect[Any]) -> NoReturn:  # noqa: ARG002
        """Refuse the effect.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("There is no container for blobs. Name one in the setting EXACTLYONCE__blobContainer.")
