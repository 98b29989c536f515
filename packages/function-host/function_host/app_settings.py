"""App settings: local.settings.json under the environment, read as the real host reads them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from .errors import SettingsError

_REFERENCE = re.compile(r"%([^%]+)%")


class AppSettings:
    """Settings by name. Case does not matter and `:` equals `__`, since the real host's configuration is .NET's."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {_key(name): value for name, value in values.items()}

    def get(self, name: str) -> str | None:
        """The value, or None where the setting is absent or empty: an empty setting counts as not set."""
        return self._values.get(_key(name)) or None

    def resolve(self, text: str) -> str:
        """Replace each `%NAME%` in a binding's property (queue name, schedule, ...) by the setting of this name.

        Raises:
            SettingsError: there is no such setting.
        """

        def value(match: re.Match[str]) -> str:
            found = self.get(match[1])
            if found is None:
                raise SettingsError(f"'{text}' refers to the app setting '{match[1]}', which is not set.")
            return found

        return _REFERENCE.sub(value, text)


def load_local_settings(path: Path) -> dict[str, str]:
    """`Values` of a local.settings.json.

    Raises:
        SettingsError: the file is missing, encrypted, or holds something else than texts.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path} is missing: copy local.settings.json.example, or name another one.") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from error
    values = content.get("Values", {}) if isinstance(content, dict) else None
    if not isinstance(values, dict):
        raise SettingsError(f'{path} must hold an object with an object "Values".')
    if content.get("IsEncrypted"):
        raise SettingsError(f"{path} is encrypted: run 'func settings decrypt' first.")
    wrong = sorted(name for name, value in values.items() if not isinstance(value, str))
    if wrong:
        raise SettingsError(f"{path}: these Values must be texts in quotation marks: {', '.join(wrong)}.")
    return values


def effective_settings(local: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Both together; the environment wins, as it does under `func start`."""
    return {**local, **environment}


def _key(name: str) -> str:
    return name.replace(":", "__").lower()
