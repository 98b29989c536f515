"""The host's code that decides about messages which were given up, as a generator of effects: as it ships, or a broken twin.

A coroutine that awaits generators of effects is a generator of effects itself. So `Settler.decide` runs as it is; only what
performs its effects is the model's, and whether there is time for another attempt is the world's to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import SimpleNamespace, coroutine
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.attempt import Again, Finished, Memory, Work
from exactlyonce.drivers.driver import Backoff, Retrying
from exactlyonce.effects.effect import Begun, Effect, Step
from exactlyonce.errors import TryAgainLater
from exactlyonce.hosting.deliveries import settlement as deciding
from exactlyonce.hosting.deliveries import settlement as returning_host
from exactlyonce.hosting.deliveries.triggers import Cause
from exactlyonce.protocols.steps.park import discard
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.lifetimes import Lifetimes
from verification.world.outbox_handler import dated
from verification.world.scenario import AT, TICK, Scenario

KINDS: Final = returning_host.UNEXPLAINED_ROUNDS + 2
"""Kinds of copies: as it came, and as it was returned, with so many rounds of which nobody knew the cause."""
ARRIVED, FIRST, AGAIN = 0, 1, 2
"""Where a copy waits: in its queue, or to be settled, for the first time or not."""
STAGES: Final = 3
NOTHING: Final = Memory()


@dataclass(frozen=True, slots=True)
class Host:
    """What decides about messages that were given up; as it ships, or a broken twin of it.

    Attributes:
        giving_up, given_up: that decide, and what about.
        returning: sends messages to their queues once more.
        takes_away: whether what is parked of a returned message is taken away when that is processed.
    """

    giving_up: Callable[..., Any] = deciding.Settler
    given_up: Callable[..., Any] = deciding.PoisonMessage
    returning: Callable[..., Any] = returning_host.Returner
    takes_away: bool = True


@dataclass(frozen=True, slots=True)
class ReturningScenario(Scenario):
    """One world in which messages go back to their queues.

    Attributes:
        causes: why a message failed last, as far as the process knows that settles it.
        rounds: how often each message was returned before, though nobody knew why it failed.
        counted: whether a delivery shows that it is settled for the first time: that of a dead letter does not.
        runs_out: whether what is to be settled is delivered a few times only, as by a poison queue.
        host: what decides.
    """

    causes: tuple[Cause, ...] = tuple(Cause)
    rounds: int = 0
    counted: bool = True
    runs_out: bool = False
    host: Host = field(default_factory=Host)

    @property
    def logs_parked(self) -> bool:
        """Whether anybody reads parked messages: who returns them does."""
        return True

    @property
    def strict(self) -> bool:
        """Whether no message may be both parked and processed, even for a time until a repair."""
        return not self.runs_out


@dataclass(frozen=True, slots=True)
class GoOn(Effect[bool]):
    """Ask whether there is time for another attempt."""

    why: str


@dataclass(frozen=True, slots=True)
class Ready(Effect[None]):
    """Wait until the store may be asked."""


class _Mending:
    """Runs attempts until one comes to something, as long as there is time."""

    def __init__(self, *, clock: bool) -> None:
        self.retrying = Retrying(Backoff(), Random(0))
        self.routes = SimpleNamespace(is_too_large=lambda *_: False)
        self.driver = self
        self._clock = clock

    async def run(self, ref: Any, attempt: Any = None, deadline: Any = None) -> Any:  # noqa: ARG002
        if attempt is None:  # A driver's: one generator, and nothing to try again.
            return await _asked(ref) if self._clock else Begun(AT, ())
        memory = NOTHING
        while True:
            result = await _asked(attempt(memory))
            if not isinstance(result, Again):
                return result
            memory = result.memory
            if not await _asked(iter(GoOn(result.reason))):
                raise TryAgainLater(result.reason)


class _Failures:
    """What a process knows of a message."""

    def __init__(self, known: Cause) -> None:
        self._known = known

    def cause(self, *_: str) -> Cause:
        return self._known


class _Even(Random):
    """Chance that is none."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002
        return b


@coroutine
def _asked(step: Step[Any]) -> Generator[Any, Any, Any]:
    result = yield from step
    return result


async def _ready() -> None:
    """The accounts are as they have to be."""
    await _asked(iter(Ready()))


def decided(scenario: ReturningScenario, work: Work, stage: int, known: Cause) -> Step[Finished | Again]:
    """Decide about a message that was given up.

    Args:
        scenario: that is explored.
        work: the message, as it came.
        stage: whether it is settled for the first time.
        known: why the message failed, as far as this process knows.
    """
    running = _deciding(scenario, work, stage, known)
    reply: Any = None
    while True:
        try:
            with _unlogged():
                effect = running.send(reply)
        except StopIteration:
            return Finished(NOTHING)
        except TryAgainLater as error:
            return Again(NOTHING, f"the delivery comes again: {error}")
        reply = yield from effect


def _deciding(scenario: ReturningScenario, work: Work, stage: int, known: Cause) -> Any:
    """The host's coroutine."""
    mending = _Mending(clock=scenario.ages is not None)
    entity = SimpleNamespace(name=work.entity.type, strategy=Outbox())
    lifetimes = Lifetimes if scenario.ages is None else lambda: scenario.ages.lifetimes  # type: ignore[union-attr]
    returning = scenario.host.returning(mending, SimpleNamespace(blobs=None), _Even())
    given_up = scenario.host.giving_up(mending, _Failures(known), returning, lifetimes, _ready, lambda: AT)
    counted = "first" if stage == FIRST else "repeated"
    settlement = counted if scenario.counted else "unknown"
    given = scenario.host.given_up(
        entity, work.messages[0], work, "in", settlement, "given up", runs_out=scenario.runs_out
    )
    return given_up.decide(given)


def received(scenario: ReturningScenario, step: Step[Finished | Again], work: Work) -> Step[Finished | Again]:
    """Process a message; what is parked of it is taken away if it was returned, as the receiver does."""
    finished = yield from step
    (envelope,) = work.messages
    if isinstance(finished, Again) or finished.failed or not envelope.requeued or not scenario.host.takes_away:
        return finished
    gone: bool | Again = Again(NOTHING, "")
    while isinstance(gone, Again):
        gone = yield from discard(work.entity, f"{envelope.source}/{envelope.id}", NOTHING)
    return finished


@cache
def came(number: int, kind: int, rounds: int, tick: int | None) -> Envelope:
    """A copy as it comes.

    Args:
        number: of the message.
        kind: of the copy.
        rounds: how often it was returned before.
        tick: of its time; None for that at which the clock begins.
    """
    envelope = dated(number, AT + (tick or 0) * TICK)
    counted = rounds if kind == 0 else kind - 1
    times = range(rounds) if kind == 0 else range(1)
    for _ in times:
        envelope = envelope.once_more(counted)
    return envelope


def kind_of(envelope: Envelope) -> int:
    """The kind of a copy that is sent to its queue once more."""
    return 1 + envelope.unexplained


def is_nobodys(entity: EntityRef) -> bool:
    """Whether it is the place for what was put aside."""
    return entity.id == deciding.ASIDE


@contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing: a search decides about a message thousands of times."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
