"""Ids, partitions and batches of documents in Cosmos DB."""

from __future__ import annotations

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


def test_a_page_lies_in_its_entitys_partition_for_a_time() -> None:
    page = a_page(ENTITY, 2, hashes=("m-1",))
    document = to_library(ENTITY, page, 86_400)
    assert document["id"] == "page:2"
    assert document["pk"] == '["game","EU",7,"game-7"]'
    assert document["ttl"] == 86_400
    assert read_page(from_library(_as_read(document))) == page


def test_a_book_lies_in_the_partition_of_all_books() -> None:
    document = to_library(None, a_book("5f3c"), 60)
    assert (document["id"], document["pk"], document["ttl"]) == ("book:5f3c", "books", 60)
    assert read_book(from_library(_as_read(document))) == a_book("5f3c")


def test_a_staged_document_lies_in_its_entitys_partition_too() -> None:
    output = Output("o-1", "receipts", Json.of({"id": "o-1"}), 1.5)
    staged = StagedOutputs(ENTITY.key, "web/m-42", "5f", AT, (output,))
    document = to_library(ENTITY, staged)
    assert document["id"] == "staged:5f"
    assert "ttl" not in document
    assert document["pk"] == ENTITY.key
    assert read_staged(from_library(_as_read(document))) == staged


def test_a_parked_document_lies_there_under_the_id_of_its_message() -> None:
    parked = ParkedMessage(ENTITY.key, "web/m-42", "its handler raised ValueError", AT, Json.of({"id": "m-42"}))
    document = to_library(ENTITY, parked)
    assert document["id"] == parked_id("web/m-42")
    assert document["pk"] == ENTITY.key
    assert read_parked(from_library(_as_read(document))) == parked


def test_only_what_the_service_adds_is_taken_from_a_document() -> None:
    assert without_system(_as_read({"id": "a", "_ledger": {}, "_mine": 1, "ttl": 5})) == {
        "id": "a",
        "_ledger": {},
        "_mine": 1,
        "ttl": 5,
    }


@given(st.lists(st.integers(0, 400_000), max_size=300))
def test_batches_hold_everything_in_order_and_keep_the_limits(sizes: list[int]) -> None:
    documents = [{"n": number, "padding": "x" * size} for number, size in enumerate(sizes)]
    split = list(batches(documents))
    assert [document for batch in split for document in batch] == documents
    for batch in split:
        assert 1 <= len(batch) <= MAX_BATCH_OPERATIONS
        assert sum(Json.of(document).size for document in batch) <= MAX_BATCH_BYTES


def test_batches_are_as_few_as_the_limits_allow() -> None:
    assert [len(batch) for batch in batches([{}] * 250)] == [100, 100, 50]
    assert [len(batch) for batch in batches([{"padding": "x" * 600_000}] * 4)] == [3, 1]


def test_the_size_of_a_batch_is_counted_in_bytes() -> None:
    assert [len(batch) for batch in batches([{"padding": "ж" * 600_000}] * 2)] == [1, 1]


def test_a_document_too_large_for_any_batch_stays_alone() -> None:
    assert [len(batch) for batch in batches([{}, {"padding": "x" * 3_000_000}, {}])] == [1, 1, 1]


@pytest.mark.parametrize("id", ["a", "a b", "ä€🎯", "x" * 255, "ж" * 255, "'\"<>%&+:;,=[]{}", " a"])
def test_ordinary_entities_can_be_stored(id: str) -> None:
    require_storable(EntityRef("game", (id[:100],), id))


@pytest.mark.parametrize("id", ["", "a/b", "a\\b", "a?b", "a#b", "a\tb", "a\nb", "a ", "a\n", "x" * 256])
def test_an_entity_whose_id_the_service_cannot_hold_is_refused(id: str) -> None:
    with pytest.raises(InvalidMessage, match="Derive the id otherwise"):
        require_storable(EntityRef("game", ("EU",), id))


def test_an_entity_whose_name_is_too_long_for_the_librarys_partition_key_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="Derive shorter ones"):
        require_storable(EntityRef("game", ("x" * 2048,), "a"))


def _as_read(document: dict[str, Any]) -> dict[str, Any]:
    """As the service would return it."""
    system = {"_rid": "r", "_self": "s", "_etag": '"e"', "_attachments": "attachments/", "_ts": 1_795_255_202}
    return {**document, **system}
