"""Backstage: an application in memory, as the console asks for it, and what its witness tells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector, web
from aiohttp.test_utils import TestClient, TestServer
from azure.functions.queue import QueueMessage

from exactlyonce import Context, Destination, Entity, Outbox, message
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.errors import HandlerError
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.records.outputs import Output
from exactlyonce.testing.in_memory import MemoryAccounts, Queues
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce_dev.backstage import Backstage
from exactlyonce_dev.witness import LONGEST_BODY, Event, Witness

Client = TestClient[web.Request, web.Application]


@message("console.paint")
@dataclass
class Paint:
    wall: str
    colour: str


@message("console.painted")
@dataclass
class Painted:
    wall: str


@dataclass
class Wall:
    colour: str = "white"


walls = Entity("wall", state=Wall, container="walls", partition_key="/wall", strategy=Outbox())
to_walls = Destination("walls", receives=(Paint,), to=walls)
to_others = Destination("others", receives=(Painted,))


@walls.handles(Paint, key=lambda paint: paint.wall)
def paint(state: Wall, paint: Paint, context: Context) -> Wall:
    if paint.colour == "no":
        raise RuntimeError("there is no such colour")
    context.announce(Painted(paint.wall))
    return Wall(paint.colour)


class App:
    """An application in memory, its queues, and what its witness told."""

    def __init__(self) -> None:
        settings = Settings.model_construct(account_endpoint="memory", database="memory", delivery_timeout=5.0)
        self.sent: list[tuple[str, Output]] = []
        self.told: list[Event] = []
        queues = Queues(lambda address, output: self.sent.append((address, output)))
        given = (walls,), (to_walls, to_others)
        accounts = MemoryAccounts(settings, *given, SystemClock(), queues, blobs=False)
        self.once = ExactlyOnce(given[0], destinations=given[1], settings=settings, accounts=accounts)
        self.backstage = Backstage([self.once])
        self.once.observe(Witness(self.told.append, self.backstage.destination, lambda: datetime.now(UTC)))

    async def deliver(self, colour: str, id: str = "m-1") -> None:
        await self.once.process(self.queued(colour, id), walls)

    async def park(self, id: str = "bad") -> None:
        with suppress(HandlerError):
            await self.deliver("no", id)
        await self.once.settle(self.queued("no", id), walls, queue="walls")

    @staticmethod
    def envelope(colour: str, id: str) -> Envelope:
        data = Json.of({"wall": "w", "colour": colour})
        return Envelope("test", id, "console.paint", data, datetime.now(UTC))

    def queued(self, colour: str, id: str) -> QueueMessage:
        body = self.envelope(colour, id).to_json().text
        return QueueMessage(id=id, body=body, dequeue_count=1)  # type: ignore[no-untyped-call]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    async with TestClient(TestServer(app.backstage.server())) as client:
        yield client


async def asked(client: Client, path: str, body: object = None) -> Any:
    reply = await (client.get(path) if body is None else client.post(path, json=body))
    return await reply.json()


async def test_types_and_destinations_are_those_of_the_app(client: Client) -> None:
    assert await asked(client, "/types") == {
        "types": [{"name": "wall", "container": "walls", "strategy": "Outbox"}],
        "destinations": ["others", "walls"],
    }


async def test_entities_are_listed_and_shown_with_what_the_ledger_knows(app: App, client: Client) -> None:
    await app.deliver("red")
    (listed,) = (await asked(client, "/entities?type=wall"))["entities"]
    assert (listed["name"], listed["state"]) == ("wall/w", {"colour": "red"})
    for key in ("w", '["wall","w","w"]'):
        reply = await client.get("/entity", params={"type": "wall", "key": key})
        shown = await reply.json()
        assert shown["state"]["colour"] == "red"
        assert (shown["ledger"]["version"], shown["ledger"]["protocol"]) == (1, "outbox")
        assert [(one["message"], one["outputs"]) for one in shown["ledger"]["entries"]] == [("test/m-1", ["others"])]


async def test_what_is_not_there_is_told_in_a_sentence(client: Client) -> None:
    assert "no entity type 'roof'; there are: wall." in (await asked(client, "/entities?type=roof"))["error"]
    assert "is no key of an entity" in (await asked(client, "/entity?type=wall&key=["))["error"]
    assert (await asked(client, "/requeue", {}))["counts"] == {"not parked any more": 1}
    assert (await client.post("/again", json={})).status == 400


async def test_parked_messages_are_grouped_requeued_and_discarded(app: App, client: Client) -> None:
    for id in ("bad-1", "bad-2", "bad-3"):
        await app.park(id)
    found = await asked(client, "/parked")
    (group,) = found["groups"]
    assert (group["type"], group["count"]) == ("wall", 3)
    first = found["messages"][0]
    one = {"entity": first["entity"], "message": first["message"]}
    assert await asked(client, "/discard", one) == {"counts": {"discarded": 1}, "problems": []}
    rest = {"type": "wall", "reason": group["reason"]}
    assert await asked(client, "/requeue", rest) == {"counts": {"sent": 2}, "problems": []}
    assert [address for address, _ in app.sent] == ["walls", "walls"]
    assert (await asked(client, "/parked"))["messages"] == []


async def test_a_message_is_requeued_to_the_queue_that_is_chosen(app: App, client: Client) -> None:
    await app.park()
    (one,) = (await asked(client, "/parked"))["messages"]
    wanted = {"entity": one["entity"], "message": one["message"]}
    problem = await asked(client, "/requeue", {**wanted, "destination": "nowhere"})
    assert "There is no destination 'nowhere'" in problem["problems"][0]
    assert (await asked(client, "/requeue", {**wanted, "destination": "others"}))["counts"] == {"sent": 1}
    assert [address for address, _ in app.sent] == ["others"]


async def test_a_message_is_sent_again_under_its_identity(app: App, client: Client) -> None:
    await app.deliver("red")
    envelope = app.told[0]["envelope"]
    assert await asked(client, "/again", {"type": "wall", "envelope": envelope}) == {"destination": "walls"}
    address, output = app.sent[-1]
    assert (address, output.envelope.value) == ("walls", envelope)


async def test_the_witness_tells_outcomes_outputs_and_reasons(app: App) -> None:
    await app.deliver("red")
    await app.deliver("red")
    await app.park()
    ends = [one for one in app.told if "outcome" in one]
    assert [one["outcome"] for one in ends] == ["processed", "duplicate dropped", "failed"]
    assert [one["destination"] for one in ends[0]["outputs"]] == ["others"]
    assert ends[2]["steps"][-1].startswith("HandlerFailed: ")
    assert [one["destination"] for one in app.told if "envelope" in one] == ["walls"] * 3
    (parked,) = [one for one in app.told if "parked" in one]
    assert parked["parked"] == "test/bad"


async def test_a_large_body_is_not_told(app: App) -> None:
    await app.deliver("r" * LONGEST_BODY)
    assert app.told[0]["envelope"] is None


async def test_only_its_owner_reaches_the_socket_file_which_is_made_anew(app: App, tmp_path: Path) -> None:
    socket = tmp_path / "backstage"
    for _ in range(2):
        async with app.backstage.serving(socket), ClientSession(connector=UnixConnector(str(socket))) as session:
            assert (await session.get("http://app/types")).status == 200
