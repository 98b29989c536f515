"""One game: fire, make trouble, wait until the queues are empty, gather the evidence."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from devtools.demo import trouble
from devtools.demo.options import Options
from devtools.demo.oracle import Evidence
from devtools.demo.shots import Shot
from devtools.demo.stack import DATABASE, QUEUES, Stack
from exactlyonce import Envelope
from handlers.leader_board import Score
from handlers.shooting_range import Range

_SENDERS: Final = 8
_POLL_SECONDS: Final = 0.2
_DRAIN_SECONDS: Final = 240
_PAGE: Final = 32


@dataclass(slots=True)
class Progress:
    """What a spectator sees grow."""

    sent: int = 0
    kills: int = 0
    writes: int = 0
    waiting: int = 0
    act: str = "starting"


async def play(
    stack: Stack, options: Options, deliveries: tuple[Shot, ...], show: Callable[[Progress], None]
) -> Progress:
    """Send every delivery while hosts work, fail and are killed; return when all queues are empty.

    Raises:
        TimeoutError: the queues did not drain.
    """
    progress = Progress()
    if options.faults:
        trouble.inject(stack, options.seed)
    kills = [round(len(deliveries) * share) for share in trouble.KILLS] if options.faults else []
    async with AsyncExitStack() as clients:
        queues = {name: await clients.enter_async_context(_queue(stack, name)) for name in QUEUES}
        for start, end in zip([0, *kills], [*kills, len(deliveries)], strict=True):
            progress.act = "shooting"
            await _send(queues["shooting-range"], deliveries[start:end], progress, lambda: _look(stack, progress, show))
            if end == len(deliveries):
                break
            progress.act = "killing hosts"
            if end == kills[len(kills) // 2]:
                progress.kills += await trouble.kill_between_commit_and_publish(stack)
            else:
                progress.kills += stack.kill_host()
            while len(stack.hosts) < options.hosts:
                stack.start_host()
        progress.act = "draining"
        for _ in range(round(_DRAIN_SECONDS / _POLL_SECONDS)):
            progress.waiting = sum([await _length(queues[name]) for name in ("shooting-range", "leader-board")])
            _look(stack, progress, show)
            if not progress.waiting:
                return progress
            await asyncio.sleep(_POLL_SECONDS)
    raise TimeoutError(f"{progress.waiting} messages are still in the queues; the hosts' logs are in {stack.logs}.")


async def gather(stack: Stack) -> Evidence:
    """Read what everybody can see: the audience's queue, the accepted writes, the boards, the poison queues."""
    async with _queue(stack, "audience") as audience:
        outcomes = tuple([Envelope.read(message.content) async for message in _receive_all(audience)])
    poison = 0
    for name in QUEUES:
        async with _queue(stack, f"{name}-poison") as queue:
            poison += await _length(queue)
    states = _documents(stack, "games", Range.model_validate)
    boards = _documents(stack, "boards", Score.model_validate)
    return Evidence(outcomes, states, {game: written[-1] for game, written in boards.items()}, poison)


def _documents(stack: Stack, container: str, read: Callable[[dict[str, Any]], Any]) -> dict[str, tuple[Any, ...]]:
    """The documents of a container after each accepted write, by id, without the library's own property."""
    found: dict[str, list[Any]] = defaultdict(list)
    for write in stack.cosmos.history(DATABASE, container):
        if write.document is not None:
            found[write.id].append(read({name: value for name, value in write.document.items() if name[0] != "_"}))
    return {id: tuple(states) for id, states in found.items()}


async def _send(queue: QueueClient, deliveries: Iterable[Shot], progress: Progress, look: Callable[[], None]) -> None:
    waiting = iter(deliveries)

    async def sender() -> None:
        for shot in waiting:
            await queue.send_message(shot.envelope.to_json().text.encode())
            progress.sent += 1
            if progress.sent % 10 == 0:
                look()

    await asyncio.gather(*(sender() for _ in range(_SENDERS)))


def _look(stack: Stack, progress: Progress, show: Callable[[Progress], None]) -> None:
    progress.writes = sum(total.applied for total in stack.cosmos.totals() if total.database == DATABASE)
    show(progress)


def _queue(stack: Stack, name: str) -> QueueClient:
    return QueueClient.from_connection_string(
        stack.storage.connection_string,
        name,
        message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy(),
    )


async def _length(queue: QueueClient) -> int:
    """Messages in a queue, invisible ones included; 0 if there is no such queue."""
    try:
        return (await queue.get_queue_properties()).approximate_message_count or 0
    except ResourceNotFoundError:
        return 0


async def _receive_all(queue: QueueClient) -> Any:
    async for message in queue.receive_messages(messages_per_page=_PAGE, visibility_timeout=3600):
        yield message
