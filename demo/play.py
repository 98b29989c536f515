"""One game: fire, make trouble, wait until the queues are empty, gather the evidence."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from aiohttp import ClientSession

from demo import trouble
from demo.clients import Clients
from demo.disorder import Disorder, Gap, gaps, plan_losses
from demo.options import Options
from demo.oracle import Evidence
from demo.queues import Queue, open_queue
from demo.shots import Shot
from demo.stack import DATABASE, QUEUES, WAY, Stack
from exactlyonce import Envelope
from exactlyonce.records.library import read_book
from exactlyonce.records.outbox import number_of
from exactlyonce.stores.cosmos.partition import book_id, from_library
from handlers.leader_board import Score
from handlers.shooting_range import Range

_SENDERS: Final = 8
_POLL_SECONDS: Final = 0.2
_STUCK_SECONDS: Final = 240
"""How long the number of waiting messages may stay the same."""
_TENDINGS: Final = 40
_TENDING_SECONDS: Final = 0.3
"""How often, and how far apart, the board is tended; a gap has to be some seconds old."""
_SWEEPS: Final = 60
_SWEEPING_SECONDS: Final = 1.0
"""The same for games that owe."""


@dataclass(slots=True)
class Progress:
    """What a spectator sees grow."""

    sent: int = 0
    kills: int = 0
    writes: int = 0
    waiting: int = 0
    displaced: int = 0
    answers: dict[str, list[str]] = field(default_factory=dict)
    unanswered: int = 0
    replayed: int = 0
    gaps: tuple[Gap, ...] = ()
    recovery: str = ""
    act: str = "starting"


async def play(
    stack: Stack, options: Options, deliveries: tuple[Shot, ...], show: Callable[[Progress], None]
) -> Progress:
    """Send every delivery while hosts work, fail and are killed; return when all requests are answered and all queues empty.

    Raises:
        TimeoutError: the queues did not drain, or a request was never answered.
    """
    progress = Progress()
    asking = Clients(stack, Random(options.seed) if options.faults else None)
    if options.faults:
        trouble.inject(stack, options.seed)
    kills = [round(len(deliveries) * share) for share in trouble.KILLS] if options.faults else []
    async with AsyncExitStack() as clients:
        queues = {name: await clients.enter_async_context(open_queue(stack, name)) for name in (*QUEUES, WAY)}
        clients.push_async_callback(asking.stop)
        random = Random(options.seed)
        disorder = Disorder(random, plan_losses(frozenset(deliveries), random))
        if options.disordered:
            bringing = asyncio.create_task(disorder.reign(queues[WAY], queues["leader-board"]))
            clients.push_async_callback(_end, bringing)
        for start, end in zip([0, *kills], [*kills, len(deliveries)], strict=True):
            progress.act = "shooting"
            sent = deliveries[start:end]
            await _send(queues["shooting-range"], asking, sent, progress, lambda: _look(stack, progress, show))
            if end == len(deliveries):
                break
            progress.act = "killing hosts"
            if end == kills[len(kills) // 2]:
                progress.kills += await trouble.kill_between_commit_and_publish(stack)
            else:
                progress.kills += stack.kill_host()
            await asyncio.to_thread(stack.start_hosts, options.hosts)
        await asking.finish()
        progress.answers = dict(asking.answers)
        progress.unanswered, progress.replayed = asking.unanswered, asking.replayed
        drain = partial(_drain, stack, queues, progress, show)
        await drain()
        if options.disordered:
            await _recover(stack, disorder, queues["leader-board"], progress, drain)
        await _sweep(stack, progress)
        await drain()
        return progress


async def _recover(
    stack: Stack, disorder: Disorder, board: Queue, progress: Progress, drain: Callable[[], Awaitable[None]]
) -> None:
    """Show what the board waits for, and get it: from the games' streams, or because the lost messages turn up."""
    disorder.calm = True
    progress.displaced, progress.gaps = disorder.displaced, gaps(stack)
    progress.act = "recovering"
    if stack.strategy != "stream":
        progress.recovery = "the lost messages turned up"
        await disorder.give_back(board)
        return await drain()
    progress.recovery = "rebuilt from the streams of their games"
    async with ClientSession(stack.http) as http:
        for _ in range(_TENDINGS):
            if not (waiting := gaps(stack)):
                return None
            for gap in waiting:
                async with http.post(f"/api/games/{gap.game}/mending") as reply:
                    reply.raise_for_status()
            await drain()
            await asyncio.sleep(_TENDING_SECONDS)
    return None


