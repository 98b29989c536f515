"""Settings, read from the environment under the names the Functions host uses for its own connections."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from exactlyonce.errors import ConfigurationError

_DEVELOPMENT_STORAGE: Final = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    # The key of the storage emulator, the same for everybody and published by Microsoft: not a secret.
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)


class Settings(BaseSettings):
    """The library's settings. Names of variables are given in the aliases.

    Attributes:
        account_endpoint: `COSMOS__accountEndpoint`, such as `https://name.documents.azure.com:443/`.
        database: `COSMOS__database`, which holds the entities' containers and the library's.
        account_key: `COSMOS__accountKey`, for local use only; without one, Microsoft Entra ID is used.
        client_id: `COSMOS__clientId` of a user-assigned managed identity.
        library_container: `EXACTLYONCE__container`, where the library keeps its documents.
        connection: `EXACTLYONCE__connection`, the name of the storage connection that outputs are sent over.
        destinations: `EXACTLYONCE__destinations`, a JSON object from destination to queue name; a destination that is not
            in it is a queue of that name.
        blob_container: `EXACTLYONCE__blobContainer`, the container for blobs and for the data of messages that are too large
            for their queue; without one there are none.
        delivery_limit: `EXACTLYONCE__deliveryLimit`, how long a message may wait in its queue (ISO 8601 duration or seconds).
        mark_after: `EXACTLYONCE__markAfter`, seconds a quiet entity is left alone before what was published is marked.
        sweep_after: `EXACTLYONCE__sweepAfter`, seconds that outputs may be owed before the sweeper looks after their entity.
            More than `mark_after`, or it would look after entities that are about to be marked.
    """

    model_config = SettingsConfigDict(extra="ignore")

    account_endpoint: str = Field(validation_alias="COSMOS__accountEndpoint", pattern=r"^https?://")
    database: str = Field(validation_alias="COSMOS__database", min_length=1)
    account_key: SecretStr | None = Field(None, validation_alias="COSMOS__accountKey")
    client_id: str | None = Field(None, validation_alias="COSMOS__clientId")
    library_container: str = Field("exactlyonce", validation_alias="EXACTLYONCE__container")
    connection: str = Field("AzureWebJobsStorage", validation_alias="EXACTLYONCE__connection")
    destinations: dict[str, str] = Field(default_factory=dict, validation_alias="EXACTLYONCE__destinations")
    blob_container: str | None = Field(
        None,
        validation_alias="EXACTLYONCE__blobContainer",
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        min_length=3,
        max_length=63,
    )
    delivery_limit: timedelta = Field(timedelta(days=7), validation_alias="EXACTLYONCE__deliveryLimit", gt=timedelta(0))
    mark_after: float = Field(10.0, validation_alias="EXACTLYONCE__markAfter", gt=0)
    sweep_after: float = Field(60.0, validation_alias="EXACTLYONCE__sweepAfter", gt=0)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment; no files: the Functions host reads those."""
        del settings_cls, dotenv_settings, file_secret_settings
        return (init_settings, env_settings)

    @classmethod
    def load(cls) -> Settings:
        """Read the environment.

        Raises:
            ConfigurationError: naming every setting that is missing or wrong.
        """
        try:
            return cls()  # The environment gives the rest.
        except SettingsError as error:
            raise ConfigurationError(f"A setting that has to be JSON is not: {error}.") from None
        except ValidationError as error:
            wrong = "; ".join(
                f"{one['loc'][0]}: {one['msg']}" for one in error.errors(include_input=False, include_url=False)
            )
            raise ConfigurationError(
                f"Settings are missing or wrong: {wrong}. Set them as application settings, or in local.settings.json."
            ) from None  # The cause would quote what may be a key.


@dataclass(frozen=True, slots=True)
class StorageConnection:
    """How to reach a storage account.

    Attributes:
        account: a connection string, for local use; or the address of the queue service, reached with an identity.
        client_id: of a user-assigned managed identity.
        blob_service: the address of the blob service, reached with the same identity; None if it is not known. A connection
            string serves for both.
    """

    account: str = field(repr=False)
    client_id: str | None = None
    blob_service: str | None = None

    @property
    def blobs(self) -> str | None:
        """How to reach the account's blobs; None if that is not known."""
        return self.account if "=" in self.account else self.blob_service

    @classmethod
    def load(cls, name: str, environment: Mapping[str, str] = os.environ) -> StorageConnection:
        """Find a connection as the Functions host does: by name, with and without the prefix `AzureWebJobs`.

        Raises:
            ConfigurationError: there is none of that name.
        """
        for candidate in (name, f"AzureWebJobs{name}"):
            if text := environment.get(candidate):
                return cls(_DEVELOPMENT_STORAGE if text.strip() == "UseDevelopmentStorage=true" else text)
            if uri := environment.get(f"{candidate}__queueServiceUri"):
                blobs = environment.get(f"{candidate}__blobServiceUri")
                return cls(uri, environment.get(f"{candidate}__clientId"), blobs)
            if account := environment.get(f"{candidate}__accountName"):
                queues, blobs = (f"https://{account}.{service}.core.windows.net" for service in ("queue", "blob"))
                return cls(queues, environment.get(f"{candidate}__clientId"), blobs)
        raise ConfigurationError(
            f"There is no storage connection {name!r}. Set {name}__queueServiceUri to use an identity, or {name} to a "
            "connection string on a developer's machine."
        )
