"""Lost messages, asked for anew and sent again: on the function host, Azurite and the local Cosmos."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import aiohttp
import azure.functions as func
import pytest
from azure.cosmos.aio import CosmosClient
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from demo.stack import create_containers
from exactlyonce import ConfigurationError, Envelope, Rebuild, Resequencer, TryAgainLater, VersionStream
from exactlyonce.errors import InvalidMessage
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from exactlyonce.values.frozen_json import Json
from function_host import Point
from function_host.azurite import Azurite
from handlers.leader_board import Score, boards, leader_board
from handlers.shooting_range import ranges, shooting_range
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.history import AcceptedWrite
from tests.acceptance.hosting import Passed, hosted
from tests.acceptance.test_bad_input import assert_logged

pytestmark = pytest.mark.acceptance

QUEUES = {"shooting-range": "shots", "leader-board": "way", "board": "board"}


class Club:
    """The sample's entities, the games with streams. What they send to the board lies on the way until somebody brings it."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator) -> None:
        self._storage = storage
        self.name = f"club-{uuid4().hex[:12]}"
        self.cosmos = cosmos
        self.ranges = ranges.using(VersionStream())
        rebuild = Rebuild(of=self.ranges, through="shooting-range")
        self.boards = boards.using(Resequencer(gap_timeout=timedelta(0), on_gap=rebuild))
        names = {name: f"{self.name}-{queue}" for name, queue in QUEUES.items() if name != "board"}
        settings = {
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": self.name,
            "EXACTLYONCE__destinations": names,
        }
        self.once = ExactlyOnce(
            [self.ranges, self.boards],
            destinations=(shooting_range, leader_board),
            settings=Settings.model_validate(settings),
            storage=StorageConnection(storage.connection_string),
        )
        self.passed = Passed()
        self.app = self._app()

    def _app(self) -> func.FunctionApp:
        app = func.FunctionApp()

        @app.queue_trigger(arg_name="message", queue_name=f"{self.name}-shots", connection="AzureWebJobsStorage")
        async def shots(message: func.QueueMessage) -> None:
            await self.once.process(message, self.ranges)

        @app.queue_trigger(arg_name="message", queue_name=f"{self.name}-board", connection="AzureWebJobsStorage")
        async def outcomes(message: func.QueueMessage) -> None:
            await self.once.process(message, self.boards)

        @app.route("mending/{game}", methods=["POST"])
        async def mend(req: func.HttpRequest) -> func.HttpResponse:
            await self.once.tend(self.boards, req.route_params["game"])
            return func.HttpResponse(status_code=204)

        @app.route("again/{game}/{first}/{last}", methods=["POST"])
        async def again(req: func.HttpRequest) -> func.HttpResponse:
            game, first, last = (req.route_params[name] for name in ("game", "first", "last"))
            return func.HttpResponse(str(await self.once.replay(self.ranges, game, int(first), int(last))))

        return app

    async def put(self, queue: str, *messages: Envelope) -> None:
        """Put messages into a queue, and wait until they were handled, or put aside."""
        before = self.passed.points[Point.HANDLED] + self.passed.points[Point.COPIED]
        async with self.queue(queue) as client:
            for message in messages:
                await client.send_message(message.to_json().text.encode())
        await self.passed.until(before + len(messages), Point.HANDLED, Point.COPIED)

    async def take(self, queue: str) -> list[Envelope]:
        """All messages of a queue, which are gone from it then."""
        async with self.queue(queue) as client:
            found = [message async for message in client.receive_messages(messages_per_page=32)]
            for message in found:
                await client.delete_message(message)
        return [Envelope.read(message.content) for message in found]

    def written(self) -> list[AcceptedWrite]:
        """All writes so far, but those of books, which processes write when it is time."""
        history = self.cosmos.history(self.name)
        return [item for item in history if item.document is None or item.document.get("kind") != "book"]

    async def score(self, game: str = "g-1") -> Score | None:
        """A game's line on the board."""
        return await self.once.read(self.boards, game)

    def queue(self, name: str) -> QueueClient:
        return QueueClient.from_connection_string(
            self._storage.connection_string,
            f"{self.name}-{name}",
            message_encode_policy=BinaryBase64EncodePolicy(),
            message_decode_policy=BinaryBase64DecodePolicy(),
        )


@pytest.fixture
async def club(storage: Azurite, cosmos: RunningEmulator) -> AsyncIterator[tuple[Club, aiohttp.ClientSession]]:
    club = Club(storage, cosmos)
    create_containers(cosmos, club.name)
    for queue in QUEUES.values():
        async with club.queue(queue) as client:
            await client.create_queue()
    async with hosted(club.app, storage, club.passed, 1) as host, aiohttp.ClientSession(host.http) as http:
        yield club, http
    await club.once.close()


Running = tuple[Club, aiohttp.ClientSession]


def shot(number: int, position: int = 0) -> Envelope:
    return Envelope(
        "web",
        f"s-{number}",
        "shooting-range.fire-at",
        Json.of({"game_id": "g-1", "position": position}),
        datetime.now(timezone.utc),
    )


