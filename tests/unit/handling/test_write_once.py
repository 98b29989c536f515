"""`context.write_once`, and messages whose data travels as a blob."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.core.messaging import CloudEvent as AzureEvent
from yarl import URL

from exactlyonce import Context, Destination, Envelope, message
from exactlyonce.attempt import Before
from exactlyonce.errors import OutputTooLarge, UnknownDestination
from exactlyonce.handling.routes import Routes
from exactlyonce.records.blobs import MAX_BLOB_BYTES, Author, Blob, folder_of
from exactlyonce.values.envelope import EntityRef, Origin
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
BASE = "https://account.blob.core.windows.net/blobs"
GAME = EntityRef("range", ("game-7",), "game-7")


@message("writing.letter")
@dataclass
class Letter:
    text: str = ""


def context(entity: EntityRef = GAME, *, limit: int = 1_000, blobs: str | None = BASE) -> Context:
    routes = Routes.to((Destination("post"),), {"post": limit}, blobs=blobs)
    return Context(Origin(entity, "web/m-1"), Before(None, AT, "5f"), routes)


def test_a_blob_gets_an_address_of_its_attempt() -> None:
    given = context()
    address = given.write_once("letters/one.txt", "ÄÖÜ", content_type="text/plain")
    author = Author(GAME, "web/m-1", "5f", AT)
    assert given.blobs == (Blob("range/game-7/5f/letters/one.txt", "ÄÖÜ".encode(), "text/plain", author),)
    assert address == f"{BASE}/range/game-7/5f/letters/one.txt"
    given.write_once("a", b"\xff\x00")
    *_, plain = given.blobs
    assert (plain.content, plain.type) == (b"\xff\x00", "application/octet-stream")


UNFIT = ("/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a.", "a./b", "-a", "_messages/a")
UNQUOTED = ("", "a b", "a?b", "a#b", "a%20b", "ä", "a\\b", "a\n", "a" * 201)


@pytest.mark.parametrize("name", UNFIT + UNQUOTED)
def test_a_name_that_an_address_would_have_to_quote_is_refused(name: str) -> None:
    given = context()
    with pytest.raises(ValueError, match="The name of a blob"):
        given.write_once(name, b"")
    assert given.blobs == ()


@pytest.mark.parametrize("name", ["a", "9", "a" * 200, "a/b/c.tar.gz", "A-b_c/.hidden", "a..b"])
def test_other_names_are_taken(name: str) -> None:
    assert context().write_once(name, b"") == f"{BASE}/range/game-7/5f/{name}"


@pytest.mark.parametrize("content_type", ["text/plain\r\nx-ms-lease: 1", "text/plän", "\t", "text/plain ", " "])
def test_an_invalid_media_type_is_refused(content_type: str) -> None:
    with pytest.raises(ValueError, match="media type"):
        context().write_once("a", b"", content_type=content_type)


def test_two_blobs_of_a_message_have_two_names() -> None:
    given = context()
    given.write_once("a", b"1")
    with pytest.raises(ValueError, match=r"range/game-7/5f/a"):
        given.write_once("a", b"2")
    given.write_once("a/b", b"3")
    assert [blob.content for blob in given.blobs] == [b"1", b"3"]


def test_the_blobs_of_a_message_have_a_size_limit_together() -> None:
    given = context()
    given.write_once("half", bytes(MAX_BLOB_BYTES // 2))
    with pytest.raises(OutputTooLarge, match=f"{MAX_BLOB_BYTES + 1} bytes together"):
        given.write_once("more", bytes(MAX_BLOB_BYTES // 2 + 1))
    given.write_once("rest", bytes(MAX_BLOB_BYTES // 2))
    assert len(given.blobs) == 2


def test_without_a_container_there_are_no_blobs() -> None:
    with pytest.raises(UnknownDestination, match="EXACTLYONCE__blobContainer"):
        context(blobs=None).write_once("a", b"")
    with pytest.raises(OutputTooLarge, match="EXACTLYONCE__blobContainer"):
        context(blobs=None).send("post", Letter("x" * 2_000))


AWKWARD = (
    EntityRef("range", ("..", ".."), "other-container"),
    EntityRef("range", (".",), "."),
    EntityRef("range", ("a.",), "a."),
    EntityRef("range", ("a b?c#d&e=f",), "ж/\\%2F"),
    EntityRef("_messages", ("a",), "a"),
    EntityRef("range", ("x" * 255,), "y" * 255),
    EntityRef("range", ("",), "a"),
    EntityRef("ΑΒΓ", ("Δ" * 255,), "Δ" * 255),
)


@pytest.mark.parametrize("entity", AWKWARD, ids=range(len(AWKWARD)))
def test_an_awkward_entity_gets_a_plain_address_of_its_own(entity: EntityRef) -> None:
    given = context(entity)
    address = given.write_once("a/b", b"")
    (blob,) = given.blobs
    assert blob.author is not None
    assert blob.author.entity == entity
    assert address == f"{BASE}/{blob.name}" == str(URL(address))
    assert urlsplit(address).path == f"/blobs/{blob.name}"
    assert blob.name == f"{folder_of(entity)}/5f/a/b"
    assert blob.name.startswith("~")
    assert len(blob.name) < 1024 - 200


def test_folders_are_the_sources_of_plain_keys_and_differ() -> None:
    plain = EntityRef("order", ("tenant_1", "7"), "2026-01.b")
    assert folder_of(plain) == plain.source == "order/tenant_1/7/2026-01.b"
    assert folder_of(EntityRef("order", ("tenant_1", 7), "2026-01.b")).startswith("~")
    assert len({folder_of(entity) for entity in AWKWARD}) == len(AWKWARD)


def test_a_message_at_its_queues_limit_travels_whole_and_one_byte_more_as_a_blob() -> None:
    probe = context(limit=100_000)
    probe.send("post", Letter("x" * 2_000))
    size = probe.outputs[0].envelope.size
    whole, apart = context(limit=size), context(limit=size - 1)
    for given in (whole, apart):
        given.send("post", Letter("x" * 2_000))
    assert (whole.outputs, whole.blobs) == (probe.outputs, ())
    (output,), (blob,) = apart.outputs, apart.blobs
    assert output.id == probe.outputs[0].id
    assert blob.name == f"_messages/range/game-7/5f/{output.id}"
    assert (blob.type, json.loads(blob.content)) == ("application/json", {"text": "x" * 2_000})
    assert output.envelope.value["dataref"] == f"{BASE}/{blob.name}"
    assert "data" not in output.envelope.value


def test_a_message_by_reference_is_read_and_gets_its_data_back() -> None:
    whole, apart = context(limit=100_000), context(limit=1_000)
    for given in (whole, apart):
        given.send("post", Letter("ÄÖÜ" * 1_000))
    read = Envelope.read(apart.outputs[0].envelope.text)
    (blob,) = apart.blobs
    assert read.reference == f"{BASE}/{blob.name}"
    assert read.data == Json("null")
    assert read.to_json() == apart.outputs[0].envelope
    restored = read.with_data(Json(blob.content.decode()))
    assert restored == Envelope.read(whole.outputs[0].envelope.text)
    assert restored.reference is None


def test_azure_core_reads_a_message_that_refers_to_its_data() -> None:
    given = context()
    given.send("post", Letter("x" * 2_000))
    event: AzureEvent[Any] = AzureEvent.from_json(given.outputs[0].envelope.text)
    assert (event.source, event.type, event.data) == ("range/game-7", "writing.letter", None)
    assert event.extensions == {"dataref": f"{BASE}/{given.blobs[0].name}"}


def test_a_large_message_that_cannot_be_sent_leaves_no_blob() -> None:
    given = context(limit=50)
    for _ in range(2):
        with pytest.raises(OutputTooLarge):
            given.send("post", Letter("x" * 2_000))
    given = context()
    with pytest.raises(UnknownDestination, match="nowhere"):
        given.send("nowhere", Letter("x" * 2_000))
    assert (given.outputs, given.blobs) == ((), ())


def test_a_message_too_large_for_a_blob_is_refused_and_a_smaller_one_sent() -> None:
    given = context()
    given.write_once("half", bytes(MAX_BLOB_BYTES // 2))
    with pytest.raises(OutputTooLarge, match="together"):
        given.send("post", Letter("x" * (MAX_BLOB_BYTES // 2)))
    given.send("post", Letter("x" * 2_000))
    assert (len(given.outputs), len(given.blobs)) == (1, 2)
