"""Whether reality holds what the model holds: entities, companions, pages, books, kept, published and parked messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exactlyonce.drivers.overdue import place_of
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import read_page
from exactlyonce.records.library import BOOKS, Book, number_of, read_book, read_parked, read_staged, transaction
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, book_id, from_library
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.reality import (
    ENTITIES,
    Documents,
    Place,
    Reality,
    companion_of,
    partition_text,
    taken_from,
)
from verification.world.companions_handler import ENTITY
from verification.world.outbox_handler import content_of
from verification.world.store import Library, Store, StoredPage, entity_ref, ledger_of


def books_in(documents: Mapping[Place, dict[str, Any]], ids: tuple[str, ...]) -> dict[str, Book]:
    places = {id: (partition_text(BOOKS), book_id(id)) for id in ids}
    return {id: read_book(from_library(documents[place])) for id, place in places.items() if place in documents}


def pays(books: Mapping[str, Book], tx: str) -> bool:
    """Whether books prove that the outputs of a transaction were sent."""
    book, number = number_of(tx)
    return book in books and books[book].pays(number)


def memory_differences(open: frozenset[str], store: Store, names: Correspondence) -> Iterator[str]:
    """Where processes hold other numbers open, or closed, than the model's."""
    for book in store.books:
        for number in book.now.open | book.now.paid:
            tx = transaction(book.id, number)
            if (names.transaction(tx) in open) is not (number in book.now.open):
                yield f"{tx}: its process holds it {'closed' if number in book.now.open else 'open'}"


def book_differences(documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where the books of reality prove another thing than the model's, of the transactions that something refers to."""
    for book in store.books:
        for number in book.numbers:
            tx = transaction(book.id, number)
            real = names.transaction(tx)
            there = books_in(documents[LIBRARY_CONTAINER], (number_of(real)[0],))
            if bool(there) is not bool(book.written):
                yield f"{tx}: its book is {'there' if there else 'not there'}"
            elif book.written and pays(there, real) is not (number in book.written[-1].paid):
                yield f"{tx}: the books say{' not' if number in book.written[-1].paid else ''} that it is paid"


def entity_document(documents: Documents, entity: int) -> Json | None:
    """The document of an entity, without what the service adds; None if it is absent."""
    id = entity_ref(entity).id
    found = documents[ENTITIES.container].get((partition_text(id), id))
    return None if found is None else taken_from(found)


def _of_kind(documents: Documents, entity: EntityRef, kind: str) -> Iterator[dict[str, Any]]:
    partition = partition_text(entity.key)
    found = (item for (key, _), item in documents[LIBRARY_CONTAINER].items() if key == partition)
    return (item for item in found if item["kind"] == kind)


def holding_differences(
    reality: Reality, documents: Documents, store: Store, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    """Where reality holds something else than the model.

    Args:
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


def companion_differences(reality: Reality, documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where reality holds something else than the model."""
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
