"""The console's server: what it refuses, what it shows without the app, and what it breaks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from exactlyonce.errors import ConfigurationError
from exactlyonce_dev.console.server import Console, Stage
from exactlyonce_dev.story import Story
from exactlyonce_dev.trial import Trials
from exactlyonce_dev.trouble import KINDS, Trouble
from local_cosmos.inprocess import RunningEmulator, running_emulator

Client = TestClient[web.Request, web.Application]


class Killed:
    """Counts kills of a process that may run."""

    def __init__(self) -> None:
        self.runs = True
        self.times = 0

    def __call__(self) -> bool:
        self.times += self.runs
        return self.runs


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def killed() -> Killed:
    return Killed()


@pytest.fixture
async def console(story: Story, killed: Killed, tmp_path: Path) -> AsyncIterator[Client]:
    with running_emulator() as emulator:
        trouble = Trouble(emulator, "shop")
        stage = Stage(
            story, trouble, killed, lambda: "killed" if killed.times else "runs", Trials(tmp_path, os.environ)
        )
        server = Console(tmp_path / "nobody-listens", "a shop", stage=stage).server()
        async with TestClient(TestServer(server)) as client:
            yield client


@pytest.mark.parametrize("path", ["/", "/console.css", "/console.js", "/dom.js", "/messages.js", "/panels.js"])
async def test_the_page_loads_nothing_from_elsewhere_and_in_no_frame(console: Client, path: str) -> None:
    reply = await console.get(path)
    assert reply.status == 200
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "://" not in await reply.text()


@pytest.mark.parametrize("host", ["rebound.example:7072", "192.168.1.5:7072", "localhost.example", "[", ""])
async def test_a_host_that_is_not_this_machine_is_refused(console: Client, host: str) -> None:
    reply = await console.get("/api/messages", headers={"Host": host})
    assert reply.status == 403
    assert await reply.json() == {"error": "The console is for this machine only: open it as http://127.0.0.1."}


@pytest.mark.parametrize("host", ["localhost:7072", "127.0.0.1", "[::1]:7072"])
async def test_the_names_of_this_machine_are_answered(console: Client, host: str) -> None:
    assert (await console.get("/api/messages", headers={"Host": host})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_request_of_another_page_is_refused(console: Client, killed: Killed, headers: dict[str, str]) -> None:
    assert (await console.post("/api/kill", json={}, headers=headers)).status == 403
    assert (await console.get("/api/messages", headers=headers)).status == 403
    assert killed.times == 0


async def test_a_form_of_another_page_cannot_be_sent_here(console: Client, killed: Killed) -> None:
    assert (await console.post("/api/kill", data={"any": "form"})).status == 403
    assert killed.times == 0


async def test_the_page_kills_the_app_where_it_runs(console: Client, killed: Killed) -> None:
    own = {"Origin": f"http://{console.host}:{console.port}", "Sec-Fetch-Site": "same-origin"}
    assert (await console.post("/api/kill", json={}, headers=own)).status == 200
    killed.runs = False
    assert (await console.post("/api/kill", json={}, headers=own)).status == 503
    assert killed.times == 1


async def test_an_app_that_does_not_run_is_told_in_a_sentence(console: Client) -> None:
    reply = await console.get("/api/parked")
    assert reply.status == 503
    assert (await reply.json())["error"].startswith("The app does not run at present")
    assert (await console.get("/api/nothing-like-it")).status == 404


async def test_messages_come_again_only_when_they_changed(console: Client, story: Story) -> None:
    told = {"version": "0", "app": "runs"}
    assert await (await console.get("/api/messages")).json() == told | {"messages": []}
    assert await (await console.get("/api/messages?version=0")).json() == told | {"messages": None}
    story.hear({"delivery": 1, "envelope": None})
    assert len((await (await console.get("/api/messages?version=0")).json())["messages"]) == 1


async def test_trouble_is_made_listed_and_ended(console: Client) -> None:
    for kind in KINDS:
        assert (await console.post("/api/trouble", json={"kind": kind, "container": "orders"})).status in (200, 409)
    armed = (await (await console.get("/api/trouble")).json())["armed"]
    assert {item["text"] for item in armed} >= {KINDS["lost-applied"], KINDS["lost-not-applied"], KINDS["throttle"]}
    assert {item["container"] for item in armed} == {"orders"}
    reply = await console.post("/api/trouble", json={"kind": "fire"})
    assert (await reply.json())["error"].startswith("There is no trouble 'fire'; there are: lost-applied")


async def test_lag_is_known_until_it_is_ended() -> None:
    with running_emulator() as emulator:
        _create(emulator)
        trouble = Trouble(emulator, "shop")
        await trouble.make("lag", "orders")
        assert await trouble.armed() == [{"text": KINDS["lag"], "container": "orders", "hit": None, "of": None}]
        await trouble.make("throttle", None)
        await trouble.end()
        assert await trouble.armed() == []
        with pytest.raises(ConfigurationError, match="no trouble 'fire'"):
            await trouble.make("fire", None)


def _create(emulator: RunningEmulator) -> None:
    from azure.cosmos import CosmosClient, PartitionKey

    with CosmosClient(emulator.endpoint, emulator.key) as client:
        client.create_database("shop").create_container("orders", PartitionKey("/order"))


async def test_a_console_with_a_token_answers_only_who_brings_it(tmp_path: Path) -> None:
    console = Console(tmp_path / "nobody-listens", "an account", acts=False, token="t-1")  # Of this test.
    async with TestClient(TestServer(console.server())) as client:
        assert (await client.get("/")).status == 200
        for token in ({}, {"X-Exactlyonce-Console": "t-2"}):
            reply = await client.get("/api/about", headers=token)
            assert reply.status == 403
            assert "it ends with a token" in (await reply.json())["error"]
        reply = await client.get("/api/about", headers={"X-Exactlyonce-Console": "t-1"})
        assert await reply.json() == {"place": "an account", "acts": False, "dev": False}
        assert (await client.get("/api/messages", headers={"X-Exactlyonce-Console": "t-1"})).status == 404


async def test_the_address_of_a_console_has_its_token_where_no_log_gets_it(tmp_path: Path) -> None:
    console = Console(tmp_path / "nobody-listens", "an account", token="t-1")  # Of this test.
    async with console.serving(0) as address:
        assert address.startswith("http://127.0.0.1:")
        assert address.endswith("/#token=t-1")


async def test_the_page_is_told_the_state_of_the_process(console: Client) -> None:
    assert (await (await console.get("/api/messages")).json())["app"] == "runs"
    assert (await console.post("/api/kill", json={})).status == 200
    assert (await (await console.get("/api/messages?version=0")).json())["app"] == "killed"


async def test_a_test_of_a_delivery_that_is_forgotten_is_refused(console: Client) -> None:
    reply = await console.post("/api/test", json={"id": "1.1"})
    assert reply.status == 409
    assert (await reply.json())["error"] == "This delivery is forgotten: only the latest are kept."
