"""The environment of a process: settings as texts, the settings file of a developer's machine, and the identity at Azure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from exactlyonce.errors import ConfigurationError

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

FILE: Final = "local.settings.json"
_INVISIBLE: Final = r"[\s\x00\u200b\u2060\ufeff]+"
_ENDS: Final = re.compile(rf"\A{_INVISIBLE}|{_INVISIBLE}\Z")
"""Blanks of any kind, line ends and byte order marks around a text, as `echo`, a vault or a copied page leaves them."""


def trimmed(text: str) -> str:
    """A text without invisible characters at its ends."""
    return _ENDS.sub("", text)


def bare(text: str) -> str:
    """A setting's text, `trimmed`.

    Raises:
        ValueError: a character inside is invisible, or the text stands in quotation marks. The error does not quote the text,
            which may be a key.
    """
    stripped = trimmed(text)
    if not stripped.isprintable():
        raise ValueError("it has a line end or an invisible character inside")
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'":
        raise ValueError("it stands in quotation marks; leave them out")
    return stripped


def setting(environment: Mapping[str, str], name: str) -> str | None:
    """A setting of the environment, `bare`; None for an absent or empty setting.

    Raises:
        ConfigurationError: naming the setting, as `bare` refuses it.
    """
    try:
        return bare(environment.get(name, "")) or None
    except ValueError as error:
        raise ConfigurationError(f"{name} is wrong ({error}): set it again.") from None


def use_local_settings(folder: Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the settings in an app's folder to the environment, whose own settings win. Without a file nothing is added.

    Args:
        folder: the folder of the app.
        environment: takes the settings.

    Raises:
        ConfigurationError: the file is encrypted, or the Functions host could not read it.
    """
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        # A syntax error's text would quote nothing, but name its place.
        raise ConfigurationError(f"{FILE} cannot be read: {error}. Correct it, or remove it.") from None
    values = content.get("Values", {}) if isinstance(content, dict) else None
    if not isinstance(values, dict) or not all(isinstance(item, str) for item in values.values()):
        raise ConfigurationError(f'{FILE} has to be an object with an object "Values" of texts in quotation marks.')
    if content.get("IsEncrypted"):
        raise ConfigurationError(f"{FILE} is encrypted: run 'func settings decrypt' first.")
    for name, value in values.items():
        environment.setdefault(name, value)


def default_credential(client_id: str | None = None) -> DefaultAzureCredential:
    """The process's own identity. The caller closes the credential.

    Args:
        client_id: the client id of a user-assigned managed identity; None for the identity that Azure chooses.
    """
    # Imported here: the import is a fifth of every start, and keys or connection strings need none.
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415

    return DefaultAzureCredential(managed_identity_client_id=client_id)
