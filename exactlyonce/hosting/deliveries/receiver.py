"""The receiver: processes deliveries from triggers, single or in batches, until the host may acknowledge them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from exactlyonce.drivers.lanes import Lanes, Processed
from exactlyonce.errors import ExactlyOnceError, InvalidMessage
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.settlement import Settlement
from exactlyonce.hosting.deliveries.triggers import Adapter, Delivered, Failures, delivery_of, envelope_of, id_of, named
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.protocols.steps.park import discard
from exactlyonce.records.ledger import is_reply
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.lifetimes import Lifetimes
from exactlyonce.values.raised import Show, shown

_MOST_NAMED: Final = 3
"""Most failures of a batch that the error names."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receiver:
    """Processes deliveries.

    Attributes:
        maintenance: answers replay requests.
        poison: settles messages that a batch gives up on.
        begin: awaited before any account is asked.
        ready: awaited before the store is asked.
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
    show: Show = shown

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
        """Process the deliveries of a batch concurrently; deliveries for one entity share commits. Raises as `take` does.

        A message delivered more than `give_up_after` times is settled and never processed: a batch that gave a message up once
        gives it up in every later delivery too, as long as another message fails the batch.
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
        for message, error in failed[1:]:  # The host logs the first error, which is raised.
            _log.warning("queue message %s failed: %s", id_of(message), named(error), exc_info=self.show(error))
        if failed:
            named_failures = "; ".join(
                f"queue message {id_of(message)}: {named(error)}" for message, error in failed[:_MOST_NAMED]
            )
            first = failed[0][1]
            raise type(first)(
                f"{len(failed)} of the {len(messages)} messages of a batch failed, so all of them come again; processed "
                f"messages will be known as duplicates. The first failures: {named_failures}."
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
        if envelope.reference is not None and self.claims.claims(envelope):
            await self.begin()
            envelope = await self.claims.redeemed(envelope)
        if envelope.type == REPLAY:
            await self.ready()
            await self.maintenance.answer(entity, envelope)
            return
        ref = entity.ref_of(envelope)
        _require_keeper_of_calls(envelope, entity)
        await self._attempt(envelope, entity, ref)
        if envelope.requeued:
            await self._take_away(ref, key_of(envelope))

    async def ask(self, envelope: Envelope, entity: Entity[Any], ref: EntityRef | None = None) -> Processed:
        """Process the message of a request for `ref`, or for the entity that the message names. Raises `ExactlyOnceError`."""
        return await self._attempt(envelope, entity, ref or entity.ref_of(envelope))

    async def _attempt(self, envelope: Envelope, entity: Entity[Any], ref: EntityRef) -> Processed:
        await self.ready()
        if "outbox" in entity.strategy.unfinished:
            self.lanes.begin_book()
        runner, lifetimes = Runner(entity, ref, self.maintenance.routes), self.lifetimes()
        handle = AgeCheck(runner, ref, lifetimes, entity.strategy.forgets)
        work = runner.work(lifetimes, self.now(), self.maintenance.senders)
        work = replace(work, handle=handle, refusal=lifetimes.refusal)
        processed = await self.lanes.process(entity.strategy, work, envelope)
        if processed.before:
            waits = ", or waits for those before it" if "holding" in entity.strategy.unfinished else ""
            _log.debug("message %s for %s changed nothing: it is a duplicate%s", key_of(envelope), ref, waits)
        return processed

    async def _take_away(self, ref: EntityRef, message: str) -> None:
        """Delete the parked document of a returned or requeued message, once the message is processed. Best effort."""
        try:
            await self.maintenance.run(ref, lambda memory: discard(ref, message, memory))
        except ExactlyOnceError as error:
            _log.info("the parked document of message %s, if there is one, was not deleted (%s)", message, named(error))


def _require_keeper_of_calls(envelope: Envelope, entity: Entity[Any]) -> None:
    """Refuse a reply if the strategy would take it for a foreign message, and a late copy for a new message.

    Raises:
        InvalidMessage: the reply came to a type that makes no calls.
    """
    if is_reply(envelope) and entity.strategy.forgets(envelope):
        raise InvalidMessage(
            f"Message {key_of(envelope)} is the reply to a call, and entity {entity.name!r} makes none. Let its type go to "
            "the queue of the entity that made the call: Destination(..., receives=).",
            kept="it is the reply to a call, and its entity type makes none",
        )
