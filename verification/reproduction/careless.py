"""Adapters for twins that write without a condition, which the shipped one cannot be asked to do."""

from __future__ import annotations

from typing import Any

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Busy, Unknown
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import WritePage, Written
from exactlyonce.records.companions import companion_document
from exactlyonce.stores.cosmos.partition import Applied, BatchWrite, creating, replacing, to_library
from exactlyonce.stores.cosmos.replies import Operation
from exactlyonce.stores.cosmos.store import CosmosStore
from verification.reproduction.reality import PLACE
from verification.world.writes import ANY


class CarelessStore(CosmosStore):
    """Upserts where the ETag is `*`. The shipped adapter would replace, and fail on an absent document."""

    async def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        if effect.etag != ANY:
            return await super().save_entity(effect)
        reply = await self._entity(effect.entity).write_all([effect.document.value], Operation.PARK)
        if not isinstance(reply, Applied) or reply.etag is None:
            return UNKNOWN
        return Saved(reply.etag, reply.token)

    async def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown | Busy:
        if ANY not in (effect.etag, *(etag for _, etag in effect.replace)):
            return await super().save_batch(effect)
        place = {PLACE: effect.entity.partition[0]}
        companions = (*((item, None) for item in effect.create), *effect.replace)
        writes = [_writing(effect.document.value, effect.etag)]
        writes += (_writing(companion_document(effect.entity, item) | place, etag) for item, etag in companions)
        reply = await self._entity(effect.entity).write_together(writes, Operation.COMMIT)
        if not isinstance(reply, Applied):
            return reply
        return UNKNOWN if reply.etag is None else Saved(reply.etag, reply.token)


class OverwritingStore(CarelessStore):
    """Writes pages over what there is of them."""

    async def write_page(self, effect: WritePage) -> Any:
        document = to_library(effect.entity, effect.page, effect.seconds)
        reply = await self._library(effect.entity).write_all([document], Operation.PAGE)
        return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN


def _writing(document: dict[str, Any], etag: str | None) -> BatchWrite:
    if etag == ANY:
        return "upsert", (document,)
    return creating(document) if etag is None else replacing(document, etag)
