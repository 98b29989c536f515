"""What a write does to the partition. It is judged on the newest version: all of a batch applies, or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import Park, Written
from exactlyonce.records.companions import Companion, NumberedMessage, id_of
from exactlyonce.records.ledger import Ledger
from verification.checker.beside.business import ENTITY, by_key
from verification.checker.beside.cleaning import FORGOTTEN
from verification.checker.beside.judging import judged_commit
from verification.checker.beside.partition import Partition, Partitions, PartitionVersion, etag_at, partition_of
from verification.checker.beside.scenarios import BesideScenario
from verification.checker.mentions import Write, described
from verification.checker.store import Store, token_at
from verification.checker.writes import ANY, OTHER, Answer

HELD: Final = "a held message was released by a later arrival"
RESUMED: Final = "a sequence that had stopped went on"

Batch = SaveBatch | SaveEntity


class BesideWrites:
    """Applies writes for one scenario.

    Args:
        stores: where worlds are interned.
        scenario: that is explored.
    """

    def __init__(self, stores: Partitions, scenario: BesideScenario) -> None:
        self._stores = stores
        self._scenario = scenario
        self._keeps_versions = bool(scenario.budget.stale)

    def applied(self, write: Write, store: Store) -> Answer:
        """The answer if the write takes effect now, or fails on its condition."""
        match write:
            case SaveBatch() | SaveEntity():
                return self._save(write, store)
            case ReplaceCompanions():
                return self._replace(write, store)
            case DeleteCompanions():
                return self._delete(write, store)
            case Park():
                return self._park(write, store)
            case _:
                raise TypeError(write)

    def _save(self, write: Batch, store: Store) -> Answer:
        partition = partition_of(store)
        if not _holds(write, partition):
            said = f"{described(write)}: conflict"
            return Answer(Conflict(token_at(partition.newest)), store, said=said, witnessed=OTHER)
        etag, etag_beside = str(partition.newest + 1), self._etag_beside(store)
        companions = dict(partition.now)
        created, replaced = _companions(write)
        written = (*created, *(one for one, _ in replaced))
        companions.update({id_of(ENTITY, one): (one, etag_beside) for one in written})
        version = PartitionVersion(write.document, etag, tuple((id, *one) for id, one in companions.items()))
        after = self._after(partition, version)
        committed, violation = judged_commit(self._scenario, store, partition, after, write)
        reply = Saved(etag, token_at(after.newest))
        seen = _seen(write, partition, after)
        stored = self._stores.with_partition(store, after, committed)
        return Answer(reply, stored, violation=violation, said=described(write), witnessed=seen)

    def _replace(self, write: ReplaceCompanions, store: Store) -> Answer:
        """Write over companions. What changes nothing keeps its ETag: whoever is conditional on it would write the same."""
        partition = partition_of(store)
        etag = self._etag_beside(store)
        companions = dict(partition.now)
        for one, wanted in write.companions:
            id = id_of(ENTITY, one)
            current = companions.get(id)
            if current is not None and wanted in (None, current[1]) and current[0] != one:
                companions[id] = (one, etag)
        return self._beside(write, store, companions)

    def _delete(self, write: DeleteCompanions, store: Store) -> Answer:
        companions = dict(partition_of(store).now)
        for id, etag in write.companions:
            if id in companions and etag in (ANY, companions[id][1]):
                del companions[id]
        answer = self._beside(write, store, companions)
        return answer if answer.store is store else replace(answer, witnessed=FORGOTTEN)

    def _beside(self, write: Write, store: Store, companions: dict[str, tuple[Companion, str]]) -> Answer:
        """The answer to a write that leaves the entity as it is."""
        partition = partition_of(store)
        if companions == partition.now:
            return Answer(None, store, said=described(write))
        truth = partition.truth
        beside = tuple((id, *one) for id, one in companions.items())
        after = self._after(partition, PartitionVersion(truth.document, truth.etag, beside))
        return Answer(None, self._stores.with_partition(store, after, store.committed), said=described(write))

    def _park(self, write: Park, store: Store) -> Answer:
        key = write.message.message
        violation = None
        single = by_key(self._scenario.messages)[key].copies == 1
        if single and any(key == committed for committed, _ in store.committed):
            violation = f"parked_is_unprocessed: {key} is parked as never processed, but it was committed"
        parked = self._stores.changed(store, parked=store.parked | {key})
        reply = Written(token_at(0))
        return Answer(reply, parked, violation=violation, said=described(write), witnessed="a message was parked")

    def _etag_beside(self, store: Store) -> str:
        """The ETag of companions that are written now."""
        return etag_at(partition_of(store).newest + 1, None if self._scenario.ages is None else store.now)

    def _after(self, partition: Partition, version: PartitionVersion) -> Partition:
        """The partition with one more version."""
        if self._keeps_versions:
            return self._stores.entity(partition.first, (*partition.versions, version))
        return self._stores.entity(partition.newest + 1, (version,))


def _holds(write: Batch, partition: Partition) -> bool:
    """Whether the conditions of a batch hold."""
    if write.etag not in (ANY, partition.truth.etag):
        return False
    created, replaced = _companions(write)
    ids = [id_of(ENTITY, one) for one in created]
    if len(set(ids)) < len(ids) or any(id in partition.now for id in ids):
        return False
    etags = {id: etag for id, (_, etag) in partition.now.items()}
    return all(etag in (ANY, etags.get(id_of(ENTITY, one))) for one, etag in replaced)


def _companions(write: Batch) -> tuple[tuple[Companion, ...], tuple[tuple[Companion, str], ...]]:
    """What a batch creates, and what it replaces."""
    return (write.create, write.replace) if isinstance(write, SaveBatch) else ((), ())


def _seen(write: Batch, before: Partition, after: Partition) -> str | None:
    """What a batch shows that a scenario may want to have seen."""
    failing = {one.source for one in _ledger_of(before).receptions if one.failing}
    if any(one.source in failing and one.failing is None for one in _ledger_of(after).receptions):
        return RESUMED
    _, replaced = _companions(write)
    return HELD if any(isinstance(one, NumberedMessage) and one.message for one, _ in replaced) else None


def _ledger_of(partition: Partition) -> Ledger:
    return partition.view.ledger or Ledger()
