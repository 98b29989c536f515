"""Queues in memory, for tests and simulations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.publish import PUBLISHED
from exactlyonce.records.outputs import Output
from exactlyonce.transports.port import SendReply


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
