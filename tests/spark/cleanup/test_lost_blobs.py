"""Blobs of lost attempts: which go, which stay, and where settings say that they are."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.blobs import Author, Blob, WriteOnce
from exactlyonce.drivers.retrying import Backoff
from exactlyonce.identity import EntityRef
from exactlyonce.transports.memory_blobs import AwaitedBlobs, MemoryBlobs
from spark_jobs.cleaning.lost_blobs import BlobPlace, LostBlobs
from spark_jobs.cleaning.stores import Place
from tests.spark.cleanup.conftest import Shops
from tests.spark.cleanup.shop import everywhere, job, ref
from tests.spark.io.conftest import Tally

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


class Gallery:
    """Blobs in memory, and clean-ups of them."""

    def __init__(self, shops: Shops) -> None:
        self.shops = shops
        self.memory = MemoryBlobs(lambda: NOW)

    def write(
        self, tx: str, entity: EntityRef, *, age: timedelta = timedelta(days=2), message: str = "web/m-1"
    ) -> None:
        """A blob that an attempt wrote so long ago."""
        author = Author(entity, message, tx, NOW - age)
        self.memory.write_once(WriteOnce((Blob(f"{entity.id}/{tx}/picture", b"x", "image/png", author),)))

    def clean(self, *, writes: bool = True) -> LostBlobs:
        place = Place.of(job(self.shops.database), self.shops.account, Tally(), rate=None, writes=writes)
        backoff = Backoff(base=0.0, cap=0.0, tries=2)
        lost = LostBlobs(job(self.shops.database), place, AwaitedBlobs(self.memory), backoff)
        asyncio.run(lost.clean())
        return lost

    @property
    def left(self) -> list[str]:
        return [name.split("/")[1] for name in self.memory.written]


@pytest.fixture
def gallery(empty: Shops) -> Gallery:
    """Each shop has one payment, and the blob that was written with it; and blobs of attempts that were lost."""
    empty.process(everywhere([1], types=["outbox", "stream"]))
    found = Gallery(empty)
    for type in ("outbox", "stream"):
        found.write(committed(empty, type), ref(type))
        found.write(f"lost-{type}", ref(type))
    found.write("young", ref("outbox"), age=timedelta(minutes=1))
    found.write("too-old-to-tell", ref("outbox"), age=timedelta(days=16))
    found.write("of-a-reader", ref("reader"))
    found.write("foreign", EntityRef("else", ("x",), "x"))
    return found


def committed(shops: Shops, type: str) -> str:
    """Transaction of the payment in a shop."""
    documents: list[Any] = [one for _, one in shops.everything() if ref(type).id in (one["id"], one.get("entity"))]
    entries = [entry for one in documents for entry in one.get("_ledger", {}).get("entries", ())]
    beside = [one for one in shops.documents().values() if one["entity"] == ref(type).key]
    return str((entries + beside)[0]["tx"])


def test_only_blobs_of_lost_attempts_go(gallery: Gallery) -> None:
    kept = [tx for tx in gallery.left if tx not in ("lost-outbox", "lost-stream")]
    begun = gallery.shops.cosmos.requests()[-1].n
    dry = gallery.clean(writes=False)
    assert (gallery.shops.writes_after(begun), len(gallery.left)) == ([], len(kept) + 2)
    done = gallery.clean()
    assert dry.names == done.names == ["outbox-s/lost-outbox/picture", "stream-s/lost-stream/picture"]
    assert gallery.left == kept
    assert dry.results == {"goes": 2, "named by its entity": 3, "of no entity of the job file": 1}
    assert done.results == {"removed": 2, "named by its entity": 3, "of no entity of the job file": 1}


def test_what_was_not_deleted_is_counted_by_looking_again(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery.memory, "delete_blobs", lambda effect: None)
    assert gallery.clean().results == {
        "still there": 2,
        "named by its entity": 3,
        "of no entity of the job file": 1,
    }


def test_an_entity_that_does_not_answer_keeps_its_blobs(gallery: Gallery) -> None:
    gallery.shops.fault(operations=("replace",), when="before", action="status", status=408)
    assert gallery.clean().results == {"not decided": 4, "of no entity of the job file": 1, "named by its entity": 1}
    assert "lost-outbox" in gallery.left


@pytest.mark.parametrize(
    ("settings", "account"),
    [
        ({"AzureWebJobsStorage": "AccountName=a"}, "AccountName=a"),
        ({"AzureWebJobsStorage__blobServiceUri": "https://a"}, "https://a"),
        ({"AzureWebJobsStorage__accountName": "a"}, "https://a.blob.core.windows.net"),
        ({"EXACTLYONCE__connection": "Mine", "Mine__blobServiceUri": "https://b"}, "https://b"),
    ],
)
def test_settings_of_the_application_say_where_blobs_are(settings: dict[str, str], account: str) -> None:
    found = BlobPlace.of({"EXACTLYONCE__blobContainer": "blobs", **settings})
    assert found == BlobPlace("blobs", account)
    assert account not in repr(found)


def test_without_a_container_there_are_none_and_one_without_an_account_is_refused() -> None:
    assert BlobPlace.of({"AzureWebJobsStorage": "x"}) is None
    with pytest.raises(ConfigurationError, match="set AzureWebJobsStorage__blobServiceUri"):
        BlobPlace.of({"EXACTLYONCE__blobContainer": "blobs"})
