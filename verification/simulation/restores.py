"""Backups of the store, and documents that are put back: what a restore of an account does, or a script that repairs one.

Documents get new ETags, and session tokens stay valid: the kindest restore there is. Processes end before, and no write lands
that was under way. All replicas show what was put back, as in the model: an earlier view would prove what never happened. What
is parked stays, since operators know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from exactlyonce.stores.memory.store import Partition
from verification.simulation.host import Hosts
from verification.simulation.plans import Restored
from verification.simulation.wire import Surrounding

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
    """Backups, and what is put back of them.

    Args:
        world: what all processes share.
        random: the source of chance.
        hosts: whose processes end.
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

    def _rewrite(self, partition: Partition, position: int, chosen: Callable[[str], bool]) -> None:
        """Write what documents of a partition were at a position."""
        store = self._world.store
        for name in filter(chosen, partition.ids(len(partition.log))):
            was, there = partition.newest(name, position), partition.newest(name)
            if (was and was.document) != (there and there.document):
                store._append(partition, name, was.document if was else None)  # noqa: SLF001
        partition.reached = len(partition.log)
