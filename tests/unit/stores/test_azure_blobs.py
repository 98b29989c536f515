"""Blobs in Azure, with a scripted container: what each outcome means."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.library import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.stores.blobs.azure import AzureBlobs, _metadata
from exactlyonce.values.envelope import EntityRef
from tests.unit.scripted import Scripted

SECRET = "what only the receiver may read"
BLOBS = tuple(Blob(f"a/{number}", SECRET.encode(), "text/plain") for number in range(10))


def failure(kind: type[HttpResponseError], status: int, code: str | None) -> HttpResponseError:
    """What the SDK raises for a reply of the service."""
    error = kind(SECRET)
    error.status_code = status
    vars(error)["error_code"] = code
    return error


class FakeContainer(Scripted):
    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__(*errors)
        self.asked: list[str] = []

    def get_blob_client(self, name: str) -> Any:
        async def ask(*_: Any, **__: Any) -> None:
            self.asked.append(name)
            await self.answer()

        return SimpleNamespace(upload_blob=ask, download_blob=ask, delete_blob=ask)

    async def get_container_properties(self) -> None:
        await self.get_blob_client("").download_blob()


class FakeListing(FakeContainer):
    """A container that lists one blob of an author on each page; each page has the date that the service gave it."""

    def __init__(self, created: datetime, author: Author, *dates: datetime | None) -> None:
        super().__init__()
        self.blob = SimpleNamespace(name="b", creation_time=created, metadata=_metadata(author))
        self.dates = dates

    def list_blobs(self, *, raw_response_hook: Callable[[Any], None], **_: Any) -> Any:
        async def page() -> AsyncIterator[Any]:
            yield self.blob

        async def pages() -> AsyncIterator[Any]:
            for date in self.dates:
                headers = {} if date is None else {"Date": format_datetime(date, usegmt=True)}
                raw_response_hook(SimpleNamespace(http_response=SimpleNamespace(headers=headers)))
                yield page()

        return SimpleNamespace(by_page=pages)


In = Callable[..., AzureBlobs]


@pytest.fixture
def blobs_in(monkeypatch: pytest.MonkeyPatch) -> In:
    """Makes blobs whose container is the given one."""

    def make(container: FakeContainer, **settings: Any) -> AzureBlobs:
        blobs = AzureBlobs("AccountName=a;AccountKey=b", "some", **settings)
        monkeypatch.setattr(blobs, "_container", lambda: container)
        return blobs

    return make


UNKNOWNS = [
    AzureError("?"),
    HttpResponseError("?"),
    ClientAuthenticationError("no token"),
    ServiceRequestError("?"),
    ServiceResponseError("?"),
    asyncio.TimeoutError(),
    failure(HttpResponseError, 500, "InternalError"),
    failure(HttpResponseError, 503, "ServerBusy"),
    failure(HttpResponseError, 400, "InvalidBlockList"),
    failure(ResourceExistsError, 409, "ContainerBeingDeleted"),
    failure(ResourceExistsError, 409, "ResourceTypeMismatch"),
    failure(HttpResponseError, 409, "BlobImmutableDueToPolicy"),
    failure(HttpResponseError, 412, "LeaseIdMissing"),
]
REFUSALS = [
    failure(HttpResponseError, 403, "AuthorizationFailure"),
    failure(HttpResponseError, 403, "AuthorizationPermissionMismatch"),
    failure(ClientAuthenticationError, 403, "AuthenticationFailed"),
    failure(ClientAuthenticationError, 401, "InvalidAuthenticationInfo"),
    failure(ResourceNotFoundError, 404, "ContainerNotFound"),
    failure(ResourceNotFoundError, 404, "ResourceNotFound"),
]
ALREADY_THERE = [
    failure(ResourceExistsError, 409, "BlobAlreadyExists"),
    failure(HttpResponseError, 412, "ConditionNotMet"),
]


def shown(error: Exception) -> str:
    return f"{type(error).__name__} {getattr(error, 'error_code', '')}"


@pytest.mark.parametrize("error", ALREADY_THERE, ids=shown)
async def test_a_blob_that_is_there_is_an_earlier_send_of_the_same(blobs_in: In, error: Exception) -> None:
    assert await blobs_in(FakeContainer(error)).perform(WriteOnce(BLOBS[:2])) is KEPT


@pytest.mark.parametrize("error", UNKNOWNS, ids=shown)
async def test_every_other_failure_is_an_unknown_write_a_read_to_try_again_and_no_reason_to_stop_deleting(
    blobs_in: In, error: Exception
) -> None:
    assert await blobs_in(FakeContainer(error)).perform(WriteOnce(BLOBS[:1])) is UNKNOWN
    requests: list[Callable[[AzureBlobs], Any]] = [lambda blobs: blobs.read("a", 10), lambda blobs: blobs.verify()]
    for request in requests:
        with pytest.raises(TryAgainLater, match="did not answer"):
            await request(blobs_in(FakeContainer(error)))
    container = FakeContainer(error, failure(ResourceNotFoundError, 404, "BlobNotFound"))
    await blobs_in(container).perform(DeleteBlobs(("a", "b", "c")))
    assert container.asked == ["a", "b", "c"]


@pytest.mark.parametrize("error", REFUSALS, ids=shown)
async def test_a_fault_for_an_operator_is_reported(blobs_in: In, error: Exception) -> None:
    requests: list[Callable[[AzureBlobs], Any]] = [
        lambda blobs: blobs.perform(WriteOnce(BLOBS[:1])),
        lambda blobs: blobs.read("a", 10),
        lambda blobs: blobs.perform(DeleteBlobs(("a",))),
        lambda blobs: blobs.verify(),
    ]
    for request in requests:
        with pytest.raises(ConfigurationError, match=r"container https://a\.blob\.core\.windows\.net/some"):
            await request(blobs_in(FakeContainer(error)))


async def test_a_failure_among_many_is_an_unknown_outcome_and_the_others_are_written(blobs_in: In) -> None:
    container = FakeContainer(None, AzureError("?"))
    assert await blobs_in(container).perform(WriteOnce(BLOBS)) is UNKNOWN
    assert len(container.asked) == len(BLOBS)


async def test_a_failure_is_logged_by_class_and_name_and_never_with_the_content(
    blobs_in: In, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="exactlyonce"):
        blobs = blobs_in(FakeContainer(*(failure(HttpResponseError, 500, "InternalError") for _ in range(2))))
        await blobs.perform(WriteOnce(BLOBS[:1]))
        await blobs.perform(DeleteBlobs(("a/7",)))
    for words in ("could not write blob a/0", "could not delete blob a/7", "HttpResponseError, InternalError"):
        assert words in caplog.text
    assert SECRET not in caplog.text


async def test_a_request_that_takes_too_long_is_an_unknown_outcome(blobs_in: In) -> None:
    container = FakeContainer()
    container.hanging = True
    assert await blobs_in(container, time_limit=0.01).perform(WriteOnce(BLOBS[:1])) is UNKNOWN
    with pytest.raises(TryAgainLater):
        await blobs_in(container, time_limit=0.01).read("a", 10)
    assert container.under_way == 0


async def test_cancelling_is_not_an_outcome(blobs_in: In) -> None:
    container = FakeContainer()
    container.hanging = True
    write = asyncio.ensure_future(blobs_in(container).perform(WriteOnce(BLOBS)))
    await container.called.wait()
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    assert container.under_way == 0


async def test_only_so_many_blobs_are_on_their_way_at_once(blobs_in: In) -> None:
    container = FakeContainer()
    blobs = blobs_in(container, concurrency=3)
    await asyncio.gather(*(blobs.perform(WriteOnce(BLOBS)) for _ in range(2)))
    assert container.most_under_way == 3


@pytest.mark.parametrize(
    ("account", "address"),
    [
        ("https://a.blob.core.windows.net", "https://a.blob.core.windows.net/some"),
        ("https://a.blob.core.windows.net/", "https://a.blob.core.windows.net/some"),
        ("AccountName=a;AccountKey=b", "https://a.blob.core.windows.net/some"),
        ("BlobEndpoint=http://127.0.0.1:9/a/;AccountName=a;AccountKey=b", "http://127.0.0.1:9/a/some"),
        ("BlobEndpoint=https://a.example;SharedAccessSignature=sv=1&sig=secret", "https://a.example/some"),
    ],
)
def test_an_address_says_where_and_nothing_else(account: str, address: str) -> None:
    assert AzureBlobs(account, "some").address == address


def test_a_connection_string_without_an_account_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="names no account") as refused:
        AzureBlobs("QueueEndpoint=http://127.0.0.1:9/a;Password=hidden", "some")
    assert "hidden" not in str(refused.value)


async def test_an_address_without_a_credential_gets_one_that_is_closed_with_it() -> None:
    blobs = AzureBlobs("https://a.blob.core.windows.net", "some")
    blobs._container()
    assert blobs._own_credential is not None
    await blobs.close()
    assert blobs._own_credential is None


CREATED = datetime(2026, 11, 21, tzinfo=timezone.utc)


@pytest.mark.parametrize("ahead", [timedelta(days=-3), timedelta(0), timedelta(days=3)], ids=str)
async def test_a_blob_is_as_old_as_the_service_says_on_its_page_whatever_clock_its_author_had(
    blobs_in: In, ahead: timedelta
) -> None:
    author = Author(EntityRef("game", ("g-1",), "g-1"), "web/m-1", "tx", CREATED + ahead)
    container = FakeListing(CREATED, author, CREATED + timedelta(days=1), CREATED + timedelta(days=5))
    ages = [blob.age async for blob in blobs_in(container).list_blobs()]
    older = max(-ahead, timedelta(0))
    assert ages == [older + timedelta(days=1), older + timedelta(days=5)]


async def test_on_a_page_without_a_date_nothing_is_old(blobs_in: In) -> None:
    author = Author(EntityRef("game", ("g-1",), "g-1"), "web/m-1", "tx", CREATED)
    listing = blobs_in(FakeListing(CREATED, author, None)).list_blobs()
    assert [blob.age async for blob in listing] == [timedelta(0)]
