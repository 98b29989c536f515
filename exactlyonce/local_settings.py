"""Settings of an app on a developer's machine: `local.settings.json`, as the Functions host reads it."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from exactlyonce.errors import ConfigurationError

FILE: Final = "local.settings.json"


def use_local_settings(folder: Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the settings of an app's folder to the environment, which wins where it has a setting. No file adds nothing.

    Args:
        folder: the app's.
        environment: takes the settings.

    Raises:
        ConfigurationError: the file is encrypted, or is not what the Functions host reads.
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
    if not isinstance(values, dict) or not all(isinstance(one, str) for one in values.values()):
        raise ConfigurationError(f'{FILE} has to be an object with an object "Values" of texts in quotation marks.')
    if content.get("IsEncrypted"):
        raise ConfigurationError(f"{FILE} is encrypted: run 'func settings decrypt' first.")
    for name, value in values.items():
        environment.setdefault(name, value)
