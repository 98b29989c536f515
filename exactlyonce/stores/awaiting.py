"""A blocking store or transport for the async driver."""

from __future__ import annotations

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundRecords,
    FoundStaged,
    HasRecords,
    LoadParked,
    LoadProcessed,
    LoadStaged,
    Park,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.stores.port import Busy, Store, Unknown


class Awaited:
    """The same store, awaited. Only for stores that do not wait for anything, such as the one in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        return self._store.load_entity(effect)

    async def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        return self._store.save_entity(effect)

    async def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy:
        return self._store.find_processed(effect)

    async def load_processed(self, effect: LoadProcessed) -> FoundRecords | NoAnswer | Busy:
        return self._store.load_processed(effect)

    async def has_records(self, effect: HasRecords) -> bool | NoAnswer | Busy:
        return self._store.has_records(effect)

    async def write_processed(self, effect: WriteProcessed) -> Written | Unknown | Busy:
        return self._store.write_processed(effect)

    async def stage(self, effect: Stage) -> Written | Conflict | Unknown | Busy:
        return self._store.stage(effect)

    async def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy:
        return self._store.load_staged(effect)

    async def delete_staged(self, effect: DeleteStaged) -> None:
        self._store.delete_staged(effect)

    async def delete_processed(self, effect: DeleteProcessed) -> None:
        self._store.delete_processed(effect)

    async def park(self, effect: Park) -> Written | Unknown | Busy:
        return self._store.park(effect)

    async def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy:
        return self._store.load_parked(effect)

    async def delete_parked(self, effect: DeleteParked) -> None:
        self._store.delete_parked(effect)

    async def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown | Busy:
        return self._store.save_batch(effect)

    async def load_companions(self, effect: LoadCompanions) -> FoundCompanions | NoAnswer | Busy:
        return self._store.load_companions(effect)

    async def find_entries(self, effect: FindEntries) -> FoundCompanions | NoAnswer | Busy:
        return self._store.find_entries(effect)

    async def find_numbered(self, effect: FindNumbered) -> FoundNumbered | NoAnswer | Busy:
        return self._store.find_numbered(effect)

    async def find_owing(self, effect: FindOwing) -> FoundCompanions | NoAnswer | Busy:
        return self._store.find_owing(effect)

    async def has_companions(self, effect: HasCompanions) -> bool | NoAnswer | Busy:
        return self._store.has_companions(effect)

    async def replace_companions(self, effect: ReplaceCompanions) -> None:
        self._store.replace_companions(effect)

    async def delete_companions(self, effect: DeleteCompanions) -> None:
        self._store.delete_companions(effect)
