"""What every store refuses, whichever it is."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from exactlyonce.beside import SaveTogether
from exactlyonce.companions import KIND
from exactlyonce.errors import DamagedDocument
from exactlyonce.identity import EntityRef

MOST_TOGETHER: Final = 100
"""Most documents in one transactional batch of Cosmos DB."""


def require_entity_document(entity: EntityRef, properties: Container[str]) -> None:
    """Refuse a document that was found under the id of an entity, but is a companion of another one.

    Raises:
        DamagedDocument: it has the property that tells a companion.
    """
    if KIND in properties:
        raise DamagedDocument(
            f"The id of entity {entity} belongs to one of the library's documents, as its property {KIND!r} says. Nothing was "
            "changed. Derive another id in key=."
        )


def require_one_batch(effect: SaveTogether) -> None:
    """Refuse what would have to be split: in two batches it would not be all or nothing.

    Raises:
        ValueError: the strategy asks for more documents than a batch takes.
    """
    documents = 1 + len(effect.create) + len(effect.replace)
    if documents > MOST_TOGETHER:
        raise ValueError(
            f"Entity {effect.entity}: {documents} documents are to be saved together, and a transactional batch takes "
            f"{MOST_TOGETHER}. Commit fewer messages at once."
        )
