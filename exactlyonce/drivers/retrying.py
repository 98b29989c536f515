"""Trying again, for both drivers: generators around generators, pure but for the chance they are given.

Delays grow by exponential back-off with decorrelated jitter and a cap ("Exponential Backoff And Jitter", AWS Architecture
Blog): each is drawn between the base and three times the one before, so that those who collided do not meet again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from exactlyonce.effects import BEHIND, UNKNOWN, Effect, Step, Together
from exactlyonce.errors import TryAgainLater
from exactlyonce.handling.attempts import Again, Memory
from exactlyonce.identity import EntityRef
from exactlyonce.stores.port import Busy

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pause(Effect[None]):
    """Ask the driver to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """A retry policy.

    Attributes:
        base: shortest delay, in seconds.
        cap: longest delay, in seconds.
        tries: how often to try in all, the first time included.
    """

    base: float = 0.02
    cap: float = 2.0
    tries: int = 10

    def delays(self, random: Random) -> Iterator[float]:
        """The delays between the tries, in seconds: one fewer than there are tries."""
        delay = self.base
        for _ in range(self.tries - 1):
            delay = min(self.cap, random.uniform(self.base, delay * 3))
            yield delay


@dataclass(frozen=True)
class Retrying:
    """Applies a policy to requests and to attempts."""

    backoff: Backoff
    random: Random

    def process(
        self, entity: EntityRef, attempt: Callable[[Memory], Step[Result | Again]], memory: Memory
    ) -> Step[Result]:
        """Make attempts until one comes to anything but `Again`, each with what is remembered of the one before.

        Raises:
            TryAgainLater: as many as the policy allows did not finish.
            StoredDataError: the strategy refused what the store holds.
        """
        delays = self.backoff.delays(self.random)
        number = 0
        while True:
            number += 1
            outcome = yield from self.insist(attempt(memory))
            if not isinstance(outcome, Again):
                return outcome
            memory = outcome.memory
            if outcome.progressed:
                delays = self.backoff.delays(self.random)
                continue
            delay = next(delays, None)
            if delay is None:
                raise TryAgainLater(
                    f"Entity {entity}: {self.backoff.tries} attempts did not finish, the last one because {outcome.reason}. "
                    "Nothing is lost: give the message back to its queue."
                )
            told = "entity %s: attempt %d did not finish, because %s; starting over in %.3f s"
            _log.info(told, entity, number, outcome.reason, delay)
            yield from Pause(delay)

    def insist(self, step: Step[Result]) -> Step[Result]:
        """Run a strategy whose requests are repeated while the store is too busy to take them, or a replica is behind."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = yield from effect
            if isinstance(effect, Together):
                first = yield from self._answer(effect.first, reply[0])
                second = yield from self._answer(effect.second, reply[1])
                reply = first, second
            else:
                reply = yield from self._answer(effect, reply)

    def _answer(self, effect: Effect[Any], reply: Any) -> Step[Any]:
        """Repeat until there is an answer. At the end of patience a refused request is as good as one of unknown outcome."""
        if not _is_refused(reply):
            return reply  # As nearly all are: no delay is drawn for them.
        for delay in self.backoff.delays(self.random):
            if not _is_refused(reply):
                return reply
            wanted = reply.retry_after if isinstance(reply, Busy) else None
            yield from Pause(max(delay, wanted or 0.0))
            reply = yield from effect
        return UNKNOWN if isinstance(reply, Busy) else reply


def _is_refused(reply: Any) -> bool:
    return isinstance(reply, Busy) or reply is BEHIND
