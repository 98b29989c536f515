"""Settings of the library, read from environment variables by the naming rules of the Functions host."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from exactlyonce.drivers.lanes import BUDGET
from exactlyonce.environment import bare, setting, trimmed
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.config.connections import ADDRESS, Connections, ServiceBusConnection, StorageConnection
from exactlyonce.records.application import DEFAULT_NAME
from exactlyonce.transports.service_bus.binding import LONGEST_DELIVERY_LIMIT, MAX_BYTES
from exactlyonce.values.lifetimes import Expiry, Positive

# The Functions host's time limit for functions, as far as the application can see it.


_IN_SETTINGS: Final = "AzureFunctionsJobHost__functionTimeout"
_ROOT: Final = "AzureWebJobsScriptRoot"
_SPAN: Final = re.compile(r"(?:(\d+)\.)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")


def seconds_of(span: object) -> float | None:
    """The seconds of a time span, as host.json writes it; None for any other text."""
    parts = _SPAN.fullmatch(span) if isinstance(span, str) else None
    if parts is None:
        return None
    days, hours, minutes, seconds = (int(group or 0) for group in parts.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def function_timeout(environment: Mapping[str, str] = os.environ) -> float | None:
    """Seconds after which the host ends a function, and with it the process and all other functions there.

    An application setting overrides host.json. None if neither has a limit: then the plan's limit holds, at least 5 minutes.
    None also for no limit, and for an unreadable text, which the host refuses.
    """
    return seconds_of(setting(environment, _IN_SETTINGS) or _of_host_json(setting(environment, _ROOT)))


def _of_host_json(root: str | None) -> object:
    if root is None:
        return None
    try:
        host = json.loads(Path(root, "host.json").read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    return host.get("functionTimeout") if isinstance(host, dict) else None


_COSMOS_NAME: Final = r"^[^/\\?#]{0,254}[^/\\?#\s]$"
_SETTING: Final = r"^[A-Za-z0-9_.:-]+$"
"""The name of a setting. Any other text may be a connection string with a key."""


def _of_json(value: object) -> object:
    """Decode JSON here: the settings source would stop at the first text that is not JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("it is not JSON") from None


