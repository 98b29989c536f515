"""Sweeper, poison settler, operator and clean-up: the jobs that run beside everything, twice, and at any time."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

from devtools.simulation.host import Hosts, Message
from devtools.simulation.loop import START
from devtools.simulation.plans import RETENTION
from devtools.simulation.protocols import Protocols
from devtools.simulation.weather import COPY_LIFE
from devtools.simulation.wire import Surrounding
from devtools.simulation.workload import REQUEUED, tallies
from exactlyonce.effects import Step
from exactlyonce.handling.attempts import Memory, key_of
from exactlyonce.identity import EntityRef
from exactlyonce.stores.memory_partitions import Partition, Version

_STAGED: Final = "staged:"
_PROCESSED: Final = "processed:"
_A_ROUND: Final = 10
_ATTRACTED: Final = 0.2
_REQUEUE_LIMIT: Final = timedelta(seconds=COPY_LIFE)


class Caretakers:
    """What an operator and timers do.

    Args:
        world: what all processes share.
        random: the source of chance.
        hosts: whose processes run the jobs.
        protocols: what runs.
        pause: mean of seconds between two rounds.
    """

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, protocols: Protocols, pause: float) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._protocols = protocols
        self._pause = pause

    def settle(self, message: Message) -> None:
        """Look into a message that a host gave up on, soon."""
        self._soon(self._settle, message)

    def look_after(self, entity: EntityRef) -> None:
        """Do a job on an entity soon, perhaps: chance alone would hardly ever meet a write that has yet to land."""
        if not self._world.weather.calm and self._random.random() < _ATTRACTED:
            loop, job = self._world.loop, self._random.choice((self._sweep, self._clean_up))
            loop.call_later(10 ** self._random.uniform(-3, 1.5), lambda: loop.create_task(job(entity)))

    async def go_round(self) -> None:
        """Do one job after the other until the weather has cleared up."""
        while not self._world.weather.calm:
            await asyncio.sleep(self._random.expovariate(1 / self._pause))
            job = self._random.choice((self.sweep, self.sweep, self.clean_up, self.forget))
            await job()

    async def sweep(self, at_least: float = 60.0) -> None:
        """Finish what has been owed for so many seconds."""
        for entity in self._world.owing.since(self._world.loop.time() - at_least):
            await self._sweep(entity)

    async def clean_up(self, most: int = _A_ROUND) -> None:
        """Delete staged documents that nothing refers to, of so many entities at most. No age is too low for it."""
        keys = list(dict.fromkeys(key for key, _ in self._documents(_STAGED)))
        for key in self._random.sample(keys, min(most, len(keys))):
            await self._clean_up(self._entity(key))

    async def forget(self) -> None:
        """Delete processed records older than the retention."""
        now = (START + timedelta(seconds=self._world.loop.time())).timestamp()
        old: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, version in self._documents(_PROCESSED):
            if now - version.timestamp > RETENTION.total_seconds():
                old[key].append((version.id.removeprefix(_PROCESSED), version.etag))
        for key, records in old.items():
            self._world.weather.counted["processed record cleaned up"] += len(records)
            await self._run(self._forgetting(self._entity(key), tuple(records)))

    def garbage(self) -> Iterator[str]:
        """Entities with staged documents that their newest document does not name."""
        for key, version in self._documents(_STAGED):
            entity = self._entity(key)
            document = self._world.store.entities[(entity.type, *entity.partition)].newest(entity.id)
            named = document is not None and document.document is not None and document.document.text
            if version.id.removeprefix(_STAGED) not in (named or ""):
                yield entity.id

    @property
    def owed(self) -> bool:
        """Whether something is owed."""
        return bool(self._world.owing)

    async def _sweep(self, entity: EntityRef) -> None:
        if await self._run(partial(self._protocols.sweep, entity)):
            self._world.weather.counted["entity swept"] += 1

    async def _clean_up(self, entity: EntityRef) -> None:
        staged = self._documents(_STAGED, entity.key)
        candidates = tuple(version.id.removeprefix(_STAGED) for _, version in staged)
        absent = tallies.shape.tombstone(entity)
        cleaned = await self._run(partial(self._protocols.clean_staged, entity, candidates, absent))
        if cleaned and cleaned.transactions:
            self._world.weather.counted["staged garbage deleted"] += len(cleaned.transactions)

    async def _settle(self, message: Message) -> None:
        absent = tallies.shape.tombstone(message.entity)
        step = partial(self._protocols.settle, message.entity, message.envelope, "it was given up", absent)
        settled = await self._run(step)
        if settled is None:
            self.settle(message)
        elif settled.outcome == "parked":
            self._world.history.park(message.name)
            self._world.weather.counted["message parked"] += 1
            if not self._world.history.orders[message.name].refused:
                self._soon(self._requeue, message)
        else:
            self._world.history.acknowledge(message.name, "settled")
            self._world.weather.counted["given up, yet processed"] += 1

    def _forgetting(self, entity: EntityRef, records: tuple[tuple[str, str], ...]) -> Callable[[Memory], Step[None]]:
        return lambda _: self._protocols.forget(entity, records)

    async def _requeue(self, message: Message) -> None:
        """Send a parked message again: its trouble was the weather."""
        if message.name not in self._world.history.parked:
            return  # It was parked twice, and sent again already.
        key = key_of(message.envelope)
        requeued = await self._run(partial(self._protocols.requeue, message.entity, key, REQUEUED, _REQUEUE_LIMIT))
        if requeued is None:
            self._soon(self._requeue, message)
            return
        self._world.weather.counted[f"requeued: {requeued.outcome}"] += 1
        # Who sent it may have died before telling; but a replica that is behind says the same.
        if requeued.outcome == "not parked" and not self._world.weather.calm:
            self._soon(self._requeue, message)
        else:
            self._world.history.requeue(message.name)

    async def _run(self, step: Callable[[Memory], Step[Any]]) -> Any:
        process = self._hosts.any_process()
        return None if process is None else await process.run(step)

    def _soon(self, job: Callable[[Message], Coroutine[Any, Any, None]], message: Message) -> None:
        loop = self._world.loop
        loop.call_later(10 ** self._random.uniform(-1, 3), lambda: loop.create_task(job(message)))

    def _documents(self, kind: str, entity: str | None = None) -> Iterator[tuple[str, Version]]:
        """Key of the entity and newest version of every document of a kind: what a query would find."""
        library = self._world.store.library
        for key in list(library) if entity is None else [entity]:
            partition = library.get(key, Partition())
            newest = {version.id: version for version in partition.log if version.id.startswith(kind)}
            yield from ((key, version) for version in newest.values() if version.document is not None)

    @staticmethod
    def _entity(key: str) -> EntityRef:
        type, *partition, id = json.loads(key)
        return EntityRef(type, tuple(partition), id)
