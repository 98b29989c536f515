"""Whether reality holds what the model holds: entities, records, channels, staged and published outputs, parked messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.library import read_channel, read_parked, read_staged
from exactlyonce.stores.cosmos.containers import LIBRARY_CONTAINER
from exactlyonce.stores.cosmos.layout import from_library
from exactlyonce.values.frozen_json import Json
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Documents, Reality, partition_text
from verification.world.outbox_handler import content_of
from verification.world.store import Store, entity_ref


def entity_document(documents: Documents, entity: int) -> Json | None:
    """The document of an entity, without what the service adds; None if it is absent."""
    id = entity_ref(entity).id
    found = documents[ENTITIES.container].get((partition_text(id), id))
    return None if found is None else taken_from(found)


def library_documents(documents: Documents, entity: int, kind: str) -> dict[str, dict[str, Any]]:
    """What lies in an entity's partition of the library, by transaction if it is staged, else by message."""
    found = _of_kind(documents, entity, kind)
    return {one["tx" if kind == "staged" else "message"]: one for one in found}


def _of_kind(documents: Documents, entity: int, kind: str) -> Iterator[dict[str, Any]]:
    partition = partition_text(entity_ref(entity).key)
    found = (one for (key, _), one in documents[LIBRARY_CONTAINER].items() if key == partition)
    return (one for one in found if one["kind"] == kind)


def holding_differences(
    reality: Reality, documents: Documents, store: Store, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    """Where reality holds something else than the model.

    Args:
        reality: the stack.
        documents: what is stored.
        store: what the model holds.
        names: what stands for what.
        sweeps: whether the model leaves out staged outputs that nothing refers to.
    """
    for entity in range(len(store.entities)):
        truth = store.entities[entity].truth.document
        yield from names.document_differences(entity_document(documents, entity), truth, entity)
        library = store.libraries[entity].now
        recorded = library_documents(documents, entity, "processed").keys()
        expected = {id.removeprefix("processed:") for id in library if id.startswith("processed:")}
        if recorded != expected:
            yield f"entity {entity}: records of {sorted(recorded)} in place of {sorted(expected)}"
        yield from _channel_differences(documents, entity, library, names)
        yield from _staged_differences(documents, entity, library, names, sweeps=sweeps)
    yield from outside_differences(reality, documents, store)


def outside_differences(reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
    """Where other messages lie parked, or other outputs arrived, than in the model."""
    parked: set[str] = set()
    for entity in range(len(store.entities)):
        for message, found in library_documents(documents, entity, "parked").items():
            read_parked(from_library(found))
            parked.add(message)
    if parked != store.parked:
        yield f"parked: {sorted(parked)} in place of {sorted(store.parked)}"
    published = {content_of(output)[0] for output in reality.published}
    if published != store.published:
        yield f"published: outputs of {sorted(published)} in place of {sorted(store.published)}"


def _channel_differences(
    documents: Documents, entity: int, library: dict[str, Any], names: Correspondence
) -> Iterator[str]:
    found = {one.name: one for one in map(read_channel, map(from_library, _of_kind(documents, entity, "channel")))}
    written = [one for id, one in library.items() if id.startswith("channel:")]
    real = (replace(one, turn=names.transaction(one.turn)) if one.turn else one for one in written)
    expected = {one.name: one for one in real}
    if found != expected:
        yield f"entity {entity}: documents of channels {sorted(found)} in place of {sorted(expected)}"


def _staged_differences(
    documents: Documents, entity: int, library: dict[str, Any], names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    found = library_documents(documents, entity, "staged")
    expected = {id.removeprefix("staged:"): content for id, content in library.items() if id.startswith("staged:")}
    for tx, content in expected.items():
        real = found.pop(names.transaction(tx), None)
        if real is None:
            yield f"entity {entity}: the staged outputs {tx} are gone"
        else:
            yield from names.differences(read_staged(from_library(real)), content, entity)
    document = entity_document(documents, entity)
    ledger = Ledger() if document is None else read_entity(entity_ref(entity), document).ledger or Ledger()
    named = {entry.tx for entry in ledger.entries}
    for tx in found:
        if not sweeps or tx in named:
            yield f"entity {entity}: there are staged outputs {tx} that the model does not know"
