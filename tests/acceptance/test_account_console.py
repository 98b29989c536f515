"""`exactlyonce console` on an account that a token of Entra ID opens: it reads only, and acts on request, in bulk."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from azure.cosmos import PartitionKey

from exactlyonce.effects.library import Park, Written
from exactlyonce.records.library import ParkedMessage
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from function_host.azurite import ACCOUNT_KEY
from local_cosmos.inprocess import RunningEmulator, running_emulator

pytestmark = pytest.mark.acceptance
TOKEN = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.sig"  # What the operator's login gives in this test.
LOGIN = """#!/bin/sh
echo '{"accessToken": "TOKEN", "expires_on": 4102444800, "expiresOn": "2100-01-01 00:00:00.000000", "tenant": "t"}'
"""
APP = """\
from pydantic import BaseModel
from exactlyonce import Context, Destination, Entity, Outbox, message
from exactlyonce.hosting import ExactlyOnce

@message("walls.paint")
class Paint(BaseModel):
    wall: str

class Wall(BaseModel):
    coats: int = 0

walls = Entity("wall", state=Wall, container="walls", partition_key="/wall", strategy=Outbox())
to_walls = Destination("walls", receives=(Paint,), to=walls)

@walls.handles(Paint, key=lambda paint: paint.wall)
def paint(state: Wall, paint: Paint, context: Context) -> Wall:
    return Wall(coats=state.coats + 1)

once = ExactlyOnce.from_environment(walls, destinations=(to_walls,))
"""

WALL = EntityRef("wall", ("w",), "w")


@pytest.fixture
async def account() -> AsyncIterator[RunningEmulator]:
    """An account with a parked message for each of three reasons, one of which two have."""
    with running_emulator(tls=True, tokens=(TOKEN,)) as emulator:
        connection = CosmosConnection(emulator.endpoint, "house", key=emulator.key)
        database = await (await connection.client()).create_database("house")
        await database.create_container("walls", PartitionKey("/wall"))
        await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
        store = CosmosStore(connection, [EntityContainer("wall", "walls", ("/wall",))])
        now = datetime.now(UTC)
        for id, reason in (("m-1", "it is red"), ("m-2", "it is red"), ("m-3", "it is blue")):
            envelope = Envelope("test", id, "walls.paint", Json.of({"wall": "w"}), now).to_json()
            parked = ParkedMessage(WALL.key, f"test/{id}", reason, now, envelope)
            assert isinstance(await store.perform(Park(WALL, parked)), Written)
        await connection.close()
        yield emulator


class Asking:
    """Somebody who has opened the page."""

    def __init__(self, session: ClientSession, address: str) -> None:
        self._session = session
        self._address, _, self._token = address.partition("#token=")

    async def get(self, path: str) -> Any:
        async with self._session.get(f"{self._address}api/{path}", headers=self._headers) as reply:
            return await reply.json()

    async def post(self, path: str, body: dict[str, str]) -> tuple[int, Any]:
        async with self._session.post(f"{self._address}api/{path}", json=body, headers=self._headers) as reply:
            return reply.status, await reply.json()

    async def without_token(self, path: str) -> tuple[int, Any]:
        async with self._session.get(f"{self._address}api/{path}") as reply:
            return reply.status, await reply.json()

    @property
    def _headers(self) -> dict[str, str]:
        return {"X-Exactlyonce-Console": self._token}


@asynccontextmanager
async def console(folder: Path, emulator: RunningEmulator, *arguments: str) -> AsyncIterator[Asking]:
    """The command, run by somebody who is logged in."""
    (folder / "function_app.py").write_text(APP)
    login = folder / "az"
    login.write_text(LOGIN.replace("TOKEN", TOKEN))
    login.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COSMOS", "AZURE", "Azure"))}
    settings = {
        "COSMOS__accountEndpoint": emulator.endpoint,
        "COSMOS__database": "house",
        "AzureWebJobsStorage": f"AccountName=a;AccountKey={ACCOUNT_KEY};QueueEndpoint=http://127.0.0.1:9/a;",
        "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential",
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = "import sys; from exactlyonce_dev.account import main; sys.path.insert(0, ''); sys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", command, *arguments),
        cwd=folder,
        env=kept | settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        assert address.startswith("http://127.0.0.1:"), (await process.stderr.read()).decode()
        async with ClientSession() as session:
            yield Asking(session, address)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
        said = (await process.stderr.read()).decode()
        assert TOKEN not in said
        assert "Traceback" not in said, said
    finally:
        if process.returncode is None:
            process.kill()


async def test_it_reads_only_unless_somebody_asks_for_more(account: RunningEmulator, tmp_path: Path) -> None:
    async with console(tmp_path, account) as page:
        assert await page.get("about") == {"place": "house in 127.0.0.1", "acts": False, "dev": False}
        found = await page.get("parked")
        assert [(item["reason"], item["count"]) for item in found["groups"]] == [("it is red", 2), ("it is blue", 1)]
        status, refused = await page.post("discard", {"type": "wall", "reason": "it is red"})
        assert (status, refused["error"][:28]) == (403, "This console only looks. Sta")
        assert len((await page.get("parked"))["messages"]) == 3
        assert (await page.get("entities?type=wall"))["entities"] == []
        assert TOKEN not in json.dumps(found)
        assert (await page.without_token("parked"))[0] == 403


async def test_it_acts_on_many_as_the_commands_do(account: RunningEmulator, tmp_path: Path) -> None:
    async with console(tmp_path, account, "--act") as page:
        assert await page.post("discard", {"type": "wall", "reason": "it is red"}) == (
            200,
            {"counts": {"discarded": 2}, "problems": []},
        )
        (left,) = (await page.get("parked"))["messages"]
        assert left["message"] == "test/m-3"
