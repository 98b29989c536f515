"""The port of transports: sending, and the longest envelope; and its adapter in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Literal, Protocol

from exactlyonce.effects.effect import UNKNOWN, NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Published
from exactlyonce.records.outbox import Output

SendReply = Published | Literal[NoAnswer.UNKNOWN]


class AsyncTransport(Protocol):
    """A transport for the async driver."""

    @property
    def max_bytes(self) -> int:
        """Longest envelope, in bytes."""

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        """Send to a queue or topic; PUBLISHED only if every output was accepted. Faults of the world raise no error.

        Args:
            address: name of the queue or topic.
            outputs: in the order in which they were sent; the order of arrival is not promised.
        """


# Queues in memory, for tests and simulations.


class MemoryTransport:
    """Accepts everything, unless `outcome` says otherwise.

    Args:
        max_bytes: longest envelope.
        outcome: asked for each output whether it arrives, and whether its sender gets a reply.
    """

    def __init__(
        self,
        max_bytes: int = 48 * 1024,
        outcome: Callable[[Output], tuple[bool, bool]] = lambda _: (True, True),
    ) -> None:
        self._max_bytes = max_bytes
        self._outcome = outcome
        self.queues: dict[str, list[Output]] = defaultdict(list)

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        answered = True
        for output in outputs:
            arrives, replies = self._outcome(output)
            if arrives:
                self.queues[address].append(output)
            answered = answered and arrives and replies
        return PUBLISHED if answered else UNKNOWN
