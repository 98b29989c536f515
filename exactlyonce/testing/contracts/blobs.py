"""The contract of a container for blobs, as a suite to inherit from.

    class TestMyBlobs(BlobContract):
        @pytest.fixture
        async def blobs(self) -> AsyncIterator[AsyncBlobs]: ...

Needs pytest and pytest-asyncio in its automatic mode.
"""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest

from exactlyonce.effects.library import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.records.blobs import Author, Blob, ListedBlob
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.values.envelope import EntityRef

ENTITIES = (
    EntityRef("range", ("game-7",), "game-7"),
    EntityRef("Ünïcode \"'", (True, 1, 0.5, "a/b%2F", ""), "..  ж\u0000\r\n"),
)
MESSAGES = ("web/m-1", 'web/%25%2F "ж"\r\n: ;,=', "x" * 100)


class BlobContract:
    """Suite for a container for blobs: give it a fixture `blobs`, which may hold blobs already."""

    @pytest.fixture
    def blobs(self) -> AsyncBlobs:
        """The container to test."""
        raise NotImplementedError("Override the fixture `blobs`.")

    async def test_writing_nothing_succeeds(self, blobs: AsyncBlobs) -> None:
        assert await blobs.perform(WriteOnce(())) is KEPT

    @pytest.mark.parametrize("content", [b"", b"x", "ÄÖÜ 🎯".encode(), bytes(range(256)) * 4 * 1024 * 40], ids=len)
    async def test_a_written_blob_is_read_whole(self, blobs: AsyncBlobs, content: bytes) -> None:
        blob = a_blob(content)
        assert await blobs.perform(WriteOnce((blob,))) is KEPT
        assert await blobs.read(blob.name, len(content)) == content

    async def test_no_more_is_read_than_is_asked_for_and_one_byte_that_shows_more(self, blobs: AsyncBlobs) -> None:
        blob = a_blob(b"0123456789")
        await blobs.perform(WriteOnce((blob,)))
        for limit in (0, 4, 9, 10, 11):
            assert await blobs.read(blob.name, limit) == blob.content[: limit + 1]

    async def test_an_absent_blob_is_reported(self, blobs: AsyncBlobs) -> None:
        assert await blobs.read(a_blob(b"").name, 10) is None

    async def test_an_existing_blob_stays_as_it_is(self, blobs: AsyncBlobs) -> None:
        blob, other = a_blob(b"first"), a_blob(b"other")
        assert await blobs.perform(WriteOnce((blob,))) is KEPT
        again = Blob(blob.name, b"second", "text/plain")
        assert await blobs.perform(WriteOnce((again, other))) is KEPT
        assert await blobs.read(blob.name, 100) == b"first"
        assert await blobs.read(other.name, 100) == b"other"

    async def test_of_many_writers_at_once_one_wins_and_all_learn_that_it_is_there(self, blobs: AsyncBlobs) -> None:
        name = a_blob(b"").name
        contents = [f"{number}".encode() for number in range(5)]
        writes = (blobs.perform(WriteOnce((Blob(name, content, "text/plain"),))) for content in contents)
        assert set(await asyncio.gather(*writes)) == {KEPT}
        assert await blobs.read(name, 100) in contents

    async def test_names_are_kept_apart(self, blobs: AsyncBlobs) -> None:
        folder = uuid4().hex
        names = [f"{folder}/a", f"{folder}/a/b", f"{folder}/A", f"{folder}/a.b-c_d~e"]
        assert await blobs.perform(WriteOnce(tuple(Blob(name, name.encode(), "t/x") for name in names))) is KEPT
        assert [await blobs.read(name, 100) for name in names] == [name.encode() for name in names]

    async def test_deleting_ignores_what_is_missing(self, blobs: AsyncBlobs) -> None:
        some = tuple(a_blob(b"x") for _ in range(3))
        await blobs.perform(WriteOnce(some))
        await blobs.perform(DeleteBlobs((some[0].name, a_blob(b"").name, some[2].name)))
        assert [await blobs.read(item.name, 10) for item in some] == [None, b"x", None]

    async def test_a_deleted_blob_can_be_written_again(self, blobs: AsyncBlobs) -> None:
        blob = a_blob(b"x")
        for _ in range(2):
            await blobs.perform(WriteOnce((blob,)))
            await blobs.perform(DeleteBlobs((blob.name,)))
        assert await blobs.read(blob.name, 10) is None

    async def test_a_listing_shows_names_in_order_with_their_authors(self, blobs: AsyncBlobs) -> None:
        folder, now = uuid4().hex, datetime.now(timezone.utc)
        authors = [
            Author(entity, message, uuid4().hex, now, told)
            for entity in ENTITIES
            for message, told in zip(MESSAGES, (None, "numbered:~5f", 'ж: "%2F'), strict=True)
        ]
        written = [Blob(f"{folder}/{number}", b"x", "t/x", author) for number, author in enumerate(authors)]
        written.append(Blob(f"{folder}/~", b"x", "t/x"))
        await blobs.perform(WriteOnce(tuple(reversed(written))))
        listing = await listed(blobs, f"{folder}/")
        assert [(item.name, item.author) for item in listing] == [(item.name, item.author) for item in written]
        # For Python the partition values 1 and True are equal.
        assert [item.author.entity.key for item in listing if item.author] == [author.entity.key for author in authors]
        assert [item.name for item in await listed(blobs, f"{folder}/~")] == [f"{folder}/~"]

    async def test_a_blob_is_as_old_as_the_older_of_its_writing_and_its_attempt(self, blobs: AsyncBlobs) -> None:
        folder, now, day = uuid4().hex, datetime.now(timezone.utc), timedelta(days=1)
        made = {"a": None, "b": now - 3 * day, "c": now + 3 * day}
        for name, at in made.items():
            author = None if at is None else Author(ENTITIES[0], "web/m-1", "tx", at)
            await blobs.perform(WriteOnce((Blob(f"{folder}/{name}", b"x", "t/x", author),)))
        young, old, ahead = (item.age for item in await listed(blobs, f"{folder}/"))
        assert timedelta(0) <= young < day
        assert 3 * day - timedelta(minutes=5) < old < 4 * day
        assert timedelta(0) <= ahead < day

    async def test_more_are_listed_than_a_page_holds(self, blobs: AsyncBlobs) -> None:
        folder = uuid4().hex
        names = [f"{folder}/{number:03}" for number in range(120)]
        await blobs.perform(WriteOnce(tuple(Blob(name, b"", "t/x") for name in names)))
        assert [item.name for item in await listed(blobs, folder)] == names

    async def test_an_address_shows_no_query_and_does_not_end_in_a_slash(self, blobs: AsyncBlobs) -> None:
        assert "?" not in blobs.address
        assert not blobs.address.endswith("/")


async def listed(blobs: AsyncBlobs, prefix: str) -> list[ListedBlob]:
    """A whole listing."""
    return [blob async for blob in blobs.list_blobs(prefix)]


def a_blob(content: bytes) -> Blob:
    """A blob under a fresh name."""
    return Blob(f"contract/{uuid4().hex}/b.bin", content, "application/octet-stream")
