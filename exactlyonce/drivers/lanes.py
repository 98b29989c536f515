"""Lanes: at most one attempt at a time per entity in this process; messages that arrive meanwhile share the next commit.

Without lanes a hot entity would conflict with itself.

A delivery waits no longer than its deadline, whatever is under way. Shared attempts go on until the latest deadline of their
deliveries: the first delivery must not end an attempt for its successors.

If the store refuses a commit because of handlers' results, such as a unique key that is taken, each message of the group is
then committed alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from exactlyonce.drivers.driver import AsyncDriver, Retrying
from exactlyonce.drivers.observer import Delivery
from exactlyonce.drivers.runtime import ADVICE, Clock, Deadline, Timekeeper
from exactlyonce.effects.attempt import Again, Attempts, Finished, Memory, Work
from exactlyonce.effects.effect import UNKNOWN, Begin, Step
from exactlyonce.effects.library import CloseNumbers, OpenNumbers
from exactlyonce.errors import ExactlyOnceError, HandlerError, HandlerFailed, TryAgainLater
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.raised import Show, cause_of, class_of, shown

# Memories of entities, from a lane to the next, within a budget.


BUDGET: Final = 64 * 1024 * 1024
"""Default for the bytes that a process remembers."""
_FRAME_BYTES = 500
"""Size of a memory besides its document."""
_PARTS = 3
"""Factor for the bytes of a document that is kept with its parts."""
_NOTHING = Memory()


class Memories:
    """The latest memories, by the key of the entity. The least recently used leave first; losing a memory costs a request.

    Args:
        budget: most bytes of all documents together; 0 for no memories at all.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._memories: OrderedDict[str, Memory] = OrderedDict()
        self.size = 0

    def take(self, key: str, otherwise: Memory = _NOTHING) -> Memory:
        """The memory of an entity, which leaves; or the default, if there is none."""
        memory = self._memories.pop(key, None)
        if memory is None:
            return otherwise
        self.size -= _size(memory)
        return memory

    def keep(self, key: str, memory: Memory) -> None:
        """Keep a memory, unless it is empty or larger than the budget."""
        self.take(key)
        if memory.saved is None or _size(memory) > self._budget:
            return
        self._memories[key] = memory
        self.size += _size(memory)
        while self.size > self._budget:
            _, left = self._memories.popitem(last=False)
            self.size -= _size(left)

    def clear(self) -> None:
        """Forget all memories."""
        self._memories.clear()
        self.size = 0


def _size(memory: Memory) -> int:
    saved = memory.saved
    if saved is None:
        return _FRAME_BYTES
    return _FRAME_BYTES + saved.document.size * (1 if saved.parts is None else _PARTS)


Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class Processed(NamedTuple):
    """The result of a message that may be acknowledged.

    Attributes:
        answer: the answer to its request; None if the message came by a queue.
        before: whether the message had been processed before.
    """

    answer: Answer | None
    before: bool


class _Waiting(NamedTuple):
    envelope: Envelope
    done: asyncio.Future[Processed]
    delivery: Delivery | None  # The observer's; None without one.
    deadline: Deadline | None


@dataclass
class _Lane:
    strategy: Attempts
    work: Work
    waiting: list[_Waiting] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    attempts: int = 0  # For the present group.
    apart: int = 0  # Number of messages to commit alone, after the store refused their shared commit.


