"""Backstage: an application in memory, as the console asks for it, and what its witness tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector, web
from aiohttp.test_utils import TestClient, TestServer
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from azure.functions import FunctionApp
from azure.functions.queue import QueueMessage

from exactlyonce import Context, Destination, Entity, Outbox, message
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.errors import HandlerError, KeyReused, TryAgainLater
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.records.outbox import Output
from exactlyonce.testing.in_memory import MemoryAccounts, Queues
from exactlyonce.testing.interruptions import Losses
from exactlyonce.testing.wire import MemoryWire
from exactlyonce.values.envelope import Envelope, message_hash
from exactlyonce.values.frozen_json import Json
from exactlyonce_dev.backstage import Backstage
from exactlyonce_dev.witness import LONGEST_BODY, End, Event, Witness

COMMIT = "Commit: save the entity if it is unchanged"
FIRST = message_hash("test/m-1")
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
        clock = SystemClock()
        wire = MemoryWire({}, clock)
        accounts = MemoryAccounts(settings, *given, clock, losses=Losses(), queues=queues, wire=wire, blobs=False)
        self.once = ExactlyOnce(given[0], destinations=given[1], settings=settings, accounts=accounts)
        self.backstage = Backstage([self.once])
        told, destination = self.told.append, self.backstage.destination
        self.backstage.witness = Witness(told, destination, lambda: datetime.now(UTC), self._end)
        self.once.observe(self.backstage.witness)

    @staticmethod
    def _end() -> None:
        raise asyncio.CancelledError  # As the end of the process, to all that is under way.

    async def deliver(self, colour: str, id: str = "m-1") -> None:
        await self.once.process(self.queued(colour, id), walls)

    async def leave_owing(self) -> None:
        """Kill the process between its commit and what it publishes then."""
        assert self.backstage.witness is not None
        self.backstage.witness.ends.append(End("after", "SaveEntity", COMMIT, "wall"))
        with suppress(asyncio.CancelledError):
            await self.deliver("red")

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
        (mark,), (entry,) = shown["ledger"]["marks"], shown["ledger"]["outbox"]
        assert (mark["hash"], mark["kind"], mark["timed"], mark["sent"]) == (FIRST, "f", False, ["others"])
        assert (entry["hash"], entry["to"], entry["owes"]) == (FIRST, ["others"], False)
        assert shown["ledger"]["owes"] == []


async def test_marks_that_have_left_the_ledger_are_in_pages(app: App, client: Client) -> None:
    for number in range(34):
        await app.deliver("red", f"m-{number}")
    shown = await asked(client, "/entity?type=wall&key=w")
    assert (shown["ledger"]["version"], shown["ledger"]["left"], len(shown["ledger"]["marks"])) == (34, 20, 14)
    assert [item["id"] for item in shown["belongings"] if item["kind"] == "page"] == ["page:1"]


async def test_an_absent_thing_is_told_in_a_sentence(client: Client) -> None:
    assert "no entity type 'roof'; there are: wall." in (await asked(client, "/entities?type=roof"))["error"]
    assert "is no key of an entity" in (await asked(client, "/entity?type=wall&key=["))["error"]
    assert (await asked(client, "/requeue", {}))["counts"] == {"not parked any more": 1}
    assert (await client.post("/again", json={})).status == 400


async def test_a_store_that_does_not_answer_is_no_fault_of_the_request(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def query(*_: object) -> None:
        raise TryAgainLater("The store does not answer.")

    monkeypatch.setattr(ExactlyOnce, "query", query)
    reply = await client.get("/entities?type=wall")
    assert (reply.status, await reply.json()) == (503, {"error": "TryAgainLater: The store does not answer."})


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
    assert (one["type"], one["name"]) == ("wall", "wall/w")
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
    assert not any("maintained" in item for item in app.told)  # Nobody owed it.


async def test_an_output_that_the_sweeper_publishes_is_told(app: App) -> None:
    await app.leave_owing()
    maintenance, ref = (await app.once.operator()).maintenance, walls.ref("w")
    work = maintenance.work(walls, ref)
    await maintenance.run(ref, lambda memory: walls.strategy.sweep(work, memory))
    (told,) = [item for item in app.told if "maintained" in item]
    assert (told["maintained"]["name"], told["output"]["destination"]) == ("wall/w", "others")


async def test_the_witness_tells_steps_with_the_reasons_of_the_protocol(app: App) -> None:
    await app.deliver("red")
    steps = [item["step"] for item in app.told if "step" in item]
    commit = next(step for step in steps if step["effect"] == "SaveEntity")
    assert commit["title"] == COMMIT
    assert commit["why"].startswith("The save also drops leaving marks and paid entries")
    assert (commit["kind"], commit["reply"], commit["look"], commit["attempt"]) == ("write", "applied", "good", 1)
    published = next(step for step in steps if step["effect"] == "Publish")
    assert (published["reply"], published["sends"]) == ("1 accepted by others", 1)
    assert [step["reply"] for step in steps[:2]] == ["there is no such document", "it has no page"]
    assert all(step["title"] != step["effect"] for step in steps)


async def test_the_witness_tells_outcomes_outputs_and_reasons(app: App) -> None:
    await app.deliver("red")
    await app.deliver("red")
    await app.park()
    ends = [item for item in app.told if "outcome" in item]
    assert [end["outcome"] for end in ends] == ["processed", "duplicate dropped", "failed"]
    assert [(item["delivery"], item["output"]["destination"]) for item in app.told if "output" in item] == [
        (1, "others")
    ]
    assert ends[2]["reason"].startswith("HandlerFailed: ")
    assert "in paint" in ends[2]["trace"] or "apps.py" in ends[2]["trace"], ends[2]
    assert ends[0]["trace"] is None
    assert [item["destination"] for item in app.told if "envelope" in item] == ["walls"] * 3
    (parked,) = [item for item in app.told if "parked" in item]
    assert parked["parked"] == "test/bad"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_process_is_killed_at_the_step_that_somebody_chose(app: App, client: Client, when: str) -> None:
    end = {"when": when, "effect": "SaveEntity", "title": COMMIT, "type": "wall"}
    assert await asked(client, "/end", end) == {}
    assert (await client.post("/end", json=end | {"when": "never"})).status == 400
    with pytest.raises(asyncio.CancelledError):
        await app.deliver("red")
    killed = next(item["killed"] for item in app.told if "killed" in item)
    assert (killed["when"], killed["effect"]) == (when, "SaveEntity")
    saved = [item["step"]["effect"] for item in app.told if "step" in item].count("SaveEntity")
    assert saved == (when == "after")


async def test_unfinished_entities_are_listed_with_what_they_owe_and_books_with_what_they_prove(
    app: App, client: Client
) -> None:
    await app.leave_owing()
    found = await asked(client, "/unfinished")
    (entity,), (book,) = found["unfinished"], found["books"]
    (owed,) = entity.pop("owes")
    assert (owed["hash"], owed["to"]) == (FIRST, ["others"])
    known = {"type": "wall", "key": '["wall","w","w"]', "name": "wall/w"}
    assert entity == known | {"keeps": [], "awaits": [], "holds": []}
    assert (len(book["id"]), book["used"], book["open"], book["stuck"]) == (20, 0, [], [])


async def test_outputs_that_this_process_has_published_are_not_owed_though_its_book_is_old(
    app: App, client: Client
) -> None:
    await app.deliver("red")
    assert (await asked(client, "/unfinished"))["unfinished"] == []


async def test_a_backstage_that_only_looks_does_nothing_else(app: App) -> None:
    await app.park()
    async with TestClient(TestServer(Backstage([app.once], acts=False).server())) as client:
        (one,) = (await asked(client, "/parked"))["messages"]
        for action in ("requeue", "discard", "again", "end"):
            reply = await client.post(f"/{action}", json={"entity": one["entity"], "message": one["message"]})
            assert reply.status == 403
        assert len((await asked(client, "/parked"))["messages"]) == 1


async def test_a_large_body_is_not_told(app: App) -> None:
    await app.deliver("r" * LONGEST_BODY)
    assert app.told[0]["envelope"] is None


async def test_only_its_owner_reaches_the_socket_file_which_is_made_anew(app: App, tmp_path: Path) -> None:
    socket = tmp_path / "backstage"
    for _ in range(2):
        async with app.backstage.serving(socket), ClientSession(connector=UnixConnector(str(socket))) as session:
            assert (await session.get("http://app/types")).status == 200


@pytest.mark.parametrize(("substatus", "status"), [(1003, 425), (None, 425), (1002, 503)])
async def test_a_container_that_is_not_made_yet_is_no_error_and_a_replica_that_lags_is(
    client: Client, monkeypatch: pytest.MonkeyPatch, substatus: int | None, status: int
) -> None:
    cause = CosmosResourceNotFoundError()  # type: ignore[no-untyped-call]
    cause.sub_status = substatus

    async def missing(*_: object) -> None:
        raise TryAgainLater("The container could not be searched.") from cause

    monkeypatch.setattr("exactlyonce_dev.backstage.selected", missing)
    reply = await client.get("/parked")
    assert reply.status == status
    sentence = "TryAgainLater: The container could not be searched."
    assert (await reply.json())["error"] == ("The containers are not made yet." if status == 425 else sentence)


async def test_a_request_is_told_with_its_answer_the_states_and_a_refusal_of_its_key(app: App) -> None:
    app.once.sweep_on(FunctionApp())
    for colour, fingerprint in (("red", "1"), ("blue", "2")):
        with suppress(KeyReused):
            await app.once.ask(walls, Paint("w", colour), key="k", fingerprint=fingerprint, source="test")
    rows = [{**event} for event in app.told if "answer" in event or "refused" in event]
    assert rows == [{"delivery": 1, "answer": {"status": 204, "body": None}}, {"delivery": 2, "refused": "KeyReused"}]
    first, second = (event for event in app.told if event.get("outcome"))
    assert first["after"] == second["after"] == {"id": "w", "wall": "w", "colour": "red"}
    assert next(event for event in app.told if "handled" in event)["before"] is None
