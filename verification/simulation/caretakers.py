"""Jobs at any time, twice, and while everything else runs: sweeper, clean-up, and what tends boards."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from math import inf
from random import Random
from typing import Any, Final, TypeVar

from exactlyonce import Envelope, ExactlyOnceError, Outbox
from exactlyonce.effects.attempt import Memory, Strategy
from exactlyonce.effects.effect import Step
from exactlyonce.effects.library import Park
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.protocols.resequencer.gaps import read_request
from exactlyonce.protocols.stream.replay import Missing, Replayed
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import Partition, Version
from exactlyonce.testing.loop import START
from exactlyonce.values.envelope import EntityRef, key_of
from verification.simulation.host import Hosts
from verification.simulation.plans import Plan, Restored
from verification.simulation.processes import Message, parked_etag
from verification.simulation.protocols import Application
from verification.simulation.wire import HOUR, Surrounding
from verification.simulation.workload import REQUEUED, tallies

Thing = TypeVar("Thing")
_STAGED: Final = "staged:"
_PAGE: Final = "page:"
_MOST_AT_ONCE: Final = 100  # Companions that one clean-up takes.
_A_ROUND: Final = 10
_ATTRACTED: Final = 0.2
_A_MINUTE: Final = timedelta(minutes=1)
_HALF_A_DAY: Final = 12 * HOUR
_DAYS: Final = 8


class Caretakers:
    """What an operator and timers do."""

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, application: Application, plan: Plan) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._protocols = application.protocols
        self._application = application
        self._plan = plan
        self._listing = MemoryListing(world.store)

    def answer(self, request: Envelope) -> None:
        """Send again, soon, what a board lacks."""
        self._world.weather.counted["source asked to send again"] += 1
        self._soon(self._answer, request)

    def look_after(self, entity: EntityRef) -> None:
        """Do a job on an entity soon, perhaps: chance alone would hardly ever meet a write that has yet to land."""
        ours = self._application.is_board(entity) or entity.type == tallies.name
        if ours and not self._world.weather.calm and self._random.random() < _ATTRACTED:
            loop, other = self._world.loop, self._clean_up if self._stages(entity) else self._sweep
            job = self._random.choice((self._sweep, other))
            loop.call_later(10 ** self._random.uniform(-3, 1.5), lambda: loop.create_task(job(entity)))

    async def go_round(self) -> None:
        """Do one job after the other until the weather has cleared up."""
        while not self._world.weather.calm:
            await asyncio.sleep(self._random.expovariate(1 / self._plan.rounds))
            job = self._random.choice((self.sweep, self.sweep, self.clean_up, self.forget))
            await job()

    async def sweep(self, at_least: timedelta = _A_MINUTE) -> None:
        """Finish what is owed, due, or held for so long."""
        process = self._hosts.any_process()
        swept = None if process is None else await process.sweep(at_least)
        self._world.weather.counted["entity swept"] += 0 if swept is None else swept.swept

    async def finish(self, most: int) -> None:
        """Sweep until nothing is owed or held: `most` times, since each sweep finds the first gap of a channel only.

        A book whose process died is searched when it has been silent, and then after an hour and a day.
        """
        for _ in range(most):
            await self.sweep(timedelta(0))
            if not await self._holds():
                break
            await asyncio.sleep(self._plan.reading.patience)
        for _ in range(_DAYS):
            if self._listing.first_owing() is None:
                return
            await asyncio.sleep(_HALF_A_DAY)
            await self.sweep(timedelta(0))

    async def clean_up(self, most: int = _A_ROUND) -> None:
        """Delete staged documents that nothing refers to, of so many entities at most. No age is too low for it."""
        keys = list(dict.fromkeys(key for key, _ in self._documents(_STAGED) if self._stages(self._entity(key))))
        for key in self._random.sample(keys, min(most, len(keys))):
            await self._clean_up(self._entity(key))

    async def forget(self) -> None:
        """Delete pages and companions older than the retention. Where pages expire, the store deletes them by itself."""
        old: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, version in self._documents(_PAGE):
            if self._plan.lifetimes.expiry == "job" and self._is_old(self._newest_in(version)):
                old[key].append((version.id.removeprefix(_PAGE), version.etag))
            elif self._world.expire.get(version.etag, inf) < self._world.loop.time():
                self._world.store.library[key].append(replace(version, document=None))
                self._world.weather.counted["page expired"] += 1
        for key, pages in old.items():
            self._world.weather.counted["page cleaned up"] += len(pages)
            await self._run(self._entity(key), partial(Outbox().clean, self._entity(key), tuple(pages)))
        if self._plan.reading.on_gap != "rebuild":  # In eight days nobody may have come to ask for what is missing.
            await self._truncate()

    async def _truncate(self) -> None:
        old: dict[str, list[Version]] = defaultdict(list)
        for partition in self._world.store.entities.values():
            for version in {version.id: version for version in partition.log}.values():
                # What was given up stays known: its sender may not have been swept for days.
                if (
                    self._is_old(version.timestamp)
                    and (companion := version.companion)
                    and companion["message"] is not None
                ):
                    old[companion["entity"]].append(version)
        for key, versions in old.items():
            oldest = sorted(versions, key=lambda item: item.timestamp)[:_MOST_AT_ONCE]
            candidates = tuple((item.id, item.etag) for item in oldest)
            self._world.weather.counted["companion cleaned up"] += len(candidates)
            entity = self._entity(key)
            await self._run(entity, partial(self._strategy(entity).clean, entity, candidates))

    @staticmethod
    def _newest_in(page: Version) -> float:
        """When the newest of the messages in a page came about, in seconds since 1970."""
        assert page.document is not None  # noqa: S101  # Only pages that are there are listed.
        until: int = page.document.value["until"]
        return until / 1000

    def _is_old(self, time: float) -> bool:
        now = START + timedelta(seconds=self._world.loop.time())
        kept: timedelta = self._protocols.kept(self._plan.lifetimes, now)
        return now.timestamp() - time > kept.total_seconds()

    def _strategy(self, entity: EntityRef) -> Strategy:
        if self._application.is_board(entity):
            return self._application.boards.strategy
        return self._protocols.strategies[0]

    def garbage(self) -> Iterator[str]:
        """Entities with staged documents that their newest document does not name."""
        for key, version in self._documents(_STAGED):
            entity = self._entity(key)
            if not self._stages(entity):
                continue  # What is staged there was staged by nobody, for the token, and clean-up leaves it.
            partition = self._world.store.entities.get((entity.type, *entity.partition), Partition())
            document = partition.newest(entity.id)
            named = document is not None and document.document is not None and document.document.text
            if version.id.removeprefix(_STAGED) not in (named or ""):
                yield entity.id

    async def owes(self) -> bool:
        return self._listing.first_owing() is not None or await self._holds()

    async def _holds(self) -> bool:
        later = START + timedelta(seconds=self._world.loop.time()) + timedelta(days=1)
        return any([found async for found in self._listing.holding(self._application.boards.name, later)])

    async def _sweep(self, entity: EntityRef) -> None:
        await self._run(entity, partial(self._strategy(entity).sweep, self._application.work(entity)))

    async def _answer(self, request: Envelope) -> None:
        source, missing = read_request(request)
        entity = tallies.ref_of_source(source)
        versions = await self._run(entity, partial(self._protocols.versions_of, entity, missing))
        if versions is None or not await self._sent_again(entity, versions, missing):
            self._soon(self._answer, request)

    async def _sent_again(self, entity: EntityRef, versions: tuple[int, int], missing: Missing) -> bool:
        """Replay part by part; whether it came to the end."""
        work = self._application.work(entity)
        following: int | None = versions[0]
        while following is not None:
            step = partial(self._protocols.replay, work, (following, versions[1]), missing=missing)
            part: Replayed | None = await self._run(entity, step)
            if part is None:
                return False
            self._world.weather.counted["sent again by its source"] += part.sent
            following = part.following
        return True

    def _stages(self, entity: EntityRef) -> bool:
        """Whether attempts on the entity stage anything: those of no other protocol do."""
        return entity.type == tallies.name and self._protocols.protocol == "outbox"

    async def _clean_up(self, entity: EntityRef) -> None:
        staged = self._documents(_STAGED, entity.key)
        candidates = tuple(version.id.removeprefix(_STAGED) for _, version in staged)
        absent = tallies.shape.tombstone(entity)
        cleaned = await self._run(entity, partial(self._protocols.clean_staged, entity, candidates, absent))
        if cleaned and cleaned.transactions:
            self._world.weather.counted["staged garbage deleted"] += len(cleaned.transactions)

    async def _run(self, entity: EntityRef, step: Callable[[Memory], Step[Any]], memory: Memory | None = None) -> Any:
        """Run a job on an entity; None if it came to nothing."""
        process = self._hosts.any_process()
        try:
            return None if process is None else await process.run(entity, step, memory)
        except ExactlyOnceError as error:
            self._world.history.convict("no_surprise", entity.id, f"a job raised {error!r}")
            return None

    def _soon(self, job: Callable[[Thing], Coroutine[Any, Any, None]], thing: Thing) -> None:
        loop = self._world.loop
        loop.call_later(10 ** self._random.uniform(-1, 3), lambda: loop.create_task(job(thing)))

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


_MOST: Final = 3
_BACKED_UP: Final = 0.2
_PUT_BACK: Final = 0.1
_PARKED: Final = "parked:"


@dataclass(frozen=True, slots=True)
class _Backup:
    """A moment of the store.

    Attributes:
        entities, library: how many writes each partition had.
        seen: how many states of each tally the history had.
    """

    entities: dict[tuple[object, ...], int]
    library: dict[str, int]
    seen: dict[str, int]


class Restores:
    """Backups, and what is put back of them: what a restore of an account does, or a script that repairs one.

    Documents get new ETags, and session tokens stay valid: the kindest restore there is. Processes end before, and no write
    lands that was under way. All replicas show what was put back, as in the model: an earlier view would prove what never
    happened. What is parked stays, since operators know of it.

    Args:
        restored: what is put back; None for nothing, ever.
    """

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, restored: Restored | None) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._restored = restored
        self._backup: _Backup | None = None

    def perhaps(self) -> list[str]:
        """Make a backup, or put one back, or neither; return the names of the messages that are undone."""
        if self._restored is None or self._world.restores == _MOST:
            return []
        if self._backup is None:
            if self._random.random() < _BACKED_UP:
                self._backup = self._made()
        elif self._random.random() < _PUT_BACK:
            backup, self._backup = self._backup, None
            return self._put_back(backup)
        return []

    def _made(self) -> _Backup:
        store = self._world.store
        entities = {key: len(item.log) for key, item in store.entities.items()}
        return _Backup(
            entities, {key: len(item.log) for key, item in store.library.items()}, self._world.history.written_so_far
        )

    def _put_back(self, backup: _Backup) -> list[str]:
        world, everything = self._world, self._restored == "everything"
        world.weather.counted["documents put back"] += 1
        world.restores += 1
        self._hosts.end_all(in_order=False)
        tallies = sorted(world.history.writes)
        chosen = set(tallies if everything else self._random.sample(tallies, (len(tallies) + 1) // 2))
        if (
            not everything
        ):  # Without its document, an entity that has pages is refused for good (`LedgerRemoved`), as it should be.
            chosen -= {id for id in self._with_pages() if id not in backup.seen}
        for place, partition in world.store.entities.items():
            self._rewrite(partition, backup.entities.get(place, 0), chosen.__contains__)
        if everything:
            for key, partition in world.store.library.items():
                self._rewrite(partition, backup.library.get(key, 0), lambda name: not name.startswith(_PARKED))
        return [
            name
            for tally in tallies
            if tally in chosen
            for name in world.history.put_back(tally, backup.seen.get(tally, 1))
        ]

    def _with_pages(self) -> set[str]:
        library = self._world.store.library.items()
        return {
            json.loads(key)[-1] for key, item in library if any(version.id.startswith(_PAGE) for version in item.log)
        }

    def _rewrite(self, partition: Partition, position: int, chosen: Callable[[str], bool]) -> None:
        store = self._world.store
        for name in filter(chosen, partition.ids(len(partition.log))):
            was, there = partition.newest(name, position), partition.newest(name)
            if (was and was.document) != (there and there.document):
                store._append(partition, name, was.document if was else None)  # noqa: SLF001
        partition.reached = len(partition.log)


# Operators: they look into parked messages, remove the cause, and requeue them, or see that they took place.
#
# What is too old to be sent under the identity it has they send as a new message, once they see that it has not taken place,
# and that nobody could still take a copy of it for new. They do so once: of what lies in two places, such as a message that
# was parked and a copy of it that was put aside, the other is discarded.


Result = TypeVar("Result")
_SLOW: Final = 0.1
"""How often nobody comes to look for days."""


class Operators:
    """They look after parked messages."""

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, application: Application, plan: Plan) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._application = application
        self._plan = plan
        self._times: Counter[str] = Counter()
        self._made_new: dict[str, tuple[EntityRef, str]] = {}
        self._latest: dict[str, str] = {}

    def parked(self, message: Message) -> None:
        """A message was parked, or put aside. One that always fails stays there."""
        if not self._world.history.orders[message.name].refused:
            self._times[message.name] += 1
            self._later(lambda: self._look_into(message), after=2.0 ** min(self._times[message.name], 20))

    def sent(self, message: Message) -> None:
        """A message that was parked reached its queue once more."""
        self._latest[message.name] = key_of(message.envelope)

    def kept(self, park: Park) -> None:
        """An output was parked, since it is too old to be published."""
        data = park.message.envelope.value.get("data") or {}
        if "name" not in data:
            return  # A board asks again for what it lacks.
        self._world.weather.counted["too old to be published"] += 1
        self._world.history.keep(data["name"])
        self._later(lambda: self._look_into_output(park, data["name"]))

    async def _look_into(self, message: Message) -> None:
        history, name, key = self._world.history, message.name, key_of(message.envelope)
        place = next((item for item in self._places(message.entity) if self._lies_in(item, key)), None)
        if place is None:
            history.requeue(name)  # Somebody has sent it again since.
            return
        if self._is_superseded(name, place, key):
            await self._operate(lambda operator: operator.discard(place.key, key))
            self._later(lambda: self._look_into(message))
            return
        outcome = await self._sent_again(place, key, REQUEUED)
        if outcome == "sent":
            history.requeue(name)
        elif outcome != "too old":
            self._later(lambda: self._look_into(message))
        elif history.is_done(name):
            self._later(lambda: self._discarded(message, place, key))
        elif history.copies.exist(name) or not self._is_forgotten(message.envelope):
            self._later(lambda: self._look_into(message), after=self._plan.retention / 10)
        else:
            self._made_new[name] = place, key
            await self._renewed(place, key)
            self._later(lambda: self._look_into(message))

    def _is_superseded(self, name: str, place: EntityRef, key: str) -> bool:
        """Whether a message that lay in two places was made a new one in the other: a second new one would be applied, too."""
        made_new = self._made_new.get(name)
        return made_new not in (None, (place, key)) and key != self._latest.get(name)

    async def _look_into_output(self, park: Park, name: str) -> None:
        place, key = park.entity, park.message.message
        if not self._lies_in(place, key):
            return
        if name in self._world.history.sent:
            self._world.weather.counted["discarded"] += 1
            await self._operate(lambda operator: operator.discard(place.key, key))
            self._later(lambda: self._look_into_output(park, name))
        elif not self._is_forgotten(Envelope.read(park.message.envelope.text)):
            self._later(lambda: self._look_into_output(park, name), after=self._plan.retention / 10)
        else:
            if await self._sent_again(place, key, None) == "too old":
                await self._renewed(place, key)
            self._later(lambda: self._look_into_output(park, name))

    async def _sent_again(self, place: EntityRef, key: str, destination: str | None) -> str:
        requeued = await self._operate(lambda operator: operator.requeue(place.key, key, destination))
        if requeued is None:
            return "unknown"
        self._world.weather.counted[f"requeued: {requeued.outcome}"] += 1
        return requeued.outcome

    async def _renewed(self, place: EntityRef, key: str) -> None:
        renewed = await self._operate(lambda operator: operator.renew(place.key, key))
        if renewed is not None and renewed.outcome == "renewed":
            self._world.weather.counted["made a new message"] += 1

    async def _discarded(self, message: Message, place: EntityRef, key: str) -> None:
        self._world.weather.counted["discarded"] += 1
        await self._operate(lambda operator: operator.discard(place.key, key))
        if self._lies_in(place, key):
            self._later(lambda: self._discarded(message, place, key))
        else:
            self._world.history.discard(message.name)

    async def _operate(self, request: Callable[[Operator], Coroutine[Any, Any, Result]]) -> Result | None:
        process = self._hosts.any_process()
        return None if process is None else await process.operate(request)

    def _is_forgotten(self, envelope: Envelope) -> bool:
        now = START + timedelta(seconds=self._world.loop.time())
        judged = self._plan.lifetimes.oldest_judged(now) + timedelta(days=1)
        time = envelope.judged_by
        return time is not None and now - time > judged

    def _places(self, entity: EntityRef) -> tuple[EntityRef, EntityRef]:
        return entity, aside_place(self._application.type_of(entity))

    def _lies_in(self, place: EntityRef, key: str) -> bool:
        return parked_etag(self._world.store, place, key) is not None

    def _later(self, job: Callable[[], Coroutine[Any, Any, None]], after: float = 0.0) -> None:
        loop = self._world.loop
        slow = self._random.random() < _SLOW
        longest = HOUR if self._plan.restored else self._plan.retention
        pause = self._random.random() * longest if slow else 10 ** self._random.uniform(-1, 3)
        loop.call_later(after + pause, lambda: loop.create_task(job()))
