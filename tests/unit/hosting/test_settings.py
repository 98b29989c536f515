"""Settings: named as the host names its own, all problems in one error, and no key ever shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.hosting import ServiceBusConnection, Settings, StorageConnection
from exactlyonce.hosting.config.settings import load_all

KEY = "c2VjcmV0LWtleQ=="
BUS = f"Endpoint=sb://name.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey={KEY}"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COSMOS__accountendpoint", "AzureFunctionsJobHost__functionTimeout", "AzureWebJobsScriptRoot"):
        monkeypatch.delenv(name, raising=False)
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


def test_the_time_to_prove_and_the_expiry_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Settings.load()
    assert (usual.proved_within, usual.expiry, usual.delivery_timeout) == (None, "job", 60)
    monkeypatch.setenv("EXACTLYONCE__provedWithin", "PT3M")
    monkeypatch.setenv("EXACTLYONCE__expiry", "store")
    settings = Settings.load()
    assert (settings.proved_within, settings.expiry) == (timedelta(minutes=3), "store")


@pytest.mark.parametrize(("name", "value"), [("provedWithin", "0"), ("provedWithin", "soon"), ("expiry", "never")])
def test_a_time_to_prove_and_an_expiry_that_cannot_be_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"EXACTLYONCE__{name}", value)
    with pytest.raises(ConfigurationError, match=f"EXACTLYONCE__{name} is wrong"):
        Settings.load()


QUEUES, BLOBS = "https://a.queue.core.windows.net", "https://a.blob.core.windows.net"
STRING = "AccountName=a;AccountKey=k"
STORAGE: dict[str, tuple[dict[str, str], StorageConnection, str | None]] = {
    "a connection string": ({"Orders": STRING}, StorageConnection(STRING), STRING),
    "with the host's prefix": ({"AzureWebJobsOrders": STRING}, StorageConnection(STRING), STRING),
    "an identity": (
        {"Orders__queueServiceUri": QUEUES, "Orders__clientId": "c-1"},
        StorageConnection(QUEUES, "c-1"),
        None,
    ),
    "an identity, with the blob service": (
        {"Orders__queueServiceUri": QUEUES, "Orders__blobServiceUri": BLOBS},
        StorageConnection(QUEUES, None, BLOBS),
        BLOBS,
    ),
    "an account name": (
        {"Orders__accountName": "acc", "Orders__clientId": "c-1"},
        StorageConnection("https://acc.queue.core.windows.net", "c-1", "https://acc.blob.core.windows.net"),
        "https://acc.blob.core.windows.net",
    ),
}


@pytest.mark.parametrize(("environment", "connection", "blobs"), STORAGE.values(), ids=STORAGE)
def test_a_storage_connection_is_found_by_the_hosts_rules(
    environment: dict[str, str], connection: StorageConnection, blobs: str | None
) -> None:
    found = StorageConnection.load("Orders", environment)
    assert (found, found.blobs) == (connection, blobs)


def test_the_short_form_for_the_storage_emulator_is_known() -> None:
    emulator = StorageConnection.load("Orders", {"Orders": "UseDevelopmentStorage=true"})
    assert "http://127.0.0.1:10001/devstoreaccount1" in emulator.account
    assert "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1" in (emulator.blobs or "")


@pytest.mark.parametrize("name", ["blobs", "b-1", "0" * 63])
def test_a_container_for_blobs_may_be_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert Settings.load().blob_container is None
    monkeypatch.setenv("EXACTLYONCE__blobContainer", name)
    assert Settings.load().blob_container == name


@pytest.mark.parametrize("name", ["", "ab", "x" * 64, "Blobs", "a_b", "a--b", "-ab", "ab-", "$web", "a/b", "bl\nobs"])
def test_an_invalid_container_name_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("EXACTLYONCE__blobContainer", name)
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__blobContainer"):
        Settings.load()


def test_variables_of_other_programs_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTION", "somewhere-else")
    monkeypatch.setenv("DATABASE", "somewhere-else")
    settings = Settings.load()
    assert (settings.connection, settings.database) == ("AzureWebJobsStorage", "shop")


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(StorageConnection, "Orders__queueServiceUri"), (ServiceBusConnection, "Orders__fullyQualifiedNamespace")],
)
def test_a_missing_connection_is_named_with_advice(
    kind: type[StorageConnection | ServiceBusConnection], setting: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"Set {setting}"):
        kind.load("Orders", {})


def test_a_connection_does_not_show_its_key() -> None:
    assert KEY not in repr((StorageConnection(f"AccountKey={KEY}"), ServiceBusConnection(BUS)))


@pytest.mark.parametrize("name", ["Orders", "AzureWebJobsOrders"])
def test_a_service_bus_connection_is_found_with_and_without_the_hosts_prefix(name: str) -> None:
    assert ServiceBusConnection.load("Orders", {name: BUS}).namespace == BUS
    identity = {f"{name}__fullyQualifiedNamespace": "name.servicebus.windows.net", f"{name}__clientId": "c-1"}
    assert ServiceBusConnection.load("Orders", identity) == ServiceBusConnection("name.servicebus.windows.net", "c-1")


@pytest.mark.parametrize(
    "text", [f"{BUS};EntityPath=receipts", f"AccountName=a;AccountKey={KEY}", "name.servicebus.windows.net"]
)
def test_an_invalid_connection_string_is_refused_without_quoting_its_key(text: str) -> None:
    with pytest.raises(ConfigurationError, match="set Orders__fullyQualifiedNamespace") as caught:
        ServiceBusConnection.load("Orders", {"Orders": text})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["https://name.servicebus.windows.net", "sb://name/", "name.servicebus.windows.net:443", "name"]
)
def test_an_address_in_place_of_a_host_name_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Orders__fullyQualifiedNamespace is no host name.*name\.servicebus"):
        ServiceBusConnection.load("Orders", {"Orders__fullyQualifiedNamespace": host})


def test_a_single_setting_moves_the_outputs_to_service_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AzureWebJobsStorage", "UseDevelopmentStorage=true")
    monkeypatch.setenv("ServiceBus", BUS)
    settings, connections = load_all(["receipts"])
    assert (settings.transport, connections.service_bus) == ("storage", None)
    monkeypatch.setenv("EXACTLYONCE__transport", "servicebus")
    settings, connections = load_all(["receipts"])
    assert (settings.transport, connections.service_bus) == ("servicebus", ServiceBusConnection(BUS))
    settings, connections = load_all(["receipts"], "storage")  # Where the code says so.
    assert (settings.transport, connections.service_bus) == ("storage", None)


def test_on_service_bus_a_storage_account_is_needed_for_blobs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AzureWebJobsStorage", raising=False)
    monkeypatch.setenv("ServiceBus", BUS)
    assert load_all(["Receipts.of/2026_a"], "servicebus")[1].storage is None
    monkeypatch.setenv("EXACTLYONCE__blobContainer", "blobs")
    with pytest.raises(ConfigurationError, match="Set AzureWebJobsStorage__queueServiceUri"):
        load_all(["receipts"], "servicebus")


def test_problems_with_service_bus_are_named_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACTLYONCE__transport", "servicebus")
    monkeypatch.setenv("EXACTLYONCE__maxMessageBytes", "1000")
    monkeypatch.setenv("EXACTLYONCE__deliveryLimit", "P50D")
    monkeypatch.delenv("COSMOS__database")
    with pytest.raises(ConfigurationError) as caught:
        load_all(["_receipts", "x" * 261, "a b"])
    for name in (
        "COSMOS__database",
        "EXACTLYONCE__maxMessageBytes",
        "ServiceBus__fullyQualifiedNamespace",
        "P49D",
        "'_receipts'",
    ):
        assert name in str(caught.value)
    assert str(caught.value).count("\n- ") == 7


@pytest.mark.parametrize("value", ["bus", "", "Storage"])
def test_an_unknown_transport_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("AzureWebJobsStorage", "UseDevelopmentStorage=true")
    with pytest.raises(ConfigurationError, match=r"EXACTLYONCE__transport is wrong .* set it to storage or servicebus"):
        load_all([], value)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Says what host.json says."""
    monkeypatch.setenv("AzureWebJobsScriptRoot", str(tmp_path))

    def say(text: str) -> None:
        (tmp_path / "host.json").write_text(text, "utf-8")

    return say


