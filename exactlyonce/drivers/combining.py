"""One attempt at a time per entity in this process; messages that arrive meanwhile share the next commit.

A hot entity would otherwise conflict with itself. When an entity falls quiet, its lane marks what was published, after
`mark_after` seconds in which the next commit could have done so for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import NamedTuple

from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.observing.port import Delivery
from exactlyonce.drivers.retrying import Retrying
from exactlyonce.drivers.surroundings import Clock
from exactlyonce.envelope import Envelope
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Evolve, Handle, Memory, Strategy, Work, key_of
from exactlyonce.identity import EntityRef

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assignment:
    """One entity, the strategy it is processed by, and what `Work` says of its handler."""

    entity: EntityRef
    strategy: Strategy
    handle: Handle
    absent: Json
    evolve: Evolve | None = None


class _Waiting(NamedTuple):
    envelope: Envelope
    done: asyncio.Future[None]
    delivery: Delivery | None  # As the observer knows it, if there is one.


@dataclass
class _Lane:
    assignment: Assignment
    waiting: list[_Waiting] = field(default_factory=list)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    memory: Memory = field(default_factory=Memory)


class Combiner:
    """Lanes for entities that are being processed.

    Args:
        driver: performs the attempts.
        retrying: what to do when one does not finish.
        clock: for `mark_after`.
        mark_after: seconds an entity is left alone before what was published is marked by a save of its own.
    """

    def __init__(self, driver: AsyncDriver, retrying: Retrying, clock: Clock, mark_after: float = 10.0) -> None:
        self._driver = driver
        self._retrying = retrying
        self._clock = clock
        self._mark_after = mark_after
        self._lanes: dict[str, _Lane] = {}  # By key: for Python the partition values 1 and True are equal.
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurrying = False

    async def process(self, assignment: Assignment, envelope: Envelope) -> None:
        """Process one message; returns when it may be acknowledged.

        Cancelling the caller does not stop the attempt, which others may share.

        Raises:
            ExactlyOnceError: it may not be acknowledged, and why.
        """
        observer = self._driver.observing.observer
        if observer is None:
            await self._enter(assignment, envelope, None)
            return
        with observer.processing(assignment.entity, envelope) as delivery:
            await self._enter(assignment, envelope, delivery)

    async def _enter(self, assignment: Assignment, envelope: Envelope, delivery: Delivery | None) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane = self._lanes.get(assignment.entity.key)
        if lane is None:
            lane = self._lanes[assignment.entity.key] = _Lane(assignment)
            task = asyncio.create_task(self._serve(lane), name=f"exactlyonce {assignment.entity}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        lane.waiting.append(_Waiting(envelope, done, delivery))
        lane.stirred.set()
        await done

    async def quiesce(self) -> None:
        """Wait until nothing is under way, marking at once what is left to mark. New messages are taken as before."""
        self._hurrying = True
        for lane in self._lanes.values():
            lane.stirred.set()
        try:
            while self._tasks:  # Waiting, not gathering: whoever gives up waiting must not cancel them.
                await asyncio.wait(self._tasks)
        finally:
            self._hurrying = False

    def abandon(self) -> None:
        """Stop in the middle of everything, as the end of the process would; those who wait are cancelled."""
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for one in lane.waiting:
                one.done.cancel()
        self._lanes.clear()

    async def _serve(self, lane: _Lane) -> None:
        """Process groups until none waits and nothing is left to mark; then the lane is gone."""
        try:
            while lane.waiting or (lane.memory.published and await self._woken(lane)):
                await self._process_group(lane)
        finally:
            self._lanes.pop(lane.assignment.entity.key, None)
            for one in lane.waiting:
                one.done.cancel()  # Only an attempt that was cancelled leaves anybody behind.
        if lane.memory.published:
            await self._mark(lane)

    async def _process_group(self, lane: _Lane) -> None:
        strategy, limit = lane.assignment.strategy, lane.assignment.strategy.group_limit
        group, lane.waiting = lane.waiting[:limit], lane.waiting[limit:]
        given = lane.assignment
        work = Work(given.entity, tuple(one.envelope for one in group), given.handle, given.absent, given.evolve)
        memory, lane.memory = lane.memory, Memory()
        failed: dict[str, Exception] = {}
        try:
            deliveries = [one.delivery for one in group if one.delivery is not None]
            finished = await self._driver.process(
                self._retrying, work.entity, lambda memory: strategy.attempt(work, memory), memory, deliveries
            )
            lane.memory = finished.memory
            failed.update(finished.failed)
            for key, error in finished.stopped:  # Acknowledged, since it is held: nobody else will hear of it.
                _log.warning(
                    "entity %s: the handler of message %s raised (%s); it is held, with all that follow it in its sequence",
                    work.entity,
                    key,
                    type(error.__cause__ or error).__name__,
                )
        except Exception as error:  # Whatever it is, everybody who waits for this group has to hear of it.
            lane.memory = memory  # What it published before is published still.
            failed.update((key_of(envelope), _about(envelope, error)) for envelope in work.messages)
        except BaseException:  # Cancelled, or worse.
            for one in group:
                one.done.cancel()
            raise
        for one in group:
            _resolve(one.done, failed.get(key_of(one.envelope)))

    async def _woken(self, lane: _Lane) -> bool:
        """Wait until a message arrives: True; or until it is time to mark: False."""
        if self._hurrying:
            return False
        lane.stirred.clear()

        def stir(_: object) -> None:
            lane.stirred.set()

        pause = asyncio.ensure_future(self._clock.sleep(self._mark_after))
        pause.add_done_callback(stir)
        try:
            await lane.stirred.wait()
        finally:
            pause.remove_done_callback(stir)  # It must not stir the next pause.
            pause.cancel()
        return bool(lane.waiting)

    async def _mark(self, lane: _Lane) -> None:
        entity, strategy = lane.assignment.entity, lane.assignment.strategy
        try:
            await self._driver.process(
                self._retrying, entity, lambda memory: strategy.mark(entity, memory), lane.memory, ()
            )
        except Exception as error:  # Nobody waits for this. The next message on the entity publishes again and marks.
            # Only the library's own errors are told, and no causes: others may quote a body.
            reason = error if isinstance(error, ExactlyOnceError) else type(error).__name__
            _log.warning("entity %s: what was published could not be marked: %s", entity, reason)


def _about(envelope: Envelope, error: Exception) -> Exception:
    """The error of a group, told of one of its messages."""
    if not isinstance(error, ExactlyOnceError):
        return error
    told = type(error)(f"Message {key_of(envelope)}: {error}")
    told.__cause__ = error
    return told


def _resolve(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return  # The caller was cancelled and does not wait any more.
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
