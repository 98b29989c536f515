"""Which method of a store, or of a place for blobs, answers which effect: one table each for all drivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from exactlyonce.blobs.port import AsyncBlobs, Blobs
from exactlyonce.effects.blobs import DeleteBlobs, WriteOnce
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    HasRecords,
    LoadParked,
    LoadProcessed,
    LoadStaged,
    Park,
    Stage,
    WriteProcessed,
)
from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.port import AsyncStore, Store


def store_operations(store: Store | AsyncStore) -> dict[type[Effect[Any]], Callable[[Any], Any]]:
    """The store's methods by the effect they perform; those of an `AsyncStore` have to be awaited."""
    return {
        LoadEntity: store.load_entity,
        SaveEntity: store.save_entity,
        FindProcessed: store.find_processed,
        LoadProcessed: store.load_processed,
        HasRecords: store.has_records,
        WriteProcessed: store.write_processed,
        Stage: store.stage,
        LoadStaged: store.load_staged,
        DeleteStaged: store.delete_staged,
        DeleteProcessed: store.delete_processed,
        Park: store.park,
        LoadParked: store.load_parked,
        DeleteParked: store.delete_parked,
        SaveBatch: store.save_batch,
        LoadCompanions: store.load_companions,
        FindEntries: store.find_entries,
        FindNumbered: store.find_numbered,
        FindOwing: store.find_owing,
        HasCompanions: store.has_companions,
        ReplaceCompanions: store.replace_companions,
        DeleteCompanions: store.delete_companions,
    }


def blob_operations(blobs: Blobs | AsyncBlobs | None) -> dict[type[Effect[Any]], Callable[[Any], Any]]:
    """The same for blobs. Without any, handlers have none to write; whoever asks all the same is told."""
    if blobs is None:
        return {WriteOnce: _no_blobs, DeleteBlobs: _no_blobs}
    return {WriteOnce: blobs.write_once, DeleteBlobs: blobs.delete_blobs}


def _no_blobs(_: Effect[Any]) -> NoReturn:
    raise ConfigurationError("There is no container for blobs. Name one in the setting EXACTLYONCE__blobContainer.")
