"""One attempt at a time per entity in this process; messages that arrive meanwhile share the next commit.

A hot entity would otherwise conflict with itself. When an entity falls quiet, its lane marks what was published, after
`mark_after` seconds in which the next commit could have done so for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from exactlyonce.drivers.async_driver import AsyncDriver
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


@dataclass
class _Lane:
    assignment: Assignment
    waiting: list[tuple[Envelope, asyncio.Future[None]]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
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
        self._hurry = asyncio.Event()

    async def process(self, assignment: Assignment, envelope: Envelope) -> None:
        """Process one message; returns when it may be acknowledged.

        Cancelling the caller does not stop the attempt, which others may share.

        Raises:
            ExactlyOnceError: it may not be acknowledged, and why.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane = self._lanes.get(assignment.entity.key)
        if lane is None:
            lane = self._lanes[assignment.entity.key] = _Lane(assignment)
            task = asyncio.create_task(self._serve(lane), name=f"exactlyonce {assignment.entity}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        lane.waiting.append((envelope, done))
        lane.arrived.set()
        await done

    async def quiesce(self) -> None:
        """Wait until nothing is under way, marking at once what is left to mark. New messages are taken as before."""
        self._hurry.set()
        try:
            while self._tasks:  # Waiting, not gathering: whoever gives up waiting must not cancel them.
                await asyncio.wait(self._tasks)
        finally:
            self._hurry.clear()

    def abandon(self) -> None:
        """Stop in the middle of everything, as the end of the process would; those who wait are cancelled."""
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for _, done in lane.waiting:
                done.cancel()
        self._lanes.clear()

    async def _serve(self, lane: _Lane) -> None:
        """Process groups until none waits and nothing is left to mark; then the lane is gone."""
        try:
            while lane.waiting or (lane.memory.published and await self._woken(lane)):
                await self._process_group(lane)
        finally:
            self._lanes.pop(lane.assignment.entity.key, None)
            for _, done in lane.waiting:
                done.cancel()  # Only an attempt that was cancelled leaves anybody behind.
        if lane.memory.published:
            await self._mark(lane)

    async def _process_group(self, lane: _Lane) -> None:
        strategy, limit = lane.assignment.strategy, lane.assignment.strategy.group_limit
        group, lane.waiting = lane.waiting[:limit], lane.waiting[limit:]
        given = lane.assignment
        work = Work(given.entity, tuple(envelope for envelope, _ in group), given.handle, given.absent, given.evolve)
        memory, lane.memory = lane.memory, Memory()
        failed: dict[str, Exception] = {}
        try:
            attempts = self._retrying.process(work.entity, lambda memory: strategy.attempt(work, memory), memory)
            finished = await self._driver.run(attempts)
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
            for _, done in group:
                done.cancel()
            raise
        for envelope, done in group:
            _resolve(done, failed.get(key_of(envelope)))

    async def _woken(self, lane: _Lane) -> bool:
        """Wait until a message arrives: True; or until it is time to mark: False."""
        lane.arrived.clear()
        waits = (lane.arrived.wait(), self._hurry.wait(), self._clock.sleep(self._mark_after))
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return bool(lane.waiting)

    async def _mark(self, lane: _Lane) -> None:
        entity, strategy = lane.assignment.entity, lane.assignment.strategy
        try:
            await self._driver.run(
                self._retrying.process(entity, lambda memory: strategy.mark(entity, memory), lane.memory)
            )
        except Exception:  # Nobody waits for this. The next message on the entity publishes again and marks.
            _log.warning("entity %s: what was published could not be marked", entity, exc_info=True)


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
