"""The returner: sends messages that failed because of their environment to their queues once more.

The delay doubles each time, up to `LONGEST_DELAY`, and is drawn between half of it and all of it. So the messages of a long
outage are spread over minutes when the environment answers again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from exactlyonce.attempt import Again, Memory, key_of
from exactlyonce.drivers.deadlines import Deadline
from exactlyonce.effects.effect import Step
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.upkeep.maintenance import Maintenance
from exactlyonce.protocols.steps.give_back import Returned, give_back, send
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

FIRST_DELAY: Final = 10.0
"""Longest delay of the first return, in seconds; it doubles with each further return."""
LONGEST_DELAY: Final = 300.0
"""Longest delay of any return, in seconds. Recovery from an outage takes this, and a host's deliveries."""
UNEXPLAINED_ROUNDS: Final = 3
"""Returns of a message whose failure this process did not see: a message that crashes its process must not do so for ever."""


@dataclass(frozen=True)
class Returner:
    """Sends messages to the queues that they came from.

    Attributes:
        maintenance: runs the steps that send them.
        claims: writes data that is too large for its queue to a blob.
        random: draws their delays.
    """

    maintenance: Maintenance
    claims: ClaimChecks
    random: Random

    def require_queue(self, queue: str) -> None:
        """Raise `ConfigurationError` unless there is such a destination."""
        limits = self.maintenance.routes.limits
        if queue not in limits:
            raise ConfigurationError(
                f"There is no destination {queue!r} to return messages to; known are: {', '.join(sorted(limits)) or 'none'}. "
                "Name in queue= the destination whose queue the function's messages come from, and declare it where the "
                "application is composed."
            )

    async def output(self, envelope: Envelope, queue: str, unexplained: int) -> Output | None:
        """The output that returns a message to its queue; None if the message is too large for it.

        Args:
            envelope: as delivered, its data in it or in a blob.
            queue: logical name of its queue.
            unexplained: number of returns without a known cause, this one included.

        Raises:
            TryAgainLater: its data may not have been written to a blob.
        """
        routes = self.maintenance.routes
        again = envelope.once_more(unexplained)
        if routes.is_too_large(queue, again.to_json().size):  # The mark makes it a bit longer.
            if self.claims.blobs is None or envelope.reference is not None:
                return None
            again = await self.claims.left(again)
        wire = again.to_json()
        if routes.is_too_large(queue, wire.size):
            return None
        return Output(key_of(envelope), queue, wire, self._delay(envelope.requeued))

    async def give_back(
        self, ref: EntityRef, output: Output, *, unseen: bool, deadline: Deadline | None = None
    ) -> Returned:
        """Return a message to its queue, unless it is parked.

        Args:
            ref: the entity that the message is for.
            output: the message.
            unseen: the message cannot be parked yet, so the store is not asked.
            deadline: for all attempts; None for one that starts now.

        Raises:
            TryAgainLater: the queue may not have taken it, or the store did not say whether it is parked.
            StoredDataError: the parked document cannot be read.
        """

        def attempt(memory: Memory) -> Step[Returned | Again]:
            return send(output, memory) if unseen else give_back(ref, output.id, output, memory)

        return await self.maintenance.run(ref, attempt, deadline=deadline)

    def _delay(self, times: int) -> float:
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(times, 10))
        return self.random.uniform(longest / 2, longest)