LIMITS = [("00:01:30", 45), ("00:02:00", 60), ("00:30:00", 60), ("1.00:00:10", 60), ("-1", 60), ("soon", 60), ("", 60)]
UNLIMITED = [(text, 60) for text in ("", "{", "[]", "{}", '{"functionTimeout": 5}', "\ufeff{}")]


@pytest.mark.parametrize(
    ("written", "seconds"), [*((f'{{"functionTimeout": "{limit}"}}', half) for limit, half in LIMITS), *UNLIMITED]
)
def test_the_delivery_timeout_is_a_minute_or_half_of_a_shorter_host_limit(
    host: Callable[[str], None], written: str, seconds: float
) -> None:
    assert Settings.load().delivery_timeout == 60  # There is no host.json yet.
    host(written)
    assert Settings.load().delivery_timeout == seconds


def test_an_application_setting_overrides_host_json(
    host: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    host('\ufeff{"functionTimeout": "00:01:00"}')
    assert Settings.load().delivery_timeout == 30
    monkeypatch.setenv("AzureFunctionsJobHost__functionTimeout", "00:00:50")
    assert Settings.load().delivery_timeout == 25


def test_a_delivery_timeout_beyond_half_of_the_host_limit_is_refused_with_both_numbers(
    host: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    host('{"functionTimeout": "00:05:00"}')
    monkeypatch.setenv("EXACTLYONCE__deliveryTimeout", "150")
    assert Settings.load().delivery_timeout == 150
    monkeypatch.setenv("EXACTLYONCE__deliveryTimeout", "151")
    error = r"EXACTLYONCE__deliveryTimeout is wrong \(151 s is more than half of the 300 s .*functionTimeout"
    with pytest.raises(ConfigurationError, match=error):
        Settings.load()


@pytest.mark.parametrize("value", ["0", "0.9", "-1", "nan", "inf", "PT1M", ""])
def test_an_invalid_delivery_timeout_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("EXACTLYONCE__deliveryTimeout", value)
    with pytest.raises(ConfigurationError, match=r"EXACTLYONCE__deliveryTimeout is wrong .* or remove it"):
        Settings.load()
