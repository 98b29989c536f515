"""What a Service Bus trigger's `connection` stands for: a connection string, or an identity and the address of a namespace."""

from typing import Any
from urllib.parse import urlsplit

from azure.identity.aio import DefaultAzureCredential
from azure.servicebus import parse_connection_string
from azure.servicebus.aio import ServiceBusClient

from function_host.app_settings import AppSettings
from function_host.connections import Connection, look_up
from function_host.errors import SettingsError

DEFAULT_CONNECTION = "ServiceBus"
# Quick retries: to wait for a session that has messages counts as a failure, too, and Python's own defaults take 20 s for it.
_RETRY: dict[str, Any] = {"retry_total": 2, "retry_backoff_factor": 0.1, "retry_backoff_max": 1}


def find_service_bus(settings: AppSettings, name: str | None) -> Connection:
    """The connection of a Service Bus trigger; empty means `AzureWebJobsServiceBus`. Raises as `look_up`."""
    accepted = (
        "a connection string of a Service Bus namespace (that of a local endpoint has 'UseDevelopmentEmulator=true')",
        "__fullyQualifiedNamespace to the host name of one",
    )
    return look_up(
        settings,
        name or DEFAULT_CONNECTION,
        lambda setting: settings.get(f"{setting}__fullyQualifiedNamespace"),
        accepted,
    )


class Namespace:
    """An open connection; use it as an async context manager, which closes the client."""

    def __init__(self, connection: Connection) -> None:
        self._credential: DefaultAzureCredential | None = None
        if connection.connection_string is not None:
            self.client = _by_key(connection.name, connection.connection_string)
        else:
            self._credential = DefaultAzureCredential(managed_identity_client_id=connection.client_id)
            self.client = ServiceBusClient(_host(connection.address or ""), self._credential, **_RETRY)

    async def __aenter__(self) -> "Namespace":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        if self._credential is not None:
            await self._credential.close()


def _by_key(name: str, text: str) -> ServiceBusClient:
    try:
        parse_connection_string(text)
        return ServiceBusClient.from_connection_string(text, **_RETRY)
    except (ValueError, TypeError) as error:
        # Deliberately not repeating the SDK's text nor the value: both may hold the namespace's key.
        raise SettingsError(f"The connection '{name}' has a value that is no connection to Service Bus.") from error


def _host(namespace: str) -> str:
    """The host name, which some write as an address."""
    return urlsplit(namespace).hostname or namespace
