"""Settings of a function app in Azure, read by the app's name with the Azure CLI, as the person who is signed in there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, MutableMapping
from typing import Any, Final

from exactlyonce.errors import ConfigurationError

_IDENTITY: Final = ("__clientId", "__credential")
"""Of the app's managed identity, which exists in Azure only: here the commands run as who is signed in."""
_OF_THE_HOST: Final = ("APPLICATIONINSIGHTS_", "AzureFunctionsJobHost__", "FUNCTIONS_", "PYTHON_", "WEBSITE_")
"""The host's and the worker's, which would send what a command does here as telemetry of the app."""
_REFERENCE: Final = "@Microsoft."
"""How a value begins that Azure takes from Key Vault or App Configuration."""


def use_azure_settings(name: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the settings of a function app in Azure to the environment.

    Args:
        name: of the function app, in the subscription that is chosen in the Azure CLI.
        environment: takes the settings.

    Raises:
        ConfigurationError: the Azure CLI is missing or refuses; there is no such app, or several; the environment has another
            value for a setting; or a setting of the library is a reference.
    """
    found = dict(_settings(name))
    other = sorted(one for one, value in found.items() if environment.get(one, value) != value)
    if other:
        raise ConfigurationError(
            f"The environment sets {', '.join(other)} to other values than the function app {name!r}: remove them from the "
            "environment, since a mixture could send messages to the queues of another application."
        )
    environment.update(found)


def _settings(name: str) -> Iterator[tuple[str, str]]:
    ids = _az("resource", "list", "--name", name, "--resource-type", "Microsoft.Web/sites", "--query", "[].id")
    if len(ids) != 1:
        raise ConfigurationError(
            f"The subscription has {len(ids) or 'no'} function apps of the name {name!r}: correct the name, or choose another "
            "subscription with 'az account set'."
        )
    for one in _az("functionapp", "config", "appsettings", "list", "--ids", ids[0]):
        setting, value = str(one["name"]), str(one["value"])
        if setting.endswith(_IDENTITY) or setting.startswith(_OF_THE_HOST):
            continue
        if not value.startswith(_REFERENCE):
            yield setting, value
        elif setting.startswith(("COSMOS__", "EXACTLYONCE__")):
            raise ConfigurationError(
                f"{setting} of {name!r} is a reference: set it in the environment, and run this without --azure."
            )


def _az(*arguments: str) -> list[Any]:
    """What a command of the Azure CLI prints."""
    az = shutil.which("az")
    if az is None:
        raise ConfigurationError("--azure needs the Azure CLI: install it, and run 'az login'.")
    ran = subprocess.run([az, *arguments, "--output", "json"], capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        said = (ran.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ConfigurationError(f"The Azure CLI refused 'az {' '.join(arguments[:2])}'. It said: {said}")
    try:
        printed = json.loads(ran.stdout)
    except ValueError:
        printed = None
    if not isinstance(printed, list):
        raise ConfigurationError(f"The Azure CLI printed no list for 'az {' '.join(arguments[:2])}': update it.")
    return printed
