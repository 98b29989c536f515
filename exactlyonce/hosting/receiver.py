"""What triggers deliver, one message at a time or many, until it may be acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from exactlyonce.attempt import key_of
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.handling.age import AgeCheck
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.runner import Runner
from exactlyonce.hosting.adapters import Adapter
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.failures import Failures, named
from exactlyonce.hosting.maintenance import Maintenance
from exactlyonce.hosting.poison import PoisonSettler
from exactlyonce.hosting.settlement import Settlement
from exactlyonce.hosting.triggers import Delivered, delivery_of, envelope_of, id_of
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.protocols.steps.park import discard
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

_MOST_NAMED: Final = 3
"""Failures of one batch that its error names."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receiver:
    """Processes deliveries.

    Attributes:
        lanes: makes the attempts.
        maintenance: answers requests to send again.
        claims: fetches the data of messages that only refer to it.
        failures: where failed deliveries are noted.
        poison: decides about messages that are given up.
        begin: to be awaited before anything is asked of anybody.
        ready: to be awaited before the store is asked.
        lifetimes: how long messages of the application may live, at present.
        now: the present, by the store's time.
    """

    lanes: Lanes
    maintenance: Maintenance
    claims: ClaimChecks
    failures: Failures
    poison: PoisonSettler
    begin: Callable[[], Awaitable[None]]
    ready: Callable[[], Awaitable[None]]
    lifetimes: Callable[[], Lifetimes]
    now: Callable[[], datetime]

    async def take(self, message: Delivered, entity: Entity[Any], adapter: Adapter | None) -> None:
        """Process one delivery. Raises `ExactlyOnceError`."""
        envelope = envelope_of(message, adapter)
        try:
            await self._process(envelope, entity)
        except ExactlyOnceError as error:
            self.failures.note(entity.name, key_of(envelope), error, delivery_of(message))
            raise

    async def take_all(
        self,
        messages: Sequence[Delivered],
        entity: Entity[Any],
        queue: str,
        adapter: Adapter | None,
        give_up_after: int,
    ) -> None:
        """Process the deliveries of a batch side by side; those for one entity share commits. Raises as `take` does.

        What has come more often than `give_up_after` is settled, and never processed. So what was given up once is given up
        whenever it comes again, with whatever keeps its batch from being acknowledged.
        """
        self.poison.settler.returner.require_queue(queue)
        done = await asyncio.gather(
            *(self._take_or_settle(message, entity, queue, adapter, give_up_after) for message in messages),
            return_exceptions=True,
        )
        failed: list[tuple[Delivered, ExactlyOnceError]] = []
        for message, error in zip(messages, done, strict=True):
            if isinstance(error, ExactlyOnceError):
                failed.append((message, error))
            elif isinstance(error, BaseException):
                raise error
        if failed:
            told = "; ".join(
                f"queue message {id_of(message)}: {named(error)}" for message, error in failed[:_MOST_NAMED]
            )
            first = failed[0][1]
            raise type(first)(
                f"{len(failed)} of the {len(messages)} messages of a batch failed, so all of them come again, and those that "
                f"are done will be known. The first that failed: {told}."
            ) from first

    async def _take_or_settle(
        self, message: Delivered, entity: Entity[Any], queue: str, adapter: Adapter | None, give_up_after: int
    ) -> None:
        times = (delivery_of(message) or 1) - give_up_after
        if times < 1:
            await self.take(message, entity, adapter)
        else:
            settlement: Settlement = "first" if times == 1 else "repeated"
            await self.poison.settle(entity, message, queue, adapter, who="its batch", settlement=settlement)

    async def _process(self, envelope: Envelope, entity: Entity[Any]) -> None:
        if self.claims.claims(envelope):
            await self.begin()
            envelope = await self.claims.redeemed(envelope)
        if envelope.type == REPLAY:
            await self.ready()
            await self.maintenance.answer(entity, envelope)
            return
        ref = entity.ref_of(envelope)
        await self.ready()
        runner, lifetimes = Runner(entity, ref, self.maintenance.routes), self.lifetimes()
        handle = AgeCheck(runner, ref, lifetimes) if entity.strategy.forgets else runner
        retention = lifetimes.retention.kept(self.now())
        assignment = Assignment(
            ref, entity.strategy, handle, runner.absent, runner.evolve, retention, lifetimes.refusal
        )
        await self.lanes.process(assignment, envelope)
        if envelope.requeued:
            await self._take_away(ref, key_of(envelope))

    async def _take_away(self, ref: EntityRef, message: str) -> None:
        """Delete what is still parked of a message that was sent once more, and is processed now. Best effort."""
        try:
            await self.maintenance.run(ref, lambda memory: discard(ref, message, memory))
        except ExactlyOnceError as error:
            _log.info("what may be parked of message %s was left there (%s)", message, named(error))
