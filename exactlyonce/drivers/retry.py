"""Retries, for both drivers: generators around generators, pure but for the given chance and time.

Delays grow by exponential back-off with decorrelated jitter and a cap ("Exponential Backoff And Jitter", AWS Architecture
Blog): each is drawn between the base and three times the one before, so that attempts that collided do not collide again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.deadlines import ADVICE, Deadline, OutOfTime
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect, Step, Together
from exactlyonce.effects.port import Busy
from exactlyonce.errors import TryAgainLater
from exactlyonce.values.identity import EntityRef

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
        tries: number of tries, the first included.
        seconds: that all tries of one delivery, or of one entity's maintenance, may take together; None for no limit.
    """

    base: float = 0.02
    cap: float = 2.0
    tries: int = 10
    seconds: float | None = None

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

    def begin(self, now: Callable[[], datetime]) -> Deadline | None:
        """The deadline of a delivery that starts now; None if the policy has no time limit.

        Args:
            now: the time of day.
        """
        seconds = self.backoff.seconds
        return None if seconds is None else Deadline(now, now(), seconds)

    def process(
        self,
        entity: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory,
        deadline: Deadline | None = None,
    ) -> Step[Result]:
        """Make attempts until one returns anything but `Again`, each with the memory of the one before.

        After the deadline no request is made, and before it no pause that would outlast it, also in the middle of an attempt:
        that equals a crash between two effects.

        Raises:
            TryAgainLater: the policy's tries are used up, or there was no time for more.
            StoredDataError: the strategy refused what the store holds.
        """
        delays = self.backoff.delays(self.random)
        number, before = 0, ""
        try:
            while True:
                number += 1
                outcome = yield from self.insist(attempt(memory), deadline)
                if not isinstance(outcome, Again):
                    return outcome
                memory, before = outcome.memory, f"; the attempt before it did not finish because {outcome.reason}"
                if outcome.progressed:
                    delays = self.backoff.delays(self.random)
                    continue
                delay = next(delays, None)
                if delay is None:
                    raise TryAgainLater(
                        f"Entity {entity}: {self.backoff.tries} attempts did not finish, the last one because "
                        f"{outcome.reason}. Nothing is lost: give the message back to its queue."
                    )
                text = "entity %s: attempt %d did not finish, because %s; the next one starts in %.3f s"
                _log.info(text, entity, number, outcome.reason, delay)
                yield from _wait(delay, deadline, "the pause before the next attempt")
        except OutOfTime as over:
            raise TryAgainLater(f"Entity {entity}: {over}, in attempt {number}{before}. {ADVICE}") from None

    def insist(self, step: Step[Result], deadline: Deadline | None = None) -> Step[Result]:
        """Run a strategy, and repeat its requests while the store is busy or a replica is behind.

        Raises:
            OutOfTime: there is a deadline, and no time for the next request, or for the pause before it.
        """
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            if deadline is not None:
                deadline.require(0, type(effect).__name__)
            reply = yield from effect
            if isinstance(effect, Together):
                first = yield from self._answer(effect.first, reply[0], deadline)
                second = yield from self._answer(effect.second, reply[1], deadline)
                reply = first, second
            else:
                reply = yield from self._answer(effect, reply, deadline)

    def _answer(self, effect: Effect[Any], reply: Any, deadline: Deadline | None) -> Step[Any]:
        """Repeat a request until it is answered. After the last try, a refused request counts as one of unknown outcome."""
        if not _is_refused(reply):
            return reply  # As nearly always; no delay is drawn.
        for delay in self.backoff.delays(self.random):
            if not _is_refused(reply):
                return reply
            wanted = reply.retry_after if isinstance(reply, Busy) else None
            whom = "a busy store" if isinstance(reply, Busy) else "a replica that is behind"
            what = f"the pause before asking {whom} for {type(effect).__name__} again"
            yield from _wait(max(delay, wanted or 0.0), deadline, what)
            reply = yield from effect
        return UNKNOWN if isinstance(reply, Busy) else reply


def _wait(seconds: float, deadline: Deadline | None, what: str) -> Step[None]:
    """Pause; raise `OutOfTime` if the pause would outlast the deadline."""
    if deadline is not None:
        deadline.require(seconds, what)
    yield from Pause(seconds)


def _is_refused(reply: Any) -> bool:
    return isinstance(reply, Busy) or reply is BEHIND
