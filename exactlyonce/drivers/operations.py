"""Which method of a store answers which effect: one table for all drivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exactlyonce.effects import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    Effect,
    FindProcessed,
    HasRecords,
    LoadEntity,
    LoadParked,
    LoadStaged,
    Park,
    SaveEntity,
    Stage,
    WriteProcessed,
)
from exactlyonce.stores.port import AsyncStore, Store


def store_operations(store: Store | AsyncStore) -> dict[type[Effect[Any]], Callable[[Any], Any]]:
    """The store's methods by the effect they perform; those of an `AsyncStore` have to be awaited."""
    return {
        LoadEntity: store.load_entity,
        SaveEntity: store.save_entity,
        FindProcessed: store.find_processed,
        HasRecords: store.has_records,
        WriteProcessed: store.write_processed,
        Stage: store.stage,
        LoadStaged: store.load_staged,
        DeleteStaged: store.delete_staged,
        DeleteProcessed: store.delete_processed,
        Park: store.park,
        LoadParked: store.load_parked,
        DeleteParked: store.delete_parked,
    }
