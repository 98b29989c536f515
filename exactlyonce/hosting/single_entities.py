"""The part of an application that looks after single entities."""

from __future__ import annotations

from typing import Any

from exactlyonce.handling.entities import Entity
from exactlyonce.handling.keys import EntityKey
from exactlyonce.hosting.wiring import Parts


class SingleEntities:
    """An application whose read models may have gaps, and whose streams may send again."""

    _parts: Parts

    async def tend(self, entity: Entity[Any], key: str | EntityKey) -> None:
        """Handle the gaps of a read model, and release the messages that can be released. For timers and operators.

        Raises:
            ConfigurationError: the entity is not a resequenced read model.
            TryAgainLater: the store or a queue did not answer.
            HandlerError: the handler of a held message still raises; the message stays held.
        """
        await self._parts.startup.ready()
        finished = await self._parts.maintenance.tend(entity, entity.ref(key))
        for _, error in finished.stopped:
            raise error

    async def replay(self, entity: Entity[Any], key: str | EntityKey, first: int, last: int) -> int:
        """Send the outputs of a stream's versions again, with their ids and numbers; return how many messages were sent.

        Raises:
            ConfigurationError: the entity keeps no version stream.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give the outputs that it gave before.
        """
        await self._parts.startup.ready()
        return await self._parts.maintenance.replay(entity, entity.ref(key), (first, last))
