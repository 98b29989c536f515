"""Whether reality holds what the model holds: entities, pages, books, kept and published messages, parked messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exactlyonce.drivers.overdue import place_of
from exactlyonce.records.ledger import read_page
from exactlyonce.records.library import read_parked, read_staged
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, from_library
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from verification.reproduction.book_holdings import book_differences
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Documents, Reality, partition_text
from verification.world.outbox_handler import content_of
from verification.world.store import Library, Store, StoredPage, entity_ref, ledger_of


def entity_document(documents: Documents, entity: int) -> Json | None:
    """The document of an entity, without what the service adds; None if it is absent."""
    id = entity_ref(entity).id
    found = documents[ENTITIES.container].get((partition_text(id), id))
    return None if found is None else taken_from(found)


def _of_kind(documents: Documents, entity: EntityRef, kind: str) -> Iterator[dict[str, Any]]:
    """What lies in an entity's partition of the library."""
    partition = partition_text(entity.key)
    found = (item for (key, _), item in documents[LIBRARY_CONTAINER].items() if key == partition)
    return (item for item in found if item["kind"] == kind)


def holding_differences(
    reality: Reality, documents: Documents, store: Store, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    """Where reality holds something else than the model.

    Args:
        reality: the stack.
        documents: what is stored.
        store: what the model holds.
        names: what stands for what.
        sweeps: whether the model leaves out staged messages that nothing refers to.
    """
    for entity, library in enumerate(store.libraries):
        truth = store.entities[entity].truth.document
        yield from names.document_differences(entity_document(documents, entity), truth, entity)
        yield from _page_differences(reality, documents, entity, library)
        yield from _staged_differences(documents, entity, library, names, sweeps=sweeps)
    yield from book_differences(documents, store, names)
    yield from outside_differences(reality, documents, store)


def outside_differences(reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
    """Where other messages lie parked, or other outputs arrived, than in the model."""
    parked, overdue = set[str](), set[str]()
    for entity in range(len(store.entities)):
        ref = entity_ref(entity)
        parked |= {read_parked(from_library(item)).message for item in _of_kind(documents, ref, "parked")}
        outputs = (read_parked(from_library(item)).envelope for item in _of_kind(documents, place_of(ref), "parked"))
        overdue |= {Envelope.read(item.text).data.value["message"] for item in outputs}
    if parked != store.parked:
        yield f"parked: {sorted(parked)} in place of {sorted(store.parked)}"
    if overdue != store.overdue:
        yield f"parked as too old to be sent: outputs of {sorted(overdue)} in place of {sorted(store.overdue)}"
    published = {content_of(output)[0] for output in reality.published}
    if published != store.published:
        yield f"published: outputs of {sorted(published)} in place of {sorted(store.published)}"


def _page_differences(reality: Reality, documents: Documents, entity: int, library: Library) -> Iterator[str]:
    stored = [item for item in _of_kind(documents, entity_ref(entity), "page") if not reality.is_over(item)]
    found = {read_page(from_library(item)): item["_ts"] + item["ttl"] for item in stored}
    pages = [item for item in library.now.values() if isinstance(item, StoredPage)]
    expected = {item.page: item.expires for item in pages if not reality.is_past(item.expires)}
    if found.keys() != expected.keys():
        yield f"entity {entity}: the pages {found.keys() - expected.keys()} in place of {expected.keys() - found.keys()}"
    for page, expires in expected.items():
        if expires is not None and page in found and not reality.is_at(expires, found[page]):
            yield f"entity {entity}: page {page.number} goes at {found[page]}"


def _staged_differences(
    documents: Documents, entity: int, library: Library, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    found = {item["tx"]: item for item in _of_kind(documents, entity_ref(entity), "staged")}
    expected = {id.removeprefix("staged:"): content for id, content in library.now.items() if id.startswith("staged:")}
    for tx, content in expected.items():
        real = found.pop(names.transaction(tx), None)
        if real is None:
            yield f"entity {entity}: what {tx} keeps is gone"
        else:
            yield from names.differences(read_staged(from_library(real)), content, entity)
    named = ledger_of(entity_document(documents, entity)).transactions
    for tx in found:
        if not sweeps or tx in named:
            yield f"entity {entity}: there is what {tx} keeps, which the model does not know"
