"""An adapter for twins that save without a condition, which the shipped one cannot be asked to do."""

from __future__ import annotations

from devtools.modelcheck.writes import ANY
from exactlyonce.effects import UNKNOWN, Conflict, Saved, SaveEntity
from exactlyonce.stores.cosmos import CosmosStore
from exactlyonce.stores.cosmos_partition import Applied
from exactlyonce.stores.cosmos_replies import Operation
from exactlyonce.stores.port import Busy, Unknown


class CarelessStore(CosmosStore):
    """Upserts where the ETag is `*`. The shipped adapter would replace, and fail on an absent document."""

    async def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        if effect.etag != ANY:
            return await super().save_entity(effect)
        reply = await self._entity(effect.entity).write_all([effect.document.value], Operation.PARK)
        if not isinstance(reply, Applied) or reply.etag is None:
            return UNKNOWN
        return Saved(reply.etag, reply.token)
