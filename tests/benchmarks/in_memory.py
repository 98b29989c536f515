"""What competitors ask of a store besides, on the store in memory, with every fault of the fault model."""

from __future__ import annotations

from typing import Any

from benchmarks.competitors.requests import Claim, Overwrite, Promote
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.records.library import library_document
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.frozen_json import Json


def competing_operations(store: MemoryStore) -> dict[type, Any]:
    """Who performs these requests."""

    def promote(effect: Promote) -> Any:
        partition, staged = store._library(effect.entity), f"staged:{effect.tx}"

        def batch() -> Written | Conflict:
            if not partition.newest(staged):
                return Conflict(partition.token)
            record = Json.of(library_document(effect.record))
            store._append(partition, f"page:{effect.record.number}", record)
            partition.within.add(len(partition.log))
            store._append(partition, staged, None)
            return Written(partition.token)

        return store._write("promote", batch)

    def overwrite(effect: Overwrite) -> Any:
        partition = store._entity(effect.entity)

        def upsert() -> None:
            store._append(partition, effect.entity.id, effect.document)

        return store._write("overwrite", upsert)

    def claim(effect: Claim) -> Any:
        partition, id = store._library(effect.entity), f"claim:{effect.message}"

        def create() -> Conflict | None:
            if partition.newest(id):
                return Conflict(partition.token)
            store._append(partition, id, Json("{}"))
            return None

        return store._write("claim", create)

    return {Promote: promote, Overwrite: overwrite, Claim: claim}
