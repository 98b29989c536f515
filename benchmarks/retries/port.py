"""What a product is to the comparison of retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from benchmarks.peers.port import Peer


@dataclass(frozen=True, slots=True)
class Door:
    """Where a process takes requests.

    Attributes:
        address: beginning of the addresses.
        socket: a Unix socket; None for the network.
    """

    address: str
    socket: Path | None = None


class Serving(Protocol):
    """A product at work. A request for an entity has one effect: its key is counted. Its answer has a new id, and the total."""

    @property
    def path(self) -> str:
        """Of requests for `{entity}`."""
        ...

    @property
    def expiring(self) -> Mapping[str, str]:
        """Paths of requests whose keys can be let expire, each by how long its keys are known."""
        ...

    @property
    def processes(self) -> int:
        """How many can be killed."""
        ...

    @property
    def doors(self) -> Sequence[Door]:
        """Where it takes requests now."""
        ...

    async def restart(self, process: int) -> None:
        """End a process by SIGKILL, and start it again."""
        ...

    async def effects(self) -> Counter[str]:
        """How often each key was counted."""
        ...

    async def expire(self) -> None:
        """Let the keys of expiring requests expire, or at least begin to."""
        ...


Product: TypeAlias = Peer[Serving]
"""Something that answers requests."""
