"""Requests that competitors make and the library does not: their effects, and who performs them on Cosmos DB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from exactlyonce.effects.effect import UNKNOWN, Effect, NoAnswer, Unknown, performs
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.records.ledger import Page
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH, Applied, library_id, staged_id, to_library
from exactlyonce.stores.cosmos.replies import Operation
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class Promote(Effect[Written | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """In one batch: write the record of a message, and delete what was staged for its transaction, which has to be there.

    Attributes:
        entity: that the message was for.
        record: a page with its mark.
        tx: its transaction.
    """

    entity: EntityRef
    record: Page
    tx: str


@dataclass(frozen=True, slots=True)
class Overwrite(Effect[Literal[NoAnswer.UNKNOWN] | None]):
    """Upsert the entity document, whatever is there. None if it is written."""

    entity: EntityRef
    document: Json


@dataclass(frozen=True, slots=True)
class Claim(Effect[Conflict | Literal[NoAnswer.UNKNOWN] | None]):
    """Create the document that says that a message was processed. None if it is created; a conflict says that it was there."""

    entity: EntityRef
    message: str


class CompetingStore(CosmosStore):
    """The library's store, and the same for the requests above."""

    @performs(Promote)
    async def promote(self, effect: Promote) -> Written | Conflict | Unknown:
        writes = [("upsert", (to_library(effect.entity, effect.record),)), ("delete", (staged_id(effect.tx),))]
        reply = await self._library(effect.entity).write_together(writes, Operation.AMEND)
        if not isinstance(reply, Applied):
            return reply
        return UNKNOWN if reply.token is None else Written(reply.token)

    @performs(Overwrite)
    async def overwrite(self, effect: Overwrite) -> Unknown | None:
        reply = await self._entity(effect.entity).write_all(
            (effect.document.value,), Operation.BOOK
        )  # An upsert, as that of a book.
        return None if isinstance(reply, Applied) else UNKNOWN

    @performs(Claim)
    async def claim(self, effect: Claim) -> Conflict | Unknown | None:
        document = {"id": library_id("claim", effect.message), LIBRARY_PATH[1:]: effect.entity.key}
        reply = await self._library(effect.entity).create(document)
        return None if isinstance(reply, Applied) else reply
