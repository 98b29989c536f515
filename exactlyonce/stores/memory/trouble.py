"""The fault model as a port of the memory store: what the world may do to a write or a read."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Fate(Enum):
    """What becomes of one write."""

    ANSWERED = "answered"
    LOST_BEFORE = "lost before applying"
    LOST_AFTER = "applied, the reply lost"
    REPEATED = "applied, the reply lost, sent again by the client library"
    DELAYED = "takes effect later, whatever its sender does meanwhile"
    BUSY = "refused, not applied"


class Trouble(Protocol):
    """Decides the fate of writes and the age of views. Injected, so that a test can script it or seed it."""

    def fate(self, operation: str) -> Fate:
        """The fate of one write; `operation` is the name of the store's method."""
        ...

    def replica(self, newest: int) -> int:
        """The position of the replica that answers one read: 0 (empty) to `newest`."""
        ...


class NoTrouble:
    """A world in which every write is answered and every read is fresh."""

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        return Fate.ANSWERED

    def replica(self, newest: int) -> int:
        return newest
