"""What a transport has to offer: sending, and saying how much one message may hold."""

from __future__ import annotations

from typing import Literal, Protocol

from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.publish import Published
from exactlyonce.records.outputs import Output

SendReply = Published | Literal[NoAnswer.UNKNOWN]


class AsyncTransport(Protocol):
    """A transport for the async driver."""

    @property
    def max_bytes(self) -> int:
        """Longest envelope it takes, in bytes."""
        ...

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        """Send to one queue or topic; PUBLISHED only if every output was accepted. It never raises for what the world does.

        Args:
            address: name of the queue or topic.
            outputs: in the order in which they were sent; the order of arrival is not promised.
        """
        ...
