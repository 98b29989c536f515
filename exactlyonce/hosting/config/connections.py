"""Connections to storage and to Service Bus, found by the Functions host's rules."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from exactlyonce.environment import setting
from exactlyonce.errors import ConfigurationError

ADDRESS: Final = r"^https?://[^\s/?#]+(?:/\S*)?$"
"""The address of a service."""

_BLANK: Final = re.compile(r"\s")
_ACCOUNT: Final = r"[a-z0-9]{3,24}"
_HOST: Final = r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"

_DEVELOPMENT_STORAGE: Final = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    # The key of the storage emulator, the same for everybody and published by Microsoft: not a secret.
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)


@dataclass(frozen=True, slots=True)
class StorageConnection:
    """How to reach a storage account.

    Attributes:
        account: a connection string, for local use; or the address of the queue service, reached with an identity.
        client_id: the client id of a user-assigned managed identity.
        blob_service: the address of the blob service, reached with the same identity; None if unknown. A connection string
            serves for both.
    """

    account: str = field(repr=False)
    client_id: str | None = None
    blob_service: str | None = None

    @property
    def blobs(self) -> str | None:
        """A connection string or the address of the blob service; None if unknown."""
        return self.account if "=" in self.account else self.blob_service

    @classmethod
    def load(cls, name: str, environment: Mapping[str, str] = os.environ) -> StorageConnection:
        """Find a connection as the Functions host does: by name, with and without the prefix `AzureWebJobs`.

        Raises:
            ConfigurationError: there is no connection of that name, or the connection cannot be read.
        """
        for candidate in (name, f"AzureWebJobs{name}"):
            if text := setting(environment, candidate):
                return cls(_connection_string(candidate, text))
            if uri := setting(environment, f"{candidate}__queueServiceUri"):
                _require_address(f"{candidate}__queueServiceUri", uri, "queue")
                if blobs := setting(environment, f"{candidate}__blobServiceUri"):
                    _require_address(f"{candidate}__blobServiceUri", blobs, "blob")
                return cls(uri, setting(environment, f"{candidate}__clientId"), blobs)
            if account := setting(environment, f"{candidate}__accountName"):
                if not re.fullmatch(_ACCOUNT, account):
                    raise ConfigurationError(
                        f"{candidate}__accountName is no name of a storage account, which has 3 to 24 lower-case letters and "
                        "digits: set it to the account's."
                    )
                queues, blobs = (f"https://{account}.{service}.core.windows.net" for service in ("queue", "blob"))
                return cls(queues, setting(environment, f"{candidate}__clientId"), blobs)
        raise ConfigurationError(
            f"There is no storage connection {name!r}. Set {name}__queueServiceUri to use an identity, or {name} to a "
            "connection string on a developer's machine."
        )


@dataclass(frozen=True, slots=True)
class ServiceBusConnection:
    """How to reach a Service Bus namespace.

    Attributes:
        namespace: a connection string, for local use; or the namespace's host name, reached with an identity.
        client_id: the client id of a user-assigned managed identity.
    """

    namespace: str = field(repr=False)
    client_id: str | None = None

    @classmethod
    def load(cls, name: str, environment: Mapping[str, str] = os.environ) -> ServiceBusConnection:
        """Find a connection as the Functions host does: by name, with and without the prefix `AzureWebJobs`.

        Raises:
            ConfigurationError: there is no connection of that name, or the connection cannot be read.
        """
        for candidate in (name, f"AzureWebJobs{name}"):
            if text := setting(environment, candidate):
                from exactlyonce.transports.service_bus.sender import is_connection_string  # noqa: PLC0415  # As below.

                if _BLANK.search(text) or not is_connection_string(text):
                    # The text is not quoted: a key may be in it.
                    raise ConfigurationError(
                        f"{candidate} is no connection string of a Service Bus namespace: copy it from the namespace's own "
                        f"access policies, not from a queue's; or, to use an identity, remove it and set "
                        f"{candidate}__fullyQualifiedNamespace."
                    )
                return cls(text)
            if host := setting(environment, f"{candidate}__fullyQualifiedNamespace"):
                if not re.fullmatch(_HOST, host):
                    raise ConfigurationError(
                        f"{candidate}__fullyQualifiedNamespace is no host name: set it to the namespace's, such as "
                        "name.servicebus.windows.net."
                    )
                return cls(host, setting(environment, f"{candidate}__clientId"))
        raise ConfigurationError(
            f"There is no Service Bus connection {name!r}. Set {name}__fullyQualifiedNamespace to use an identity, or {name} "
            "to a connection string on a developer's machine."
        )


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of an application, besides Cosmos DB.

    Attributes:
        storage: the account for queues and blobs; None if not needed.
        service_bus: the namespace for queues and topics; None if not needed.
    """

    storage: StorageConnection | None = None
    service_bus: ServiceBusConnection | None = None


def _connection_string(name: str, text: str) -> str:
    if text == "UseDevelopmentStorage=true":
        return _DEVELOPMENT_STORAGE
    # Imported here: applications without storage queues do not wait for the SDK when they start.
    from exactlyonce.transports.storage_queue import is_connection_string  # noqa: PLC0415

    if _BLANK.search(text) or not is_connection_string(text):
        # The text is not quoted: a key may be in it.
        raise ConfigurationError(
            f"{name} is no connection string of a storage account: copy it from the account's access keys, or, to use an "
            f"identity, remove it and set {name}__queueServiceUri."
        )
    return text


def _require_address(name: str, uri: str, service: str) -> None:
    if not re.fullmatch(ADDRESS, uri):
        raise ConfigurationError(
            f"{name} is no address: set it to that of the account's {service} service, such as "
            f"https://name.{service}.core.windows.net."
        )
