"""The plan of a local stack: what the settings of an app ask for on this machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from exactlyonce.environment import FILE, use_local_settings
from exactlyonce.errors import ConfigurationError

LOOPBACK: Final = "127.0.0.1"
COSMOS: Final = "COSMOS__accountEndpoint"
DATABASE: Final = "COSMOS__database"
STORAGE: Final = "AzureWebJobsStorage"
SERVICE_BUS: Final = "ServiceBus"
_HERE: Final = (LOOPBACK, "localhost")
_DEVELOPMENT: Final = "UseDevelopmentStorage=true"
_OF_EMULATORS: Final = (
    "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
"""What every emulator of Service Bus takes; the key is no secret."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to run for an app.

    Attributes:
        app: its folder.
        settings: the environment of its host.
        cosmos: port of the local Cosmos DB.
        queues, blobs: ports of Azurite; None for no blobs.
        bus: port of the local Service Bus; None if the app has no connection to one.
        http: port of the app's HTTP functions; 0 for a free one.
        console: port of the console; 0 for a free one.
    """

    app: Path
    settings: Mapping[str, str]
    cosmos: int
    queues: int
    blobs: int | None
    bus: int | None
    http: int
    console: int = 0

    @classmethod
    def of(cls, app: Path, http: int, environment: Mapping[str, str] = os.environ, console: int = 0) -> Plan:
        """Read the settings of an app.

        Args:
            app: its folder.
            http: port of its HTTP functions.
            environment: wins over `local.settings.json`.
            console: port of the console.

        Raises:
            ConfigurationError: the folder has no app, or its settings name something that does not run on this machine.
        """
        if not (app / "function_app.py").is_file():
            raise ConfigurationError(
                f"There is no function_app.py in {app}. Run 'exactlyonce dev' in the folder of an app; 'exactlyonce new shop' "
                "writes one."
            )
        if not (app / FILE).is_file():
            raise ConfigurationError(f"There is no {FILE} in {app}. Copy {FILE}.example to {FILE}.")
        settings = dict(environment)
        use_local_settings(app, settings)
        settings.setdefault("EXACTLYONCE__exceptionText", "on")  # All messages here are the developer's own.
        if any(name.startswith(f"{SERVICE_BUS}__") and value for name, value in settings.items()):
            raise _no_local_bus()
        queues, blobs = _storage_ports(settings.get(STORAGE, ""))
        bus = _bus_port(settings[SERVICE_BUS]) if settings.get(SERVICE_BUS) else None
        wants_blobs = bool(settings.get("EXACTLYONCE__blobContainer"))
        cosmos = _cosmos_port(settings.get(COSMOS, ""))
        return cls(app, settings, cosmos, queues, blobs if wants_blobs else None, bus, http, console)

    def require_servers(self) -> None:
        """Raise `ConfigurationError` if the local Service Bus, which is installed apart, is needed and not there."""
        if self.bus is not None and (find_spec("local_service_bus") is None or find_spec("proton") is None):
            raise ConfigurationError(
                f"The app runs on Service Bus ({SERVICE_BUS} of {FILE}), and the local Service Bus is not installed. Install "
                "the wheel of local-service-bus, which needs a C compiler."
            )

    def require_free_ports(self) -> None:
        """Raise `ConfigurationError` if another process listens on a port of this plan."""
        for port, what, where in (
            (self.cosmos, "the local Cosmos DB", COSMOS),
            (self.queues, "Azurite's queues", STORAGE),
            (self.blobs, "Azurite's blobs", STORAGE),
            (self.bus, "the local Service Bus", SERVICE_BUS),
            (self.http, "the app's HTTP functions", "--http-port"),
            (self.console, "the console", "--console-port"),
        ):
            if port and _is_taken(port):
                place = where if where.startswith("--") else f"{where} of {FILE}"
                raise ConfigurationError(
                    f"Port {port} is taken, and is that of {what}. End the process that listens on it, or choose another port "
                    f"in {place}."
                )


def _cosmos_port(address: str) -> int:
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:  # No number, or none of a port.
        port = None
    if parts.scheme != "http" or parts.hostname not in _HERE or not port:
        raise ConfigurationError(
            f"'exactlyonce dev' runs an app on a local Cosmos DB only. Set {COSMOS} in {FILE} to http://{LOOPBACK}:8081/."
        )
    return port


def _storage_ports(connection: str) -> tuple[int, int]:
    """The ports of queues and blobs that a connection string names. It is not quoted: it may be a key."""
    if connection.strip() == _DEVELOPMENT:
        return 10001, 10000
    ports = dict(re.findall(rf"(\w+)Endpoint=http://(?:{'|'.join(map(re.escape, _HERE))}):(\d+)/", connection))
    if "Queue" not in ports:
        raise ConfigurationError(
            f"'exactlyonce dev' runs an app on Azurite only. Set {STORAGE} in {FILE} to {_DEVELOPMENT}."
        )
    return int(ports["Queue"]), int(ports.get("Blob", 10000))


def _bus_port(connection: str) -> int:
    found = re.search(r"Endpoint=sb://localhost(?::(\d+))?[/;]", connection)
    if found is None or _OF_EMULATORS not in connection:
        raise _no_local_bus()
    return int(found[1] or 5672)


def _no_local_bus() -> ConfigurationError:
    return ConfigurationError(
        f"'exactlyonce dev' runs an app on a local Service Bus only. Set {SERVICE_BUS} in {FILE} to Endpoint=sb://localhost;"
        f"{_OF_EMULATORS}; and remove settings that begin with {SERVICE_BUS}__."
    )


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # What just ended may leave connections behind.
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