def _require_base64(key: SecretStr) -> SecretStr:
    try:
        base64.b64decode(key.get_secret_value(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not base64") from None
    return key


def _delivery_timeout() -> float:
    """A minute, enough for several slow requests; less where the host ends functions earlier than two minutes."""
    return min(60.0, (function_timeout() or 300.0) / 2)


def _require_room(seconds: float) -> float:
    hosts = function_timeout()
    if hosts is not None and seconds > hosts / 2:  # A batch settles messages after its other deliveries.
        raise ValueError(
            f"{seconds:g} s is more than half of the {hosts:g} s after which the host ends a function, and with it all others "
            "in its process (functionTimeout of host.json)"
        )
    return seconds


class Settings(BaseSettings):
    """The library's settings, by the names of their environment variables.

    The page docs/reference/settings.md has all variables, with defaults and meanings. A setting loses blanks, line ends and
    byte order marks at its ends; inside of a setting they are refused.
    """

    model_config = SettingsConfigDict(extra="ignore")

    account_endpoint: str = Field(
        validation_alias="COSMOS__accountEndpoint",
        pattern=ADDRESS,
        description="the account's address, such as https://name.documents.azure.com:443/",
        examples=["https://name.documents.azure.com:443/"],
    )
    database: str = Field(
        validation_alias="COSMOS__database",
        pattern=_COSMOS_NAME,
        description="the name of the account's database",
        examples=["shop"],
    )
    account_key: Annotated[SecretStr, AfterValidator(_require_base64)] | None = Field(
        None,
        validation_alias="COSMOS__accountKey",
        description="the account's key as it was given out, or remove it to use an identity",
    )
    client_id: str | None = Field(
        None, validation_alias="COSMOS__clientId", description="the client id of a user-assigned identity"
    )
    library_container: str = Field(
        "exactlyonce",
        validation_alias="EXACTLYONCE__container",
        pattern=_COSMOS_NAME,
        description="the name of the library's container, or remove it",
    )
    application: str = Field(
        DEFAULT_NAME,
        validation_alias="EXACTLYONCE__application",
        min_length=1,
        max_length=255,
        description="the application's name, or remove it",
    )
    retention: Positive | None = Field(
        None,
        validation_alias="EXACTLYONCE__retention",
        description="a duration such as P30D, or a number of seconds above 0, or remove it",
    )
    connection: str = Field(
        "AzureWebJobsStorage",
        validation_alias="EXACTLYONCE__connection",
        pattern=_SETTING,
        description="the name of a storage connection, or remove it",
    )
    transport: Literal["storage", "servicebus"] = Field(
        "storage", validation_alias="EXACTLYONCE__transport", description="storage or servicebus, or remove it"
    )
    service_bus: str = Field(
        "ServiceBus",
        validation_alias="EXACTLYONCE__serviceBusConnection",
        pattern=_SETTING,
        description="the name of a Service Bus connection, or remove it",
    )
    message_bytes: int = Field(
        MAX_BYTES,
        validation_alias="EXACTLYONCE__maxMessageBytes",
        ge=64 * 1024,
        le=1024 * 1024,
        description="a number of bytes from 65536 to 1048576, such as 262144 (Standard), or remove it",
    )
    destinations: Annotated[dict[str, str], NoDecode, BeforeValidator(_of_json)] = Field(
        default_factory=dict,
        validation_alias="EXACTLYONCE__destinations",
        description='a JSON object from destination to queue name, such as {"receipts": "receipts-queue"}',
    )
    blob_container: str | None = Field(
        None,
        validation_alias="EXACTLYONCE__blobContainer",
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        min_length=3,
        max_length=63,
        description="the name of a blob container (3 to 63 lower-case letters, digits and single hyphens), or remove it",
    )
    delivery_limit: Positive = Field(
        timedelta(days=7),
        validation_alias="EXACTLYONCE__deliveryLimit",
        description="a duration such as P7D, or a number of seconds above 0",
    )
    delivery_timeout: Annotated[float, AfterValidator(_require_room)] = Field(
        default_factory=_delivery_timeout,
        validation_alias="EXACTLYONCE__deliveryTimeout",
        ge=1,
        allow_inf_nan=False,
        description="a number of seconds from 1 to half of the host's functionTimeout, such as 60, or remove it",
    )
    expiry: Expiry = Field("job", validation_alias="EXACTLYONCE__expiry", description="job or store, or remove it")
    proved_within: Positive | None = Field(
        None,
        validation_alias="EXACTLYONCE__provedWithin",
        description="a duration such as PT10M, or a number of seconds above 0, or remove it",
    )
    memory: int = Field(
        BUDGET,
        validation_alias="EXACTLYONCE__memory",
        ge=0,
        description="a number of bytes; 0 to remember nothing",
    )
    sweep_after: float = Field(
        60.0, validation_alias="EXACTLYONCE__sweepAfter", gt=0, description="a number of seconds above 0"
    )
    exception_text: Literal["on", "off"] = Field(
        "off", validation_alias="EXACTLYONCE__exceptionText", description="on or off, or remove it"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _bare(cls, value: object, about: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        # JSON may have lines.
        return trimmed(value) if about.field_name == "destinations" else bare(value)

    @property
    def needs_storage(self) -> bool:
        """Whether outputs or blobs go to a storage account."""
        return self.transport == "storage" or self.blob_container is not None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment; no files, which the Functions host reads."""
        del settings_cls, dotenv_settings, file_secret_settings
        return (init_settings, env_settings)

    @classmethod
    def load(cls) -> Settings:
        """Read the environment.

        Raises:
            ConfigurationError: naming every setting that is missing or wrong.
        """
        settings, problems = cls.examine()
        require_none(problems)
        return settings

    @classmethod
    def examine(cls, **overriding: Any) -> tuple[Settings, list[str]]:
        """Read the environment; return the settings and all problems. A wrong setting gets a harmless value, so that the rest
        can be examined.

        Args:
            overriding: settings, by variable, that override the environment.
        """
        try:
            return cls(**overriding), []  # The environment gives the rest.
        except ValidationError as error:
            # Neither the cause nor the value is kept: a key may be in it.
            wrong = error.errors(include_input=False, include_url=False, include_context=False)
        fields = {str(field.validation_alias): field for field in cls.model_fields.values()}
        harmless = dict(overriding)
        problems = []
        for item in wrong:
            name = str(item["loc"][0])
            harmless[name] = (fields[name].examples or [fields[name].get_default(call_default_factory=True)])[0]
            problems.append(_problem(name, item, fields[name].description or ""))
        return cls(**harmless), problems


def _problem(name: str, error: ErrorDetails, wanted: str) -> str:
    if error["type"] == "missing":
        return f"{name} is missing: set it to {wanted}."
    return f"{name} is wrong ({error['msg'].removeprefix('Value error, ')}): set it to {wanted}."


def require_none(problems: list[str]) -> None:
    """Raise `ConfigurationError` with all problems, if there are any."""
    if problems:
        raise ConfigurationError(
            "Settings are missing or wrong. Set them as application settings, or in local.settings.json:\n"
            + "\n".join(f"- {problem}" for problem in problems)
        )


# The environment: settings and connections. One error names all problems.


_STORAGE_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_SERVICE_BUS_NAME: Final = re.compile(r"(?=.{1,260}\Z)[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")


def load_all(destinations: Iterable[str], transport: str | None = None) -> tuple[Settings, Connections]:
    """Read the environment: the settings, and the connections named there.

    Args:
        destinations: names of the application's destinations.
        transport: overrides `EXACTLYONCE__transport`; None for the setting.

    Raises:
        ConfigurationError: naming every missing or wrong setting, and the values to set.
    """
    settings, problems = Settings.examine(**({} if transport is None else {"EXACTLYONCE__transport": transport}))
    storage, service_bus = None, None
    try:
        if settings.needs_storage:
            storage = StorageConnection("Unknown=")  # A stand-in that passes all checks below.
            storage = StorageConnection.load(settings.connection)
    except ConfigurationError as error:
        problems.append(str(error))
    try:
        if settings.transport == "servicebus":
            service_bus = ServiceBusConnection.load(settings.service_bus)
    except ConfigurationError as error:
        problems.append(str(error))
    problems += _unfit(settings, storage, tuple(destinations))
    require_none(problems)
    return settings, Connections(storage, service_bus)


def require_fit(settings: Settings, connections: Connections, destinations: tuple[str, ...]) -> None:
    """Raise `ConfigurationError`, naming all problems, if settings do not fit the destinations or the connections."""
    lacking = []
    if settings.needs_storage and connections.storage is None:
        lacking.append("Queues of a storage account, or blobs, need a storage connection: give storage=.")
    if settings.transport == "servicebus" and connections.service_bus is None:
        lacking.append("Queues of Service Bus need a connection: give service_bus=.")
    require_none([*lacking, *_unfit(settings, connections.storage, destinations)])


def _unfit(settings: Settings, storage: StorageConnection | None, destinations: tuple[str, ...]) -> Iterator[str]:
    for name in sorted(settings.destinations.keys() - set(destinations)):
        yield (
            f"EXACTLYONCE__destinations maps {name!r}, which is no destination of this application; declared are: "
            f"{', '.join(destinations) or 'none'}."
        )
    for name in destinations:
        yield from _unfit_name(settings, name)
    if settings.transport == "servicebus" and settings.delivery_limit > LONGEST_DELIVERY_LIMIT:
        yield (
            f"EXACTLYONCE__deliveryLimit is {settings.delivery_limit}, and a message of Service Bus has a time to live of at "
            f"most {LONGEST_DELIVERY_LIMIT}: set it to P49D or less."
        )
    if settings.blob_container is not None and storage is not None and storage.blobs is None:
        yield (
            f"EXACTLYONCE__blobContainer names a container, but not where it is: set {settings.connection}__blobServiceUri."
        )


def _unfit_name(settings: Settings, destination: str) -> Iterator[str]:
    queue = settings.destinations.get(destination, destination)
    if settings.transport == "storage" and not _STORAGE_NAME.fullmatch(queue):
        yield (
            f"{queue!r} cannot be the name of a queue: 3 to 63 lower-case letters, digits and single hyphens, the first and "
            f"last no hyphen. Map the destination {destination!r} to a queue in EXACTLYONCE__destinations."
        )
    if settings.transport == "servicebus" and not _SERVICE_BUS_NAME.fullmatch(queue):
        yield (
            f"{queue!r} cannot be the name of a queue or topic of Service Bus: at most 260 letters, digits and ._-/, the first "
            f"and last a letter or a digit. Map the destination {destination!r} to one in EXACTLYONCE__destinations."
        )
