"""Shared access signatures: who may talk to the endpoint."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs

KEY_NAME: Final = "RootManageSharedAccessKey"
WELL_KNOWN_KEY: Final = "SAS_KEY_VALUE"
"""The key of every local emulator of the service: no secret."""


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key with its name."""

    name: str = KEY_NAME
    key: str = field(default=WELL_KNOWN_KEY, repr=False)

    def connection_string(self, port: int) -> str:
        """What clients need to find an endpoint on this machine."""
        return (
            f"Endpoint=sb://localhost:{port};SharedAccessKeyName={self.name};SharedAccessKey={self.key};"
            "UseDevelopmentEmulator=true;"
        )

    def signed(self, token: str) -> bool:
        """Whether a shared access signature was made with this key; its expiry is not looked at."""
        kind, _, rest = token.partition(" ")
        parts = {name: values[0] for name, values in parse_qs(rest, keep_blank_values=True).items()}
        if kind != "SharedAccessSignature" or parts.get("skn") != self.name:
            return False
        signed = "\n".join((_raw(rest, "sr"), parts.get("se", "")))
        digest = hmac.digest(self.key.encode(), signed.encode(), hashlib.sha256)
        return hmac.compare_digest(base64.b64encode(digest).decode(), parts.get("sig", ""))


def _raw(query: str, name: str) -> str:
    """A part of a query as it was written: the resource is signed percent-encoded."""
    found = (part.partition("=") for part in query.split("&"))
    return next((value for key, _, value in found if key == name), "")
