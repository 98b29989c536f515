"""The partition key in entity documents: containers that hold companions want one, and the business of the model has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Loaded, SaveEntity
from exactlyonce.stores.cosmos.partition import without_system
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

PLACE: Final = "key"
"""Property with the partition key: of an entity's document, and of its companions."""

Perform = Callable[[Any], Awaitable[Any]]


def placing(perform: Perform) -> Perform:
    """A request to the store, in which documents go out with their partition key and come back without it."""

    async def performed(effect: Any) -> Any:
        if isinstance(effect, SaveEntity | SaveBatch):
            effect = replace(effect, document=placed(effect.entity, effect.document))
        reply = await perform(effect)
        if isinstance(reply, Loaded) and reply.document is not None:
            return replace(reply, document=taken_from(reply.document.value))
        return reply

    return performed


def placed(entity: EntityRef, document: Json) -> Json:
    """An entity's document as its container wants it."""
    return Json.of({PLACE: entity.partition[0], **document.value})


def taken_from(stored: Mapping[str, Any]) -> Json:
    """A document without what its place and the service gave it."""
    return Json.of({name: value for name, value in without_system(dict(stored)).items() if name != PLACE})
