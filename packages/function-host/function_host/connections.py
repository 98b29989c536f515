"""What a binding's `connection` stands for: a connection string, or an identity and the address of a service."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError
from azure.identity.aio import DefaultAzureCredential
from azure.storage.queue.aio import QueueServiceClient

from function_host.azurite import ACCOUNT, ACCOUNT_KEY

from .app_settings import AppSettings
from .errors import SettingsError

DEFAULT_CONNECTION = "AzureWebJobsStorage"
_PREFIX = "AzureWebJobs"
# About what the real host's SDK does, some quick retries; Python's own defaults would pause for 15 s and more.
_RETRY: dict[str, Any] = {"retry_total": 3, "initial_backoff": 1, "increment_base": 2, "random_jitter_range": 0}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a service is, and how its caller proves who he is.

    Attributes:
        connection_string: set for connections by key; `UseDevelopmentStorage=true` is Azurite on its usual ports, and with
            `UseDevelopmentEmulator=true` it is a local endpoint of Service Bus.
        address: set for connections by identity: URI of a queue service, or host name of a namespace.
    """

    name: str
    connection_string: str | None = field(default=None, repr=False)
    address: str | None = None
    client_id: str | None = None


def find_connection(settings: AppSettings, name: str | None) -> Connection:
    """The connection of a queue; empty means `AzureWebJobsStorage`. Raises as `look_up`."""

    def address(setting: str) -> str | None:
        account = settings.get(f"{setting}__accountName")
        uri = settings.get(f"{setting}__queueServiceUri")
        return uri or (f"https://{account}.queue.core.windows.net" if account else None)

    accepted = (
        "a connection string ('UseDevelopmentStorage=true' for Azurite)",
        "__queueServiceUri to the address of a queue service",
    )
    return look_up(settings, name or DEFAULT_CONNECTION, address, accepted)


def look_up(
    settings: AppSettings, name: str, address: Callable[[str], str | None], accepted: tuple[str, str]
) -> Connection:
    """Look a connection up: with the `AzureWebJobs` prefix first, then as written.

    Args:
        address: of the service by the name of a setting, where the connection is by identity.
        accepted: for the message: a connection string, and a suffix with what it stands for.

    Raises:
        SettingsError: there is no setting of this name; the message lists what would be accepted.
    """
    for setting in (_PREFIX + name, name):
        if text := settings.get(setting):
            return Connection(name, connection_string=text)
        if service := address(setting):
            return Connection(name, address=service, client_id=settings.get(f"{setting}__clientId"))
    raise SettingsError(
        f"The connection '{name}' is not set: set {name} to {accepted[0]} or {name}{accepted[1]}, "
        "in local.settings.json or the environment."
    )


class StorageAccount:
    """An open connection; use it as an async context manager, which closes the clients."""

    def __init__(self, connection: Connection) -> None:
        self._credential: DefaultAzureCredential | None = None
        try:
            if connection.connection_string is not None:
                self.service = QueueServiceClient.from_connection_string(connection.connection_string, **_RETRY)
            else:
                self.service = self._by_uri(connection)
        except (ValueError, AzureError) as error:
            # Deliberately not repeating the SDK's text nor the value: both may hold the account's key.
            raise SettingsError(f"The connection '{connection.name}' has a value that is no connection.") from error

    def _by_uri(self, connection: Connection) -> QueueServiceClient:
        uri = connection.address or ""
        if _is_azurite(uri):
            # Tokens are never sent over plain http, so that the emulator's account is opened with its published key.
            return QueueServiceClient(uri, credential={"account_name": ACCOUNT, "account_key": ACCOUNT_KEY}, **_RETRY)
        self._credential = DefaultAzureCredential(managed_identity_client_id=connection.client_id)
        return QueueServiceClient(uri, credential=self._credential, **_RETRY)

    async def __aenter__(self) -> "StorageAccount":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.service.close()
        if self._credential is not None:
            await self._credential.close()


def _is_azurite(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"} and parts.path.strip("/") == ACCOUNT
