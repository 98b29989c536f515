"""Settings: the names of the Functions host, everything wrong told at once, no key ever shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.hosting import Settings, StorageConnection

KEY = "c2VjcmV0LWtleQ=="


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("endpoint", "Endpoint"):
        monkeypatch.delenv(f"COSMOS__account{name}", raising=False)
    monkeypatch.setenv("COSMOS__accountEndpoint", "https://example.documents.azure.com:443/")
    monkeypatch.setenv("COSMOS__database", "shop")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSMOS__accountKey", KEY)
    monkeypatch.setenv("EXACTLYONCE__destinations", '{"board": "board-queue"}')
    monkeypatch.setenv("EXACTLYONCE__deliveryLimit", "P2D")
    settings = Settings.load()
    assert settings.account_endpoint == "https://example.documents.azure.com:443/"
    assert settings.destinations == {"board": "board-queue"}
    assert settings.delivery_limit == timedelta(days=2)
    assert KEY not in repr(settings)


def test_everything_that_is_wrong_is_told_at_once_and_no_value_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSMOS__accountEndpoint", f"AccountEndpoint={KEY}")
    monkeypatch.delenv("COSMOS__database")
    monkeypatch.setenv("EXACTLYONCE__markAfter", "soon")
    with pytest.raises(ConfigurationError) as told:
        Settings.load()
    for name in ("COSMOS__accountEndpoint", "COSMOS__database", "EXACTLYONCE__markAfter"):
        assert name in str(told.value)
    assert KEY not in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.parametrize("name", ["Orders", "AzureWebJobsOrders"])
def test_a_connection_is_found_with_and_without_the_hosts_prefix(name: str) -> None:
    assert (
        StorageConnection.load("Orders", {name: "AccountName=a;AccountKey=k"}).account == "AccountName=a;AccountKey=k"
    )


def test_a_connection_by_identity_names_the_queue_service() -> None:
    environment = {"Orders__queueServiceUri": "https://a.queue.core.windows.net", "Orders__clientId": "c-1"}
    assert StorageConnection.load("Orders", environment) == StorageConnection("https://a.queue.core.windows.net", "c-1")


def test_a_connection_by_account_name_is_known() -> None:
    connection = StorageConnection.load("Orders", {"Orders__accountName": "a", "Orders__clientId": "c-1"})
    queues, blobs = "https://a.queue.core.windows.net", "https://a.blob.core.windows.net"
    assert connection == StorageConnection(queues, "c-1", blobs)
    assert connection.blobs == blobs


def test_a_connection_by_identity_may_name_the_blob_service_too() -> None:
    environment = {"Orders__queueServiceUri": "https://a.queue.core.windows.net"}
    assert StorageConnection.load("Orders", environment).blobs is None
    environment["Orders__blobServiceUri"] = "https://a.blob.core.windows.net"
    assert StorageConnection.load("Orders", environment).blobs == "https://a.blob.core.windows.net"


def test_a_connection_string_serves_for_blobs_too() -> None:
    assert StorageConnection("AccountName=a;AccountKey=k").blobs == "AccountName=a;AccountKey=k"
    emulator = StorageConnection.load("Orders", {"Orders": "UseDevelopmentStorage=true"})
    assert "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1" in (emulator.blobs or "")


@pytest.mark.parametrize("name", ["blobs", "b-1", "0" * 63])
def test_a_container_for_blobs_may_be_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert Settings.load().blob_container is None
    monkeypatch.setenv("EXACTLYONCE__blobContainer", name)
    assert Settings.load().blob_container == name


@pytest.mark.parametrize("name", ["", "ab", "x" * 64, "Blobs", "a_b", "a--b", "-ab", "ab-", "$web", "a/b", "blobs\n"])
def test_a_name_that_no_container_can_have_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("EXACTLYONCE__blobContainer", name)
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__blobContainer"):
        Settings.load()


def test_a_setting_that_has_to_be_json_is_told_when_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACTLYONCE__destinations", "board=queue")
    with pytest.raises(ConfigurationError, match="has to be JSON"):
        Settings.load()


def test_variables_of_other_programs_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTION", "somewhere-else")
    monkeypatch.setenv("DATABASE", "somewhere-else")
    settings = Settings.load()
    assert (settings.connection, settings.database) == ("AzureWebJobsStorage", "shop")


def test_the_short_form_for_the_storage_emulator_is_known() -> None:
    connection = StorageConnection.load("Orders", {"Orders": "UseDevelopmentStorage=true"})
    assert "http://127.0.0.1:10001/devstoreaccount1" in connection.account


def test_a_connection_that_is_not_there_is_told_with_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="Set Orders__queueServiceUri"):
        StorageConnection.load("Orders", {})


def test_a_connection_does_not_show_its_key() -> None:
    assert KEY not in repr(StorageConnection(f"AccountKey={KEY}"))