def request(**data: Any) -> Envelope:
    return Envelope("board/g-1", "replay-1", "exactlyonce.replay", Json.of(data))


def whole(**changes: Any) -> dict[str, Any]:
    asked = {"source": "range/g-1", "channel": "c1", "first": 1, "last": 2, **changes}
    return {name: value for name, value in asked.items() if value is not None}


async def test_a_lost_message_is_asked_for_sent_again_and_counted_in_its_place(club: Running) -> None:
    app, http = club
    await app.put("shots", *(shot(number) for number in range(4)))
    outcomes = sorted(await app.take("way"), key=lambda item: item.extensions)
    assert len(outcomes) == 4
    first, lost, *later = outcomes
    await app.put("board", first, *later)
    assert await app.score() == Score(hits=1, streak=1, best=1)
    handled = app.passed.points[Point.HANDLED]
    async with http.post("/api/mending/g-1") as reply:
        assert reply.status == 204
    await app.passed.until(handled + 1)
    assert await app.take("way") == [lost]
    await app.put("board", lost)
    assert await app.score() == Score(hits=4, streak=4, best=4)
    async with http.post("/api/mending/g-1") as reply:
        assert reply.status == 204
    assert await app.take("shots") == []


async def test_versions_are_sent_again_as_they_were_and_receivers_drop_duplicates(club: Running) -> None:
    app, http = club
    await app.put("shots", *(shot(number, number % 2) for number in range(30)))
    outcomes = await app.take("way")
    await app.put("board", *outcomes)
    score = await app.score()
    written = app.written()
    async with http.post("/api/again/g-1/1/29") as reply:
        assert await reply.text() == "29"
    again = await app.take("way")
    numbered = sorted(outcomes, key=lambda outcome: outcome.extensions)
    assert sorted(again, key=lambda item: item.extensions) == numbered[:29]
    await app.put("board", *again)
    assert await app.score() == score
    assert app.written() == written


async def test_only_a_stream_can_send_again_and_only_a_read_model_has_gaps(club: Running) -> None:
    app, _ = club
    with pytest.raises(ConfigurationError, match="Entity\\('board'\\) keeps no version stream"):
        await app.once.replay(app.boards, "g-1", 1, 2)
    with pytest.raises(ConfigurationError, match="Entity\\('range'\\) is not a resequenced read model"):
        await app.once.tend(app.ranges, "g-1")


WRONG: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "empty": ("shots", {}, InvalidMessage, "is no request to send again: source: Field required"),
    "without a number": ("shots", whole(last=None), InvalidMessage, "last: Field required"),
    "with a text for a number": ("shots", whole(first="1"), InvalidMessage, "first: Input should be a valid integer"),
    "with more than there is": ("shots", whole(extra=1), InvalidMessage, "extra: Unexpected keyword argument"),
    "for another type": (
        "shots",
        whole(source="board/g-1"),
        InvalidMessage,
        "'board/g-1' is not the source of an entity",
    ),
    "for no source at all": (
        "shots",
        whole(source="a/b/c/d"),
        InvalidMessage,
        "is not the source of an entity of type",
    ),
    "for a game that never was": ("shots", whole(source="range/g-9"), TryAgainLater, "the entity does not exist"),
    "for what keeps no stream": ("board", whole(source="board/g-1"), ConfigurationError, "keeps no version stream"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_request_that_cannot_be_answered_is_put_aside(
    case: str, club: Running, caplog: pytest.LogCaptureFixture
) -> None:
    app, _ = club
    queue, data, error, words = WRONG[case]
    await app.put("shots", shot(1))
    sent = await app.take("way")
    written = app.written()
    await app.put(queue, request(**data))
    assert await app.take(f"{queue}-poison") == [request(**data)]
    assert app.written() == written
    assert (len(sent), await app.take("way")) == (1, [])
    assert_logged(caplog, error, words)
    assert json.dumps(data) not in caplog.text


async def test_a_request_for_what_clean_up_has_taken_is_put_aside(
    club: Running, caplog: pytest.LogCaptureFixture
) -> None:
    app, _ = club
    await app.put("shots", shot(1))
    (outcome,) = await app.take("way")
    async with CosmosClient(app.cosmos.endpoint, app.cosmos.key) as client:
        games = client.get_database_client(app.name).get_container_client("games")
        entries = [item async for item in games.query_items("SELECT c.id FROM c WHERE IS_DEFINED(c._kind)")]
        assert len(entries) == 1
        await games.delete_item(entries[0]["id"], "g-1")
    channel = dict(outcome.extensions)["channel"]
    asked = request(**whole(channel=channel, last=1))
    await app.put("shots", asked)
    assert await app.take("shots-poison") == [asked]
    words = f"asks for numbers 1 to 1 that entity range/g-1 sent in channel {channel}, but its stream has none"
    assert_logged(caplog, InvalidMessage, words)
