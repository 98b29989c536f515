"""Lanes: one attempt at a time per entity in this process; messages that arrive meanwhile share the next commit.

Without lanes a hot entity would conflict with itself. When an entity has been quiet for `mark_after` seconds, its lane marks
the published outputs; until then the next commit could do so at no cost.

A delivery waits no longer than its deadline, whatever is under way. Attempts that deliveries share go on until the latest of
their deadlines: the first delivery must not end an attempt that the others wait for.

If the store refuses a commit because of handlers' results, such as a unique key that is taken, each message of the group is
then committed alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

from exactlyonce.attempt import Again, Attempts, Evolve, Finished, Handle, Memory, Refusal, Work, key_of, never
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.deadlines import ADVICE, Deadline, Timekeeper
from exactlyonce.drivers.observer import Delivery
from exactlyonce.drivers.retry import Retrying
from exactlyonce.drivers.runtime import Clock
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.errors import ExactlyOnceError, HandlerError, TryAgainLater
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import RETENTION

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assignment:
    """An entity, its strategy, and the parts of `Work` that do not depend on the messages."""

    entity: EntityRef
    strategy: Attempts
    handle: Handle
    absent: Json
    evolve: Evolve | None = None
    retention: timedelta = RETENTION
    refusal: Refusal = never


class _Waiting(NamedTuple):
    envelope: Envelope
    done: asyncio.Future[None]
    delivery: Delivery | None  # The observer's; None without one.
    deadline: Deadline | None


@dataclass
class _Lane:
    assignment: Assignment
    waiting: list[_Waiting] = field(default_factory=list)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    memory: Memory = field(default_factory=Memory)
    attempts: int = 0  # For the present group.
    apart: int = 0  # Number of messages to commit alone, after the store refused their shared commit.


class Lanes:
    """Lanes for entities that are being processed.

    Args:
        driver: performs the attempts.
        retrying: retries unfinished attempts, and gives deliveries their deadlines.
        clock: for `mark_after` and deadlines.
        mark_after: seconds of quiet after which an entity's published outputs are marked by a save of their own.
    """

    def __init__(self, driver: AsyncDriver, retrying: Retrying, clock: Clock, mark_after: float = 10.0) -> None:
        self._driver = driver
        self._retrying = retrying
        self._clock = clock
        self._mark_after = mark_after
        self._lanes: dict[str, _Lane] = {}  # By key: for Python the partition values 1 and True are equal.
        self._tasks: set[asyncio.Task[None]] = set()
        self._timekeeper = Timekeeper(clock)
        self._hurrying = False

    async def process(self, assignment: Assignment, envelope: Envelope) -> None:
        """Process one message; returns when it may be acknowledged.

        Cancelling the caller does not stop the attempt, which other messages may share.

        Raises:
            ExactlyOnceError: why the message may not be acknowledged.
        """
        observer = self._driver.observer_slot.observer
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
        lane.assignment = assignment  # The newest message's, also in a lane that is never quiet.
        one = _Waiting(envelope, done, delivery, self._retrying.begin(self._clock.now))
        lane.waiting.append(one)
        lane.stirred.set()
        if one.deadline is not None:  # The latest of all, since all deliveries have the same time.
            self._timekeeper.watch(done, one.deadline, partial(_late, lane, one))
        await done

    async def quiesce(self) -> None:
        """Wait until nothing is under way, and mark published outputs at once. New messages are taken as before."""
        self._hurrying = True
        for lane in self._lanes.values():
            lane.stirred.set()
        try:
            while self._tasks:  # Not `gather`: cancelling this call must not cancel them.
                await asyncio.wait(self._tasks)
        finally:
            self._hurrying = False
        self._timekeeper.stop()

    def abandon(self) -> None:
        """Stop at once, as the end of the process would; waiting callers are cancelled."""
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for one in lane.waiting:
                one.done.cancel()
        self._lanes.clear()
        self._timekeeper.stop()

    async def _serve(self, lane: _Lane) -> None:
        """Process groups until no message waits and nothing is left to mark; then remove the lane."""
        try:
            while lane.waiting or (lane.memory.published and await self._woken(lane)):
                await self._process_group(lane)
        finally:
            self._lanes.pop(lane.assignment.entity.key, None)
            for one in lane.waiting:
                one.done.cancel()  # Only a cancelled attempt leaves messages waiting.
        if lane.memory.published:
            await self._mark(lane)

    async def _process_group(self, lane: _Lane) -> None:
        strategy = lane.assignment.strategy
        limit = 1 if lane.apart else strategy.group_limit
        lane.apart = max(lane.apart - 1, 0)
        waiting = [one for one in lane.waiting if not one.done.done()]  # The others are late or were cancelled.
        group, lane.waiting = waiting[:limit], waiting[limit:]
        if not group:
            return
        given = lane.assignment
        memory, lane.memory = lane.memory, Memory()
        failed: dict[str, Exception] = {}
        lane.attempts = 0

        def attempt(memory: Memory) -> Step[Finished | Again]:
            lane.attempts += 1
            # If no delivery waits any more, the attempt ends by itself.
            held = [one for one in group if not one.done.done()] or group
            work = Work(
                given.entity,
                tuple(one.envelope for one in held),
                given.handle,
                given.absent,
                given.evolve,
                given.retention,
                given.refusal,
            )
            outcome = yield from _for_those_held(strategy.attempt(work, memory), held)
            return outcome

        try:
            deliveries = [one.delivery for one in group if one.delivery is not None]
            finished = await self._driver.process(
                self._retrying, given.entity, attempt, memory, deliveries, deadline=group[-1].deadline
            )
            lane.memory = finished.memory
            failed.update(finished.failed)
            for key, error in finished.stopped:  # Its delivery is acknowledged, so only this log reports it.
                _log.warning(
                    "entity %s: the handler of message %s raised (%s); it stays held, with all that follow it in its sequence",
                    given.entity,
                    key,
                    type(error.__cause__ or error).__name__,
                )
        except Exception as error:  # Any error fails every delivery of the group.
            lane.memory = memory  # Outputs published before are published still.
            if (
                isinstance(error, HandlerError) and len(group) > 1
            ):  # One message is the cause, and it is not known which.
                lane.waiting[:0], lane.apart = group, len(group)
                return
            failed.update((key_of(one.envelope), _about(one.envelope, error)) for one in group)
        except BaseException:  # Cancelled, or worse.
            for one in group:
                one.done.cancel()
            raise
        for one in group:
            _resolve(one.done, failed.get(key_of(one.envelope)))

    async def _woken(self, lane: _Lane) -> bool:
        """Wait until a message arrives (True) or it is time to mark (False)."""
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
            pause.remove_done_callback(stir)  # A late callback must not end the next pause.
            pause.cancel()
        return bool(lane.waiting)

    async def _mark(self, lane: _Lane) -> None:
        entity, strategy = lane.assignment.entity, lane.assignment.strategy
        try:
            await self._driver.process(
                self._retrying, entity, lambda memory: strategy.mark(entity, memory), lane.memory, ()
            )
        except Exception as error:  # No caller waits. The next message on the entity publishes again and marks.
            # Only texts of the library's own errors are logged, and no causes: others may quote a body.
            reason = error if isinstance(error, ExactlyOnceError) else type(error).__name__
            _log.warning("entity %s: published outputs could not be marked: %s", entity, reason)


def _for_those_held(attempt: Step[Result], group: Sequence[_Waiting]) -> Step[Result]:
    """The attempt, in which messages get no transaction id once their deliveries were given back."""
    reply: Any = None
    while True:
        try:
            effect = attempt.send(reply)
        except StopIteration as finished:
            result: Result = finished.value
            return result
        reply = yield from effect
        if isinstance(effect, Begin) and effect.messages:
            held = {key_of(one.envelope) for one in group if not one.done.done()}
            kept = [
                tx if message in held else None
                for message, tx in zip(effect.messages, reply.transactions, strict=False)
            ]
            reply = replace(reply, transactions=(*kept, *reply.transactions[len(kept) :]))


def _late(lane: _Lane, one: _Waiting) -> Exception:
    """The error of a delivery whose deadline passes while an attempt is under way."""
    if any(other is one for other in lane.waiting):
        state = f"its turn had not come: attempt {lane.attempts} for messages before it was under way"
    else:
        state = f"attempt {lane.attempts} was under way"
    seconds = "all" if one.deadline is None else f"{one.deadline.seconds:g}"
    late = f"Entity {lane.assignment.entity}: the {seconds} s that a delivery may take were over, and {state}. {ADVICE}"
    return _about(one.envelope, TryAgainLater(late))


def _about(envelope: Envelope, error: Exception) -> Exception:
    """The error of a group, as the error of one of its messages."""
    if not isinstance(error, ExactlyOnceError):
        return error
    about_message = type(error)(f"Message {key_of(envelope)}: {error}")
    about_message.__cause__ = error
    return about_message


def _resolve(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return  # The caller was cancelled.
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