async def _sweep(stack: Stack, progress: Progress) -> None:
    """Have done what killed hosts owe, as the sweeper's timer would within a minute. Others prove what they sent meanwhile."""
    progress.act = "sweeping"
    async with ClientSession(stack.http) as http:
        for _ in range(_SWEEPS):
            if not owing(stack):
                return
            async with http.post("/admin/functions/exactlyonce_sweep", json={}) as reply:
                reply.raise_for_status()
            await asyncio.sleep(_SWEEPING_SECONDS)
    raise TimeoutError(f"Some games still owe what they announced; the hosts' logs are in {stack.logs}.")


def owing(stack: Stack) -> bool:
    """Whether the newest document of a game, or a companion of one, owes what no book pays."""
    games, library = (_newest(stack, name) for name in ("games", "exactlyonce"))
    books = {item["id"]: read_book(from_library(item)) for item in library if item["kind"] == "book"}

    def is_paid(tx: str) -> bool:
        book, number = number_of(tx)
        return book_id(book) in books and books[book_id(book)].pays(number)

    entries = (entry for game in games for entry in game.get("_ledger", {}).get("outbox", ()))
    owed = (entry for entry in entries if not is_paid(entry["tx"]))
    return any(owed) or any(game.get("owing_since") for game in games)


def _newest(stack: Stack, container: str) -> list[dict[str, Any]]:
    """The documents of a container as they are now."""
    newest = {write.id: write.document for write in stack.cosmos.history(DATABASE, container)}
    return [item for item in newest.values() if item]


async def _drain(
    stack: Stack, queues: Mapping[str, Queue], progress: Progress, show: Callable[[Progress], None]
) -> None:
    """Wait until the queues are empty: however long, as long as the number of their messages changes."""
    progress.act, unchanged = "draining", 0
    while unchanged < _STUCK_SECONDS / _POLL_SECONDS:
        before = progress.waiting
        progress.waiting = sum([await queues[name].waiting() for name in ("shooting-range", WAY, "leader-board")])
        _look(stack, progress, show)
        if not progress.waiting:
            return
        unchanged = unchanged + 1 if progress.waiting == before else 0
        await asyncio.sleep(_POLL_SECONDS)
    raise TimeoutError(f"{progress.waiting} messages are still in the queues; the hosts' logs are in {stack.logs}.")


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task; what it failed with before comes out."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def gather(stack: Stack, answers: Mapping[str, Sequence[str]] | None = None) -> Evidence:
    """Read what everybody can see: the audience's queue, the accepted writes, the boards, the poison queues, and answers."""
    outcomes, poison = [], 0
    async with open_queue(stack, "audience") as audience:
        while await audience.waiting():
            for message in await audience.receive():
                outcomes.append(Envelope.read(message.body))
                await audience.delete(message)
    for name in QUEUES:
        async with open_queue(stack, name) as queue:
            poison += await queue.given_up()
    states = _documents(stack, "games", Range.model_validate)
    boards = _documents(stack, "boards", Score.model_validate)
    return Evidence(
        tuple(outcomes), states, {game: written[-1] for game, written in boards.items()}, poison, answers or {}
    )


def _documents(stack: Stack, container: str, read: Callable[[dict[str, Any]], Any]) -> dict[str, tuple[Any, ...]]:
    """The documents of a container after each accepted write, by id, without the library's own property."""
    found: dict[str, list[Any]] = defaultdict(list)
    for write in stack.cosmos.history(DATABASE, container):
        if write.document is not None and "_kind" not in write.document:
            found[write.id].append(read({name: value for name, value in write.document.items() if name[0] != "_"}))
    return {id: tuple(states) for id, states in found.items()}


async def _send(
    queue: Queue, asking: Clients, deliveries: Iterable[Shot], progress: Progress, look: Callable[[], None]
) -> None:
    waiting = iter(deliveries)

    async def sender() -> None:
        for shot in waiting:
            if shot.over_http:
                asking.begin(shot)
            else:
                await queue.send(shot.envelope.to_json().text.encode())
            progress.sent += 1
            if progress.sent % 10 == 0:
                look()

    await asyncio.gather(*(sender() for _ in range(_SENDERS)))


def _look(stack: Stack, progress: Progress, show: Callable[[Progress], None]) -> None:
    progress.writes = sum(total.applied for total in stack.cosmos.totals() if total.database == DATABASE)
    show(progress)
