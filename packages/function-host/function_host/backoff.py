"""How long the listener waits: between polls of an empty queue, and between renewals of a message. Pure.

Mirrors `RandomizedExponentialBackoffStrategy` and `LinearSpeedupStrategy` of the WebJobs SDK.
"""

from collections.abc import Callable

Chance = Callable[[float, float], float]
"""A number drawn evenly from an interval; `random.uniform` outside tests."""

MINIMUM_POLLING = 0.1
LOCAL_MAXIMUM_POLLING = 2.0
"""Cap of the polling interval in local development, in seconds; a smaller `maxPollingInterval` wins."""

MINIMUM_RENEWAL = 60.0


class PollingInterval:
    """Seconds until the next poll: exponential while the queue stays empty, from the start again once it was not."""

    def __init__(self, maximum: float, chance: Chance) -> None:
        self._maximum = max(MINIMUM_POLLING, min(maximum, LOCAL_MAXIMUM_POLLING))
        self._chance = chance
        self._current = 0.0
        self._exponent = 0

    def next(self, *, found: bool) -> float:
        """The pause now.

        Args:
            found: whether there was a message since the last pause.
        """
        if found:
            self._current, self._exponent = MINIMUM_POLLING, 1
        elif self._current < self._maximum:
            self._current = min(self._candidate(), self._maximum)
            self._exponent += 1
        return self._current

    def _candidate(self) -> float:
        if self._exponent == 0:
            return MINIMUM_POLLING
        increment: float = self._chance(0.8, 1.2) * 2 ** (self._exponent - 1) * MINIMUM_POLLING
        return MINIMUM_POLLING + increment


class RenewalInterval:
    """Seconds until the next renewal: half the invisibility, halved again after each failure, with a floor."""

    def __init__(self, invisible: float) -> None:
        self._normal = invisible / 2
        # The real floor is a minute; an invisibility made short for a demonstration must not be outlived by it.
        self._minimum = min(MINIMUM_RENEWAL, self._normal / 2)
        self._current = self._normal

    def first(self) -> float:
        """The pause before the first renewal."""
        return self._normal

    def next(self, *, succeeded: bool) -> float:
        """The pause after a renewal."""
        self._current = self._normal if succeeded else max(self._current / 2, self._minimum)
        return self._current
