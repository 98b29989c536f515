"""Connections to Service Bus are found as the real host finds them."""

import pytest

from function_host import SettingsError
from function_host.app_settings import AppSettings
from function_host.service_bus.connection import Namespace, ServiceBusConnection, find_service_bus

KEY = "SharedAccessKeyName=all;SharedAccessKey=c2VjcmV0"


def test_no_connection_name_means_azurewebjobsservicebus() -> None:
    settings = AppSettings({"AzureWebJobsServiceBus": "prefixed"})

    assert find_service_bus(settings, "") == find_service_bus(settings, None)
    assert find_service_bus(settings, None).connection_string == "prefixed"


def test_the_prefixed_setting_is_tried_first() -> None:
    settings = AppSettings({"Bus": "plain", "AzureWebJobsBus": "prefixed"})

    assert find_service_bus(settings, "Bus").connection_string == "prefixed"
    assert find_service_bus(AppSettings({"Bus": "plain"}), "Bus").connection_string == "plain"


def test_an_identity_connection_names_its_namespace() -> None:
    settings = AppSettings({"Bus__fullyQualifiedNamespace": "a.servicebus.windows.net", "Bus__clientId": "me"})

    found = find_service_bus(settings, "Bus")

    assert found == ServiceBusConnection("Bus", namespace="a.servicebus.windows.net", client_id="me")


@pytest.mark.parametrize("namespace", ["a.servicebus.windows.net", "https://a.servicebus.windows.net:443/"])
async def test_a_namespace_may_be_written_as_an_address(namespace: str) -> None:
    async with Namespace(ServiceBusConnection("Bus", namespace=namespace)) as opened:
        assert opened.client.fully_qualified_namespace == "a.servicebus.windows.net"


async def test_a_connection_string_opens_a_client_without_asking_anybody() -> None:
    text = f"Endpoint=sb://localhost:5/;{KEY};UseDevelopmentEmulator=true"

    async with Namespace(ServiceBusConnection("Bus", connection_string=text)) as opened:
        assert opened.client.fully_qualified_namespace.startswith("localhost")


def test_a_missing_connection_is_reported_with_what_would_be_accepted() -> None:
    with pytest.raises(SettingsError, match=r"'Bus' is not set: set Bus to .* or Bus__fullyQualifiedNamespace"):
        find_service_bus(AppSettings({}), "Bus")


@pytest.mark.parametrize("text", ["nonsense", f"Endpoint=;{KEY}", "Endpoint=sb://a/;SharedAccessKey=c2VjcmV0"])
def test_a_value_that_is_no_connection_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(SettingsError, match="'Bus' has a value that is no connection") as refused:
        Namespace(ServiceBusConnection("Bus", connection_string=text))
    assert "c2VjcmV0" not in str(refused.value)
