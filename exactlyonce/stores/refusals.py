"""Refusals of documents, common to all stores."""

from __future__ import annotations

from typing import Final

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.errors import DamagedDocument, UniqueKeyTaken
from exactlyonce.records.companions import KIND
from exactlyonce.values.envelope import EntityRef

MOST_TOGETHER: Final = 100
"""Most documents in a transactional batch of Cosmos DB."""


def not_an_entity(entity: EntityRef) -> DamagedDocument:
    """The error for a companion of another entity, which has the property `KIND`, under the id of an entity."""
    return DamagedDocument(
        f"The id of entity {entity} belongs to one of the library's documents, as its property {KIND!r} says. Nothing was "
        "changed. Derive another id in key=."
    )


def require_one_batch(effect: SaveBatch) -> None:
    """Refuse a save of more documents than a batch takes: two batches would not be atomic.

    Raises:
        ValueError: the strategy asks for more documents than a batch takes.
    """
    documents = 1 + len(effect.create) + len(effect.replace)
    if documents > MOST_TOGETHER:
        raise ValueError(
            f"Entity {effect.entity}: {documents} documents are to be saved together, and a transactional batch takes "
            f"{MOST_TOGETHER}. Commit fewer messages at once."
        )


def unique_key_taken(entity: EntityRef) -> UniqueKeyTaken:
    """The error for a document that would share a unique key of the container with another document."""
    return UniqueKeyTaken(
        f"Entity {entity}: the store refuses the document, since another document of the logical partition has the same values "
        "for a unique key of the container. Nothing was changed. Let the handler choose different values, or change the other "
        "document. A missing value counts as null: a partition takes a single document without it, tombstones included."
    )


def require_same(entity: EntityRef, id: str, stored: object, wanted: str) -> None:
    """Refuse a document whose body differs from its id: an id may be a hash, and the body has the full value.

    Raises:
        DamagedDocument: the body differs.
    """
    if stored != wanted:
        raise DamagedDocument(
            f"The library's document {id!r} of entity {entity} does not match its id. Nothing was changed. Restore the "
            "document from a backup; or delete it, if it was created by hand."
        )
