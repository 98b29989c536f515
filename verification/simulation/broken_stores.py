"""Stores that break their promises. The judge has to convict each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.companions import ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import FindPages, FoundPages
from exactlyonce.records.companions import ColocatedRecord, id_of
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import EntityRef


class CarelessBatches(MemoryStore):
    """Saves a batch whatever its ETags say, and writes over companions that exist."""

    def save_batch(self, effect: SaveBatch) -> Any:
        ids = {id_of(effect.entity, item): item for item in effect.create}
        partition = self._entity(effect.entity)
        etags = {id: found.etag for id in ids if (found := partition.newest(id))}
        return super().save_batch(
            replace(
                effect,
                etag=self._etag(effect.entity),
                create=tuple(item for id, item in ids.items() if id not in etags),
                replace=(*effect.replace, *((ids[id], etag) for id, etag in etags.items())),
            )
        )

    def _etag(self, entity: EntityRef) -> str | None:
        found = self._entity(entity).newest(entity.id)
        return found.etag if found else None


class Careless(CarelessBatches):
    """Saves whatever the ETag says."""

    def save_entity(self, effect: SaveEntity) -> Any:
        return super().save_entity(replace(effect, etag=self._etag(effect.entity)))


class Forgetful(MemoryStore):
    """Finds pages without their marks."""

    def find_pages(self, effect: FindPages) -> Any:
        reply = super().find_pages(effect)
        if not isinstance(reply, FoundPages):
            return reply
        return FoundPages(tuple(replace(page, marks="") for page in reply.pages))


class Torn(MemoryStore):
    """Leaves out the companions of every seventh batch."""

    batches = 0

    def save_batch(self, effect: SaveBatch) -> Any:
        self.batches += 1
        return super().save_batch(replace(effect, create=()) if self.batches % 7 == 0 else effect)


class Hasty(MemoryStore):
    """Leaves out the owed outputs of a batch, so no later process publishes them."""

    def save_batch(self, effect: SaveBatch) -> Any:
        create = tuple(
            replace(item, owed=None) if isinstance(item, ColocatedRecord) else item for item in effect.create
        )
        return super().save_batch(replace(effect, create=create))


class Hoarding(MemoryStore):
    """Never deletes owed outputs."""

    def replace_companions(self, effect: ReplaceCompanions) -> None:
        pass
