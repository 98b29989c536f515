"""Random histories of players and boards: everything at once, with every fault of the fault model, then in peace to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import Any

from exactlyonce import Entity, Envelope, Resequencer, TryAgainLater
from exactlyonce.drivers.retry import Backoff
from exactlyonce.hosting.upkeep.maintenance import Maintenance
from exactlyonce.records.ledger import read_entity
from exactlyonce.stores.memory.partitions import NoTrouble
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import InstantClock, Process, SeededTrouble, World
from exactlyonce.values.envelope import EntityRef
from tests.asking import sweep
from tests.stateful.boards import DESTINATIONS, OUTBOX, STREAM, Board, Played, a_play, boards, played
from tests.stateful.histories import FATES

BOARDS = ("chess", "go")
MOST_ROUNDS = 500
"""Thirty times what a history takes in which everybody keeps their promises."""
Delivery = tuple[Entity[Any] | None, Envelope]
"""A message, and the entity type it is for; None for a request to send again."""


class BoardHistory:
    """One random history.

    Args:
        seed: of all chance.
        strategy: of the boards.
        loss: how often a queue loses a message for good.
        store: what keeps the documents.
    """

    def __init__(
        self, seed: int, strategy: Resequencer, loss: float = 0.0, store: type[MemoryStore] = MemoryStore
    ) -> None:
        self.random = random = Random(seed)
        self.clock = InstantClock()
        self.world = World(
            DESTINATIONS,
            random=random,
            store=store(self.clock.now, SeededTrouble(random, FATES, stale=0.2, lag=3)),
            outcome=lambda _: random.choices([(True, True), (True, False), (False, False)], [0.92, 0.05, 0.03])[0],
            clock=self.clock,
        )
        self.loss = loss
        self.lost: list[Envelope] = []
        self.broken: set[tuple[str, int]] = set()
        self.board: Entity[Board] = boards(strategy, self._is_broken)
        self.refs = [self.board.ref(name) for name in BOARDS]
        self.numbers = {"boards": 0, "requests": 0}
        self.plays: list[Delivery] = [self._play(number) for number in range(40)]
        self.pending: list[Delivery] = self.random.choices(self.plays, k=10)

    def _play(self, number: int) -> Delivery:
        kind = self.random.choice([OUTBOX, STREAM])
        told = self.random.choice([[], ["chess"], ["go"], ["chess", "go"], ["go", "go"]])
        return kind, a_play(kind, number, self.random.choice("ab"), told, self.random.randint(0, 9))

    def _is_broken(self, given: Played) -> bool:
        return (given.player, given.step) in self.broken

    async def play(self) -> None:
        """In trouble, until nothing is left to deliver."""
        rounds = 0
        while self.plays or self.pending:
            rounds += 1
            assert rounds < MOST_ROUNDS, f"{len(self.pending)} messages are not processed, however often they come."
            self.pending += [self.plays.pop() for _ in self.plays[:4]]
            await self._round()
            self.fetch()

    async def _round(self) -> None:
        self.random.shuffle(self.pending)
        batch, self.pending = self.pending[:10], self.pending[10:]
        processes = [self.world.process(backoff=Backoff(tries=4)) for _ in range(2)]
        tasks = [asyncio.create_task(self.deliver(self.random.choice(processes), item)) for item in batch]
        tend = asyncio.create_task(self.tend(self.random.choice(processes), self.random.choice(self.refs)))
        for _ in range(self.random.randint(0, 80)):
            await asyncio.sleep(0)
        if self.random.random() < 0.5:
            self.world.store.land_delayed()
        for process in processes:
            await process.close() if self.random.random() < 0.7 else await process.crash()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(tend, return_exceptions=True)
        for one, result in zip(batch, results, strict=True):
            if isinstance(result, (asyncio.CancelledError, TryAgainLater)):
                self.pending.append(one)
            elif result is not None:
                raise result
        self.clock.advance(self.random.choice([0, 60, 300]))

    def fetch(self) -> None:
        """Take what arrived in the queues, some of it twice, and some of it not at all."""
        for name, kind in (("boards", self.board), ("requests", None)):
            queue = self.world.transport.queues[name]
            arrived, self.numbers[name] = queue[self.numbers[name] :], len(queue)
            for output in arrived:
                envelope = Envelope.read(output.envelope.text)
                if self.random.random() < self.loss:
                    self.lost.append(envelope)
                else:
                    self.pending += [(kind, envelope)] * self.random.choice([1, 1, 1, 2])

    async def deliver(self, process: Process, delivery: Delivery) -> None:
        kind, envelope = delivery
        if kind is not None:
            await process.deliver(kind, envelope)
        else:
            await process.end_with_me(self._maintenance(process).answer(STREAM, envelope))

    async def tend(self, process: Process, ref: EntityRef) -> None:
        """Look after a board, and drop from its outbox what is paid."""
        maintenance = self._maintenance(process)
        await process.end_with_me(maintenance.tend(self.board, ref))
        await process.run(ref, partial(self.board.strategy.sweep, maintenance.work(self.board, ref)))

    def _maintenance(self, process: Process) -> Maintenance:
        return Maintenance(process._driver, process._retrying, self.world.routes)

    async def finish(self, *more: Delivery) -> None:
        """In peace to the end, after some more messages."""
        self.world.store._trouble = NoTrouble()
        self.world.store.land_delayed()
        self.world.transport._outcome = lambda _: (True, True)
        self.loss = 0.0
        self.pending += more
        before = -1
        while before != self.writes:  # A gap behind a gap is overdue some time later.
            before = self.writes
            while self.pending:
                batch, self.pending = self.pending, []
                await self._in_peace(*(self._to(item) for item in batch))
                self.fetch()
            self.clock.advance(3600)
            await self._in_peace(*(self._tending(ref) for ref in self.refs))
            self.fetch()
        await self._in_peace(*(self._sweeping(OUTBOX.ref(name)) for name in "ab"))

    @property
    def writes(self) -> int:
        """How many documents of entities were written."""
        return sum(len(partition.log) for partition in self.world.store.entities.values())

    async def _in_peace(self, *jobs: Any) -> None:
        process = self.world.process()
        doings: list[Coroutine[Any, Any, None]] = [job(process) for job in jobs]
        await asyncio.gather(*doings)
        await process.close()

    def _to(self, delivery: Delivery) -> Any:
        return lambda process: self.deliver(process, delivery)

    def _tending(self, ref: EntityRef) -> Any:
        return lambda process: self.tend(process, ref)

    def _sweeping(self, ref: EntityRef) -> Any:
        return lambda process: process.run(ref, partial(sweep, ref))

    def told(self, name: str) -> dict[str, list[list[int]]]:
        """What a board has been told, by its state."""
        ref = self.board.ref(name)
        found = self.world.store._entity(ref).newest(ref.id)
        body = read_entity(ref, None if found is None else found.document).body
        told: dict[str, list[list[int]]] = {} if body is None else body.value["told"]
        return told

    def expected(self, name: str) -> dict[str, list[list[int]]]:
        """What it has to have been told: each source's messages in the order of their numbers, but for those it skipped."""
        skipped = {place for key, place in self.world.facts().skipped if key == self.board.ref(name).key}
        folds = {}
        for (board, source), sent in played(self.world).items():
            taken = [output for place, output in sorted(sent.items()) if place not in skipped]
            data = [output.envelope.value["data"] for output in taken]
            if board == name and data:
                folds[source] = [[item["step"], item["total"]] for item in data]
        return folds
