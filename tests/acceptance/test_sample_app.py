"""The sample app as it is deployed: a shot comes in over HTTP, its outcome is read from the leader board."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from types import ModuleType
from uuid import uuid4

import aiohttp
import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueClient

from demo.stack import QUEUES, ROOT, create_containers
from demo.strategies import STRATEGIES
from exactlyonce import ConfigurationError
from function_host import HostOptions, function_host
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import SECONDS, Passed

pytestmark = pytest.mark.acceptance


@pytest.fixture
def function_app(
    storage: Azurite, cosmos: RunningEmulator, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> ModuleType:
    """The module, imported as the worker does."""
    database = f"sample-{uuid4().hex}"
    create_containers(cosmos, database)
    monkeypatch.setenv("AzureWebJobsStorage", storage.connection_string)
    monkeypatch.setenv("COSMOS__accountEndpoint", cosmos.endpoint)
    monkeypatch.setenv("COSMOS__accountKey", cosmos.key)
    monkeypatch.setenv("COSMOS__database", database)
    name = "function_app"
    if "strategy" in request.fixturenames and (strategy := request.getfixturevalue("strategy")):
        monkeypatch.setenv("STRATEGY", strategy)
        name = "demo.app.function_app"
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


@pytest.fixture
async def api(function_app: ModuleType, storage: Azurite) -> AsyncIterator[tuple[aiohttp.ClientSession, Passed]]:
    passed = Passed()
    for name in QUEUES:  # A copy that an earlier test had published when it ended.
        with (
            QueueClient.from_connection_string(storage.connection_string, name) as queue,
            suppress(ResourceNotFoundError),
        ):
            queue.clear_messages()
    settings = {"AzureWebJobsStorage": storage.connection_string}
    options = HostOptions(checkpoint=passed)
    async with (
        function_host(function_app.app, settings, options=options) as host,
        aiohttp.ClientSession(host.http) as session,
    ):
        yield session, passed
    await function_app.once.close()


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
async def test_a_shot_is_counted_once_however_often_it_is_fired(
    api: tuple[aiohttp.ClientSession, Passed], strategy: str | None
) -> None:
    session, passed = api
    answers = []
    for copy in ("first", "second"):
        reply = await session.post("/api/games/g-1/shots", json={"position": 0}, headers={"Idempotency-Key": "k-1"})
        assert (reply.status, "Idempotent-Replayed" in reply.headers) == (201, copy == "second")
        assert reply.headers["Location"] == "/api/games/g-1"
        answers.append(await reply.read())
    assert answers[0] == answers[1]
    assert json.loads(answers[0])["hit"]
    await passed.until(1)  # One outcome; a copy would have no second outcome to count.
    score = await session.get("/api/games/g-1")
    assert await score.json() == {"hits": 1, "misses": 0, "streak": 1, "best": 1}


async def test_requests_that_make_no_sense_are_refused(api: tuple[aiohttp.ClientSession, Passed]) -> None:
    session, _ = api
    without_key = await session.post("/api/games/g-1/shots", json={"position": 0})
    assert (without_key.status, "Idempotency-Key" in await without_key.text()) == (400, True)
    for body in (b"{", b"[]", b'{"position": 100}'):
        named = {"Idempotency-Key": "k-1", "Content-Type": "application/json"}
        refused = await session.post("/api/games/g-1/shots", data=body, headers=named)
        assert refused.status == 400
    assert (await session.get("/api/games/nobody")).status == 404


def test_without_its_settings_the_app_refuses_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COSMOS__accountEndpoint", "COSMOS__database"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    with pytest.raises(ConfigurationError, match="COSMOS__accountEndpoint"):
        importlib.import_module("function_app")
    command = [sys.executable, "-m", "function_host", "--app", str(ROOT)]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert started.returncode == 2
    assert "COSMOS__accountEndpoint" in started.stderr
    assert not started.stdout