class Lanes:
    """Lanes for entities that are being processed.

    Args:
        retrying: retries unfinished attempts, and gives deliveries their deadlines.
        memory: most bytes of all remembered documents.
        show: the loggable part of an exception.
    """

    def __init__(
        self,
        driver: AsyncDriver,
        retrying: Retrying,
        clock: Clock,
        memory: int = 0,
        *,
        show: Show = shown,
    ) -> None:
        self._driver = driver
        self._retrying = retrying
        self._clock = clock
        self._show = show
        self._memories = Memories(memory)
        self._lanes: dict[str, _Lane] = {}  # By key: for Python the partition values 1 and True are equal.
        self._tasks: set[asyncio.Task[None]] = set()
        self._deliveries = Timekeeper(clock)

    def begin_book(self) -> None:
        """Begin to write the book of this process, if nothing has begun it yet."""
        self._driver.books.begin()

    async def process(self, strategy: Attempts, work: Work, envelope: Envelope) -> Processed:
        """Process a message; return when it may be acknowledged. `work` has no messages.

        Cancelling the caller does not stop the attempt, which other messages may share.

        Raises:
            ExactlyOnceError: the reason not to acknowledge the message.
        """
        observer = self._driver.observer_slot.observer
        if observer is None:
            return await self._enter(strategy, work, envelope, None)
        with observer.processing(work.entity, envelope) as delivery:
            return await self._enter(strategy, work, envelope, delivery)

    async def _enter(self, strategy: Attempts, work: Work, envelope: Envelope, delivery: Delivery | None) -> Processed:
        done: asyncio.Future[Processed] = asyncio.get_running_loop().create_future()
        key = work.entity.key
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(strategy, work, memory=self._memories.take(key))
            task = asyncio.create_task(self._serve(lane), name=f"exactlyonce {work.entity}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        lane.strategy, lane.work = strategy, work  # The newest message's, also in a lane that is never empty.
        waiting = _Waiting(envelope, done, delivery, self._retrying.begin(self._clock.now))
        lane.waiting.append(waiting)
        if waiting.deadline is not None:  # The latest of all, since all deliveries have the same time.
            self._deliveries.watch(waiting.deadline, done.done, partial(_give_back, lane, waiting))
        return await done

    async def quiesce(self) -> None:
        """Wait until no attempt is under way, and write the book. New messages are taken as before."""
        while self._tasks:  # Not `gather`: cancelling this call must not cancel the tasks.
            await asyncio.wait(self._tasks)
        self._deliveries.stop()
        await self._driver.books.write()

    def abandon(self) -> None:
        """Stop at once, as the end of the process would; waiting callers are cancelled, and no book is written."""
        self._driver.books.abandon()
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for item in lane.waiting:
                item.done.cancel()
        self._lanes.clear()
        self._memories.clear()
        self._deliveries.stop()

    async def _serve(self, lane: _Lane) -> None:
        """Process groups until no message waits; then remove the lane."""
        key = lane.work.entity.key
        try:
            while lane.waiting:
                await self._process_group(lane)
            self._memories.keep(key, lane.memory)
        finally:
            for item in lane.waiting:  # Cancelled, or worse.
                item.done.cancel()
            self._lanes.pop(key, None)

    async def _process_group(self, lane: _Lane) -> None:
        strategy, work, entity = lane.strategy, lane.work, lane.work.entity
        limit = 1 if lane.apart else strategy.group_limit
        lane.apart = max(lane.apart - 1, 0)
        waiting = [item for item in lane.waiting if not item.done.done()]  # The rest is late or was cancelled.
        group, lane.waiting = waiting[:limit], waiting[limit:]
        if not group:
            return
        failed: dict[str, BaseException] = {}
        finished = Finished(lane.memory)
        lane.attempts = 0

        def attempt(memory: Memory) -> Step[Finished | Again]:
            lane.attempts += 1
            # If no delivery waits any more, the attempt ends by itself.
            held = [item for item in group if not item.done.done()] or group
            messages = tuple(item.envelope for item in held)
            outcome = yield from _for_those_held(strategy.attempt(replace(work, messages=messages), memory), held)
            if isinstance(outcome, Again):
                lane.memory = outcome.memory  # It holds also if no later attempt finishes.
                _acknowledge(held, outcome)  # The next attempt does without the finished messages.
            return outcome

        try:
            deliveries = [item.delivery for item in group if item.delivery is not None]
            finished = await self._driver.process(
                self._retrying, entity, attempt, lane.memory, deliveries, deadline=group[-1].deadline
            )
            lane.memory = finished.memory
            failed.update(finished.failed)
            self._log_stopped(entity, finished)
            if finished.contents or len(group) > 1:
                _log_differing(entity, finished.differing(item.envelope for item in group))
        except (asyncio.CancelledError, KeyboardInterrupt):  # The process ends, or is made to look like that.
            for item in group:
                item.done.cancel()
            raise
        except BaseException as error:
            # Errors of the store concern the whole group; the cause of all further errors is a single, unknown message.
            if len(group) > 1 and (isinstance(error, HandlerError) or not isinstance(error, ExactlyOnceError)):
                lane.waiting[:0], lane.apart = group, len(group)
                return
            failed.update((key_of(item.envelope), _about(item.envelope, error)) for item in group)
        for delivered, processed in _processed(group, finished):
            _resolve(delivered.done, failed.get(key_of(delivered.envelope)), processed)

    def _log_stopped(self, entity: EntityRef, finished: Finished) -> None:
        """Log stopped messages: their deliveries are acknowledged, so only this log reports them."""
        for key, error in finished.stopped:
            cause = cause_of(error)
            _log.warning(
                "entity %s: the handler of message %s raised (%s); it stays held, with all that follow it in its sequence",
                entity,
                key,
                class_of(error if cause is None else cause),
                exc_info=None if cause is None else self._show(cause),
            )


def _for_those_held(attempt: Step[Result], group: Sequence[_Waiting]) -> Step[Result]:
    """The attempt without transaction ids for messages whose deliveries were given back. Their numbers are closed."""
    reply: Any = None
    while True:
        try:
            effect = attempt.send(reply)
        except StopIteration as finished:
            result: Result = finished.value
            return result
        reply = yield effect
        if (
            isinstance(effect, (Begin, OpenNumbers))
            and reply is not UNKNOWN
            and any(item.done.done() for item in group)
        ):
            held = {key_of(item.envelope) for item in group if not item.done.done()}
            kept = [
                tx if message in held else None
                for message, tx in zip(effect.messages, reply.transactions, strict=False)
            ]
            lost = tuple(tx for tx in reply.transactions[: len(kept)] if tx is not None and tx not in kept)
            reply = replace(reply, transactions=(*kept, *reply.transactions[len(kept) :]))
            if isinstance(effect, OpenNumbers) and lost:
                # Close the numbers of messages that were given back. No commit gets them.
                yield from CloseNumbers(lost)


def _acknowledge(group: Sequence[_Waiting], outcome: Again) -> None:
    """Acknowledge the messages of a group that an attempt finished."""
    keys = frozenset(outcome.processed)
    for delivered, processed in _processed(group, outcome):
        if key_of(delivered.envelope) in keys:
            _resolve(delivered.done, None, processed)


def _processed(group: Sequence[_Waiting], outcome: Finished | Again) -> Iterator[tuple[_Waiting, Processed]]:
    """The results of the messages of a group, if they may be acknowledged. Among copies, the first is no duplicate."""
    answers, new = dict(outcome.answers), {*outcome.processed}
    for item in group:
        key = key_of(item.envelope)
        yield item, Processed(answers.get(key), key not in new)
        new.discard(key)


def _log_differing(entity: EntityRef, copies: tuple[Envelope, ...]) -> None:
    """Log copies with differing content: they are acknowledged, and their content is lost without further report."""
    for copy in copies:
        _log.warning(
            "entity %s: message %s is a duplicate, so it changed nothing, but it says something else than the message of this "
            "source and id that was processed. Does its sender use an id twice? Then send it again under another id",
            entity,
            key_of(copy),
        )


def _give_back(lane: _Lane, item: _Waiting) -> None:
    """Fail a delivery whose deadline passes while an attempt is under way."""
    if any(other is item for other in lane.waiting):
        state = f"its turn had not come: attempt {lane.attempts} for messages before it was under way"
    else:
        state = f"attempt {lane.attempts} was under way"
    seconds = "all" if item.deadline is None else f"{item.deadline.seconds:g}"
    late = f"Entity {lane.work.entity}: the {seconds} s that a delivery may take were over, and {state}. {ADVICE}"
    item.done.set_exception(_about(item.envelope, TryAgainLater(late)))


def _about(envelope: Envelope, error: BaseException) -> BaseException:
    """The error of a group, as the error of a message. A returned error ends neither the waiting task nor its event loop."""
    about_message: ExactlyOnceError
    if isinstance(error, ExactlyOnceError):
        about_message = type(error)(f"Message {key_of(envelope)}: {error}")
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    else:
        about_message = HandlerFailed(f"Message {key_of(envelope)}: processing it raised {class_of(error)}.")
    about_message.__cause__ = error
    return about_message


def _resolve(done: asyncio.Future[Processed], error: BaseException | None, processed: Processed) -> None:
    if done.done():
        return  # The caller was cancelled.
    if error is None:
        done.set_result(processed)
    else:
        done.set_exception(error)
