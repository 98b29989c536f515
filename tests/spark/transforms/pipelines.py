"""Random histories of weeks: players tell readers, with crashes, stale reads, lost answers, and clean-up stopped half way.

What happens keeps to what the documentation asks for: nothing waits in a queue for longer than the delivery limit, what is owed
is swept daily, and clean-up takes nothing younger than the retention. So whatever the rules find is a false alarm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from exactlyonce import Colocated, Context, Destination, Entity, Outbox, Resequencer, TryAgainLater, VersionStream
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.attempt import Strategy, Work
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.stores.memory.store import MemoryStore, NoTrouble, Partition, Version
from exactlyonce.testing.world import InstantClock, Process, SeededTrouble, World
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.lifetimes import CLOCK_TOLERANCE, Lifetimes, Retention
from tests.boards import Board, News, Played, a_play, players
from tests.samples import FATES

LIFETIMES = Lifetimes(Retention(timedelta(days=10)), delivery_limit=timedelta(days=4))
SENDERS: Mapping[str, tuple[Strategy, ...]] = {
    "outbox": (Outbox(),),
    "colocated": (Colocated(),),
    "stream": (VersionStream(snapshot_every=3),),
}
READERS: Mapping[str, Strategy] = {
    "resequencer": Resequencer(),
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
}
PACES = (timedelta(0), timedelta(minutes=7), timedelta(hours=5), timedelta(days=1), timedelta(days=3))


class Lagging(MemoryStore):
    """A store whose replicas lag for minutes: an attempt with a view of days ago would write documents of days ago anew."""

    def _replica(self, partition: Partition) -> int:
        oldest = self._now().timestamp() - 1800
        old = sum(version.timestamp < oldest for version in partition.log)
        return max(super()._replica(partition), old)


@dataclass
class Waiting:
    """A message in a queue, and since when."""

    type: Entity[Any]
    envelope: Envelope
    since: datetime


def boards(name: str, strategy: Strategy) -> Entity[Board]:
    """Boards that hear from players, and make news of some of it."""
    entity = Entity(name, state=Board, container=name, partition_key="/board", strategy=strategy)

    @entity.handles(Played, key=lambda played: played.board)
    def note(state: Board, given: Played, context: Context) -> Board:
        if given.total % 3 == 0:
            context.announce(News(given.board, state.heard + 1))
        told = {**state.told, given.player: [*state.told.get(given.player, []), [given.step, given.total]]}
        return Board(told, state.heard + 1)

    return entity


class Pipeline:
    """One history.

    Args:
        seed: of all chance.
        name: ends the names of its players and boards, so that many histories fit into one frame. Their types are those of all
            histories with the same strategies: documents are parsed by type, and a hundred types take Spark many minutes.
        senders: strategies of the players, as `SENDERS` calls them, one of which each delivery is handled by.
        reader: strategy of the boards, as `READERS` calls it.
        paces: how long nothing may happen.

    Attributes:
        names: of the players, and of the boards.
        removed: how many documents clean-up took.
    """

    def __init__(self, seed: int, name: str, senders: str, reader: str, paces: Sequence[timedelta] = PACES) -> None:
        self.player_type, self.board_type, self.queue_name = f"player_{senders}", f"board_{reader}", f"boards_{reader}"
        self.names = tuple(f"{item}{name}" for item in ("a", "b", "chess", "go"))
        told = Destination(
            self.queue_name,
            receives=(Played,),
            to=self.board_type,
            entity_by=lambda played: played.board,
            ordered=isinstance(READERS[reader], Resequencer),
        )
        self.random = Random(seed)
        self.clock = InstantClock()
        self.trouble = SeededTrouble(self.random, FATES, stale=0.2, lag=3)
        self.world = World(
            (told, Destination("news", receives=(News,))),
            random=self.random,
            store=Lagging(self.clock.now, self.trouble),
            outcome=lambda _: self.random.choices([(True, True), (True, False), (False, False)], [0.9, 0.05, 0.05])[0],
            clock=self.clock,
            lifetimes=LIFETIMES,
        )
        self.senders = [players(self.player_type, sender) for sender in SENDERS[senders]]
        self.board = boards(self.board_type, READERS[reader])
        self.paces = paces
        self.queue: list[Waiting] = []
        self.plays = 0
        self.fetched = 0
        self.removed = 0

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Of the partition keys, by entity type."""
        return {self.player_type: ("/player",), self.board_type: ("/board",)}

    async def run(self, rounds: int) -> None:
        """Go on for some rounds; the last one is left as it is, in the middle of things."""
        a, b, chess, go = self.names
        for _ in range(rounds):
            pause = self.random.choice(self.paces)
            if pause > timedelta(hours=1):
                await self.deliver_old_ones()
            await self.look_after()
            self.clock.advance(pause.total_seconds())
            for _ in range(self.random.randint(1, 4)):
                told = self.random.choice([[], [chess], [go], [chess, go], [go, go]])
                sender = self.senders[0]
                play = a_play(sender, self.plays, self.random.choice([a, b]), told, self.random.randint(0, 9))
                self.plays += 1
                play = replace(play, time=self.clock.now())
                if self.plays % 3:
                    play = play.with_stable_time()
                self.queue += [Waiting(sender, play, self.clock.now())] * self.random.choice([1, 1, 2])
            await self.trouble_round()

    async def trouble_round(self) -> None:
        """Some deliveries at once, with crashes."""
        self.random.shuffle(self.queue)
        batch, self.queue = self.queue[:8], self.queue[8:]
        processes = [self.world.process(backoff=Backoff(tries=4)) for _ in range(2)]
        tasks = [asyncio.create_task(self.deliver(self.random.choice(processes), item)) for item in batch]
        for _ in range(self.random.randint(0, 80)):
            await asyncio.sleep(0)
        self.world.store.land_delayed()
        for process in processes:
            await process.close() if self.random.random() < 0.6 else await process.crash()
        for one, result in zip(batch, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            if isinstance(result, (asyncio.CancelledError, TryAgainLater)):
                self.queue.append(one)
            elif result is not None:
                raise result
        self.fetch()

    async def deliver(self, process: Process, waiting: Waiting) -> None:
        type = self.random.choice(self.senders) if waiting.type is not self.board else self.board
        ref = type.ref_of(waiting.envelope)
        runner, retention = Runner(type, ref, self.world.routes), LIFETIMES.retention.current
        handle = AgeCheck(runner, ref, LIFETIMES, type.strategy.forgets)
        limit = LIFETIMES.send_limit(self.clock.now())
        work = Work(
            *(ref, (), handle, runner.absent, runner.evolve, retention, LIFETIMES.refusal),
            send_limit=limit,
            senders=frozenset({self.player_type, self.board_type}),
        )
        await process._lanes.process(type.strategy, work, waiting.envelope)

    def fetch(self) -> None:
        """Take what arrived in the queue of the boards, some of it twice."""
        queue = self.world.transport.queues[self.queue_name]
        arrived, self.fetched = queue[self.fetched :], len(queue)
        for output in arrived:
            waiting = Waiting(self.board, Envelope.read(output.envelope.text), self.clock.now())
            self.queue += [waiting] * self.random.choice([1, 1, 2])

    async def deliver_old_ones(self) -> None:
        """What would wait for too long."""
        old = [item for item in self.queue if self.clock.now() - item.since > timedelta(hours=6)]
        self.queue = [item for item in self.queue if item not in old]
        process = self.world.process()
        for item in old:
            await self.deliver(process, item)
        await process.close()
        self.fetch()

    async def look_after(self) -> None:
        """Without trouble, sweep everything, and clean up some of what may go."""
        store = self.world.store
        store.land_delayed()
        store._trouble, before = NoTrouble(), store._trouble
        outcome, self.world.transport._outcome = self.world.transport._outcome, lambda _: (True, True)
        process = self.world.process()
        for type in (self.senders[0], self.board):
            for ref in map(type.ref, self.names):
                if store._entity(ref).newest(ref.id) is not None:
                    await self._sweep(process, type, ref)
        await process.close()
        self.fetch()
        self._clean_up()
        store._trouble = before
        self.world.transport._outcome = outcome

    async def _sweep(self, process: Process, type: Entity[Any], ref: Any) -> None:
        if not isinstance(type.strategy, VersionStream):
            runner = Runner(type, ref, self.world.routes)
            await process.run(ref, partial(type.strategy.sweep, Work(ref, (), runner, runner.absent)))

    def _clean_up(self) -> None:
        """Each of the documents that may go goes, or does not: whoever deletes them may be stopped at any time."""
        store = self.world.store
        oldest = (self.clock.now() - LIFETIMES.retention.current).timestamp()
        for partition in (*store.library.values(), *store.entities.values()):
            for version in partition.view(len(partition.log)).values():
                if _may_go(version, oldest) and self.random.random() < 0.4:
                    store._append(partition, version.id, None)
                    self.removed += 1


def _may_go(version: Version, oldest: float) -> bool:
    """Whether a document has expired."""
    assert version.document is not None
    document = version.companion or version.document.value
    kind = document.get("_kind", document.get("kind"))
    if kind == "page":
        newest = document["until"] / 1000 + CLOCK_TOLERANCE.total_seconds()
        return newest < oldest and ("answers" not in document or version.timestamp < oldest)
    if version.timestamp >= oldest:
        return False
    if kind == "numbered":
        return document["held"] is None
    return kind == "entry" or (kind == "processed" and document.get("owed") is None)
