"""Blobs of lost attempts: which go, which stay, and where settings say that they are."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.library import WriteOnce
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import RETENTION
from spark_jobs.cleaner.blobs import BlobPlace, LostBlobs
from spark_jobs.cleaner.fence import Place
from tests.spark.cleaner.conftest import Shops
from tests.spark.cleaner.shop import job, paid, ref
from tests.spark.source.conftest import Tally

PAINTERS = ("outbox", "colocated", "stream", "reader")
"""One type of shops for each protocol."""
LATER = timedelta(days=2)
ADDRESS = "memory://blobs"


class Gallery:
    """Blobs in memory, that shops wrote or somebody else, and clean-ups of them."""

    def __init__(self, shops: Shops) -> None:
        self.shops = shops
        self.later = timedelta(0)
        self.retention = RETENTION
        self.memory = MemoryBlobs(self.now)

    def now(self) -> datetime:
        """The service's time, or so much later."""
        return datetime.fromtimestamp(self.shops.cosmos.now(), timezone.utc) + self.later

    def paint(self, type: str) -> None:
        """A payment with a picture, at the second attempt: the first one is lost when it commits."""
        commits = ("create", "replace", "batch")
        self.shops.fault(operations=commits, when="before", action="status", status=408, times=1)
        self.shops.process([paid(type, 1, "s", pictured=True)], AwaitedBlobs(self.memory, ADDRESS))

    def write(self, name: str, entity: EntityRef, *, age: timedelta = LATER) -> None:
        """A blob that somebody wrote so long ago."""
        author = Author(entity, "web/m-1", name, self.now() - age)
        self.memory.perform(WriteOnce((Blob(name, b"x", "image/png", author),)))

    def clean(self, *, writes: bool = True) -> LostBlobs:
        place = Place.of(job(self.shops.database), self.shops.account, rate=None, writes=writes)
        backoff = Backoff(base=0.0, cap=0.0, tries=2)
        lost = LostBlobs(job(self.shops.database), self.retention, place, Tally(), AwaitedBlobs(self.memory), backoff)
        asyncio.run(lost.clean())
        return lost

    @property
    def left(self) -> set[str]:
        return set(self.memory.written)

    @property
    def hung(self) -> set[str]:
        """The blobs whose addresses stand in committed states."""
        addresses = [item for _, document in self.shops.everything() for item in document.get("pictures", ())]
        return {unquote(address.removeprefix(f"{ADDRESS}/")) for address in addresses}


@pytest.fixture
def gallery(empty: Shops) -> Gallery:
    """A shop of each protocol has one payment with a picture, and a lost attempt at it; and there are blobs of others."""
    found = Gallery(empty)
    for type in PAINTERS:
        found.paint(type)
    found.later = LATER
    found.write("young", ref("outbox"), age=timedelta(minutes=1))
    found.write("too-old-to-judge", ref("outbox"), age=timedelta(days=16))
    found.write("foreign", EntityRef("else", ("x",), "x"))
    return found


OTHERS = {"young", "too-old-to-judge", "foreign"}


def test_only_blobs_of_lost_attempts_go(gallery: Gallery) -> None:
    lost = gallery.left - gallery.hung - OTHERS
    assert (len(lost), len(gallery.hung)) == (len(PAINTERS), len(PAINTERS))
    begun = gallery.shops.cosmos.last_request()
    dry = gallery.clean(writes=False)
    assert (gallery.shops.writes_after(begun), gallery.left) == ([], gallery.hung | lost | OTHERS)
    done = gallery.clean()
    assert gallery.left == gallery.hung | OTHERS
    assert dry.names == done.names == sorted(lost)
    kept = {"named by its entity": len(PAINTERS), "of no entity of the job file": 1}
    assert dry.results == {"goes": len(PAINTERS), **kept}
    assert done.results == {"removed": len(PAINTERS), **kept}
    assert gallery.clean().names == []


def test_blobs_of_messages_whose_marks_have_left_for_a_page_stay(gallery: Gallery) -> None:
    messages = [paid("outbox", number, "busy", pictured=True) for number in range(1, 36)]
    gallery.shops.process(messages, AwaitedBlobs(gallery.memory, ADDRESS))
    gallery.later += LATER
    (page,) = (document for document in gallery.shops.documents().values() if document.get("kind") == "page")
    assert len(page["blobs"]) == 20
    assert len(gallery.hung) == len(PAINTERS) + len(messages)
    gallery.clean()
    assert gallery.left >= gallery.hung


def test_more_blobs_of_one_entity_than_are_judged_at_once_all_go(gallery: Gallery) -> None:
    for number in range(101):
        gallery.write(f"lost/{number}", ref("outbox"))
    lost = gallery.left - gallery.hung - OTHERS
    assert gallery.clean().results["removed"] == len(lost) == 101 + len(PAINTERS)
    assert gallery.left == gallery.hung | OTHERS


def test_a_blob_of_an_entity_with_another_partition_key_than_its_type_has_is_nobodys(gallery: Gallery) -> None:
    gallery.write("misfit", EntityRef("outbox", ("a", "b", "c", "d"), "s"))
    assert gallery.clean().results["of no entity of the job file"] == 2
    assert "misfit" in gallery.left


def test_no_blob_is_judged_once_its_records_may_be_gone(gallery: Gallery) -> None:
    before = gallery.left
    gallery.retention = 2 * LATER
    assert (gallery.clean().names, gallery.left) == ([], before)


def test_blobs_that_were_not_deleted_are_counted_by_looking_again(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery.memory, "perform", lambda effect: None)
    assert gallery.clean().results == {
        "still there": len(PAINTERS),
        "named by its entity": len(PAINTERS),
        "of no entity of the job file": 1,
    }


def test_an_entity_that_does_not_answer_keeps_its_blobs(gallery: Gallery) -> None:
    before = gallery.left
    gallery.shops.fault(operations=("replace",), when="before", action="status", status=408)
    assert gallery.clean().results == {"not decided": 2 * len(PAINTERS), "of no entity of the job file": 1}
    assert gallery.left == before


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
