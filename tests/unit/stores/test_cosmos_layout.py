"""Ids, partitions and batches of documents in Cosmos DB."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.errors import InvalidMessage
from exactlyonce.records.ledger import read_page
from exactlyonce.records.library import (
    ParkedMessage,
    StagedOutputs,
    read_book,
    read_parked,
    read_staged,
)
from exactlyonce.records.outbox import Output
from exactlyonce.stores.cosmos.partition import (
    MAX_BATCH_BYTES,
    MAX_BATCH_OPERATIONS,
    batches,
    book_id,
    from_library,
    library_id,
    page_id,
    parked_id,
    require_storable,
    staged_id,
    to_library,
    without_system,
)
from exactlyonce.testing.contracts.samples import a_book, a_page
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 11, 21, 10, 0, 2, tzinfo=timezone.utc)
ENTITY = EntityRef("game", ("EU", 7), "game-7")


@pytest.mark.parametrize("value", ["a", "5f3c-00", "A.b_c-9", "x" * 200])
def test_an_id_holds_a_plain_value_as_it_is(value: str) -> None:
    assert library_id("staged", value) == f"staged:{value}"


@pytest.mark.parametrize("value", ["", "web/m-42", "ä", "a b", "a:b", "~", "x" * 201, "a\n"])
def test_an_id_holds_the_hash_of_any_other_value(value: str) -> None:
    id = library_id("parked", value)
    assert id.startswith("parked:~")
    assert len(id) == len("parked:~") + 64


def test_ids_are_what_they_have_always_been() -> None:
    """Documents written by earlier versions have to be found."""
    assert parked_id("web/m-42") == "parked:~5c629543bd4785b28eaebe98f076dec9f2213fb20aafdabfe98be9e414bb0e2e"
    assert staged_id("5f3c") == "staged:5f3c"
    assert page_id(0) == "page:0"
    assert book_id("5f3c") == "book:5f3c"


@given(st.text(), st.text())
def test_different_values_have_different_ids_that_the_service_takes(text: str, other: str) -> None:
    assert (library_id("parked", text) == library_id("parked", other)) == (text == other)
    require_storable(EntityRef("any", (), library_id("parked", text)))


STAGED = StagedOutputs(ENTITY.key, "web/m-42", "5f", AT, (Output("o-1", "receipts", Json.of({"id": "o-1"}), 1.5),))
PARKED = ParkedMessage(ENTITY.key, "web/m-42", "its handler raised ValueError", AT, Json.of({"id": "m-42"}))


@pytest.mark.parametrize(
    ("document", "seconds", "read", "id", "partition"),
    [
        (a_page(ENTITY, 2, hashes=("m-1",)), 86_400, read_page, "page:2", ENTITY.key),
        (a_book("5f3c"), 60, read_book, "book:5f3c", "books"),
        (STAGED, None, read_staged, "staged:5f", ENTITY.key),
        (PARKED, None, read_parked, parked_id("web/m-42"), ENTITY.key),
    ],
    ids=lambda item: type(item).__name__,
)
def test_a_document_of_the_library_is_read_from_its_place(
    document: Any, seconds: int | None, read: Any, id: str, partition: str
) -> None:
    stored = to_library(None if partition == "books" else ENTITY, document, seconds)
    assert (stored["id"], stored["pk"], stored.get("ttl")) == (id, partition, seconds)
    assert read(from_library(_as_read(stored))) == document
    own = {"id": "a", "_ledger": {}, "_mine": 1, "ttl": 5}
    assert without_system(_as_read(own)) == own


@given(st.lists(st.integers(0, 400_000), max_size=300))
def test_batches_hold_everything_in_order_and_keep_the_limits(sizes: list[int]) -> None:
    documents = [{"n": number, "padding": "x" * size} for number, size in enumerate(sizes)]
    split = list(batches(documents))
    assert [document for batch in split for document in batch] == documents
    for batch in split:
        assert 1 <= len(batch) <= MAX_BATCH_OPERATIONS
        assert sum(Json.of(document).size for document in batch) <= MAX_BATCH_BYTES


@pytest.mark.parametrize(
    ("documents", "sizes"),
    [
        ([{}] * 250, [100, 100, 50]),
        ([{"padding": "x" * 600_000}] * 4, [3, 1]),
        ([{"padding": "ж" * 600_000}] * 2, [1, 1]),
        ([{}, {"padding": "x" * 3_000_000}, {}], [1, 1, 1]),
    ],
    ids=["by number", "by size", "by size in bytes", "a document too large for any batch"],
)
def test_batches_are_as_few_as_the_limits_allow(documents: list[Any], sizes: list[int]) -> None:
    assert [len(batch) for batch in batches(documents)] == sizes


@pytest.mark.parametrize(
    ("partition", "id", "advice"),
    [
        ("a", "a", None),
        (" a", "ж" * 255, None),
        ("EU", "a/b", "Derive the id otherwise"),
        ("EU", "x" * 256, "Derive the id otherwise"),
        ("x" * 2048, "a", "Derive shorter ones"),
    ],
)
def test_an_entity_that_the_service_cannot_name_is_refused(partition: str, id: str, advice: str | None) -> None:
    with nullcontext() if advice is None else pytest.raises(InvalidMessage, match=advice):
        require_storable(EntityRef("game", (partition,), id))


def _as_read(document: dict[str, Any]) -> dict[str, Any]:
    """As the service would return it."""
    system = {"_rid": "r", "_self": "s", "_etag": '"e"', "_attachments": "attachments/", "_ts": 1_795_255_202}
    return {**document, **system}
