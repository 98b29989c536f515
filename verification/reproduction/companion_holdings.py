"""Whether reality holds what the model holds, where records are companions."""

from __future__ import annotations

from collections.abc import Iterator

from exactlyonce.records.companions import KIND
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.library_holdings import entity_document, outside_differences
from verification.reproduction.moments import companion_of
from verification.reproduction.reality import ENTITIES, Documents, Reality, partition_text
from verification.world.companions_handler import ENTITY
from verification.world.store import Store


def companion_differences(reality: Reality, documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where reality holds something else than the model.

    Args:
        reality: the stack.
        documents: what is stored.
        store: what the model holds.
        names: what stands for what.
    """
    partition = store.partition
    yield from names.document_differences(entity_document(documents, 0), partition.truth.document, 0)
    place = partition_text(ENTITY.id)
    found = {id: item for (key, id), item in documents[ENTITIES.container].items() if key == place and KIND in item}
    for id, (companion, _) in partition.now.items():
        real = found.pop(id, None)
        if real is None:
            yield f"companions: {id} is gone"
        else:
            yield from names.differences(companion_of(real), companion, 0)
    yield from (f"companions: there is {id}, which the model does not know" for id in found)
    yield from outside_differences(reality, documents, store)
