"""Worlds of one partition in which time passes: messages are judged by their age, and companions go with it."""

from __future__ import annotations

from exactlyonce.effects.companions import FoundCompanions
from exactlyonce.records.companions import ColocatedRecord
from verification.checker.aged import AgedExplorer
from verification.checker.beside.cleaning import aged
from verification.checker.beside.explorer import BesideExplorer
from verification.checker.beside.judging import left_undone
from verification.checker.beside.partition import partition_of
from verification.checker.beside.scenarios import BesideScenario
from verification.checker.reductions import State
from verification.checker.store import Store
from verification.checker.workers import Start, Worker

KNOWN = "a duplicate was too old to be handled again"


class AgedBesideExplorer(AgedExplorer, BesideExplorer):
    """Explores a scenario of one partition with a clock."""

    def __init__(self, scenario: BesideScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, merge=merge)

    def is_good_end(self, state: State) -> bool:
        """As elsewhere; but a message that nobody may judge any more may be unprocessed, or still be owed for."""
        return BesideExplorer.is_good_end(self, state)

    def _left_undone(self, store: Store) -> str | None:
        return left_undone(self._scenario, store, self._given_up(store))

    def _given_up(self, store: Store) -> frozenset[str]:
        """Messages that are too old to be judged and were never committed, or for which others are to publish."""
        ticks = range(store.now + 1)
        old = (key for number, key in enumerate(self.keys) if any(self._is_old(number, tick) for tick in ticks))
        committed = {key for key, _ in store.committed}
        return frozenset(key for key in old if key not in committed or self._is_left(key, store))

    def _is_left(self, key: str, store: Store) -> bool:
        """Whether others publish what a message sent: the sweeper, or the operator who learns of its duplicate."""
        if self._scenario.protocol == "stream":
            return True
        records = (one for one, _ in partition_of(store).now.values())
        return any(isinstance(one, ColocatedRecord) and one.message == key and one.owed is not None for one in records)

    def _wrong_refusal(self, worker: Worker, key: str, error: Exception, store: Store) -> str | None:
        """As elsewhere; notes whether the message was known."""
        replies = () if worker.situation is None else worker.situation.replies
        looks = (one for reply in replies if isinstance(reply, tuple) for one in reply)
        found = (one for look in looks if isinstance(look, FoundCompanions) for one, _ in look.companions)
        if any(one.message == key for one in found):
            self.witnessed.add(KNOWN)
        return super()._wrong_refusal(worker, key, error, store)

    def _cleaning(self, entity: int, store: Store, *, heard: bool) -> Start | None:
        listed = aged(partition_of(store), self._cleaned(store, heard=heard), store.now)
        return Start("clean", entity, candidates=listed, heard=heard) if listed else None
