"""The sample app, imported with the settings that infrastructure gives it, and no others."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import pytest

from tests.infra.bicep import deployment, one
from tests.infra.recording import Recorded, record

ADDRESSES: Final = {
    "storage.outputs.blobServiceUri": "https://example.blob.core.windows.net/",
    "storage.outputs.queueServiceUri": "https://example.queue.core.windows.net/",
    "cosmos.outputs.endpoint": "https://example.documents.azure.com:443/",
    "identity.outputs.clientId": "00000000-0000-0000-0000-00000000c11e",
}
"""What Azure would make of outputs."""


def settings_of(**parameters: Any) -> dict[str, str]:
    """Application settings of a deployment, with addresses as Azure would give them."""
    (config,) = one(deployment(**parameters), "web/site")["configs"]
    assert config["name"] == "appsettings"
    found: dict[str, str] = config["properties"]
    return {name: ADDRESSES.get(value, value) for name, value in found.items()}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """function_app.py."""
    for name in [name for name in os.environ if name.startswith(("AzureWebJobs", "COSMOS__", "EXACTLYONCE__"))]:
        monkeypatch.delenv(name)
    for name, value in settings_of().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    module = importlib.import_module("function_app")
    yield module
    asyncio.run(module.once.close())
    monkeypatch.delitem(sys.modules, "function_app")


@pytest.fixture
async def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """What the store asks of Cosmos DB."""
    return await record(monkeypatch)
