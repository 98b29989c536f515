"""Back to their queues: messages that were given up for the sake of their environment come again by themselves.

They come later each time, up to `LONGEST_DELAY`, and not all at once: each delay is drawn between half of it and all of it.
So what a long outage has collected is spread over minutes when the environment answers again.
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
from exactlyonce.hosting.maintenance import Maintenance
from exactlyonce.protocols.steps.give_back import Returned, give_back, send
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

FIRST_DELAY: Final = 10.0
"""Seconds that a message stays away the first time, at most; twice as long every other time."""
LONGEST_DELAY: Final = 300.0
"""Seconds that it stays away in the end, at most: this, and a host's deliveries, is how long healing takes."""
UNEXPLAINED_ROUNDS: Final = 3
"""How often a message is returned though nobody knows why it failed: one that ends its processes must not do so for ever."""


@dataclass(frozen=True)
class Returner:
    """Sends messages to the queues that they came from.

    Attributes:
        maintenance: runs what sends them.
        claims: for data that is too large for its queue.
        random: spreads them.
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
        """A message as it is sent to its queue once more; None if its queue cannot take it.

        Args:
            envelope: as it came: with its data elsewhere, if that is where it was.
            queue: logical name of its queue.
            unexplained: how often it is returned though nobody knows why it failed, this time included.

        Raises:
            TryAgainLater: whether its data was written is not known.
        """
        routes = self.maintenance.routes
        again = envelope.once_more(unexplained)
        if routes.is_too_large(queue, again.to_json().size):  # It is a bit longer than it was.
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
        """Send it.

        Args:
            ref: the entity that it is for.
            output: what is sent.
            unseen: whether nobody can have parked this delivery yet, so that the store need not be asked.
            deadline: when that has to have ended; None for that of something that begins now.

        Raises:
            TryAgainLater: the queue did not take it, or the store did not say whether it is parked.
            StoredDataError: what is parked cannot be read.
        """

        def attempt(memory: Memory) -> Step[Returned | Again]:
            return send(output, memory) if unseen else give_back(ref, output.id, output, memory)

        return await self.maintenance.run(ref, attempt, deadline=deadline)

    def _delay(self, times: int) -> float:
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(times, 10))
        return self.random.uniform(longest / 2, longest)
