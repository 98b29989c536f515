"""What is committed is published, what is given up is parked, whoever dies on the way; and what operators do: on processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timezone
from inspect import isawaitable
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from demo.hosts import Host
from demo.stack import APP, ROOT, create_containers
from exactlyonce import Envelope
from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.acceptance.hosting import SECONDS

pytestmark = pytest.mark.acceptance

QUEUES = ("shooting-range", "leader-board", "audience", "shooting-range-poison", "leader-board-poison")
ON_NO_TRIGGER = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("process_shooting_range", "process_leader_board")}
SILENCE = 15 * 60
"""Seconds after which the book of a process is silent, so that the sweeper searches for what the process owed."""
COMMITS = ("create", "replace", "batch")
SHOT = Envelope(
    "http", "k-1", "shooting-range.fire-at", Json.of({"game_id": "g-1", "position": 0}), datetime.now(timezone.utc)
)
GAME = '["range","g-1","g-1"]'


async def until(met: Callable[[], Any]) -> None:
    """Wait until a condition is met, which may have to be awaited."""
    async with asyncio.timeout(SECONDS):
        while True:
            is_met = met()
            if await is_met if isawaitable(is_met) else is_met:
                return
            await asyncio.sleep(0.05)


class Range:
    """The sample on hosts of its own, its queues and its database; and what an operator may do about it."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, logs: Path, strategy: str) -> None:
        self.cosmos, self.database = cosmos, f"push-{uuid4().hex}"
        self.http = ""
        self._storage = storage
        self._logs = logs
        self._hosts: list[Host] = []
        self.settings = {
            "AzureWebJobsStorage": storage.connection_string,
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": self.database,
            "EXACTLYONCE__sweepAfter": "0.001",
            "STRATEGY": strategy,
        }

    def start(self, **settings: str) -> None:
        """Start a host, and wait until it serves."""
        environment = {**os.environ, **self.settings, **settings}
        log = self._logs / f"host-{len(self._hosts)}.log"
        host = Host(["--app", str(APP), "--invisible", "1"], ROOT, environment, log)
        self._hosts.append(host)
        self.http = host.ready()["http"]

    def kill(self) -> None:
        """SIGKILL every host."""
        for host in self._hosts:
            host.kill()
            host.wait(SECONDS)
        self._hosts.clear()

    async def post(self, path: str, **request: Any) -> int:
        """Ask the youngest host."""
        async with aiohttp.ClientSession(self.http) as session, session.post(path, **request) as reply:
            return reply.status

    async def crashed_between_commit_and_publish(self) -> None:
        """Fire a shot, hold back the reply to its commit, and kill the host that waits for it."""
        self.start()
        rule = self.cosmos.add_fault(FaultRule(self.database, "games", COMMITS, when="after", action="hang", times=1))
        await self.put("shooting-range", SHOT.to_json().text.encode())
        await until(lambda: any(fault.rule_id == rule and fault.hit for fault in self.cosmos.faults()))
        self.kill()
        self.cosmos.remove_fault(rule)
        self.cosmos.advance_clock(SILENCE)

    def queue(self, name: str) -> QueueClient:
        return QueueClient.from_connection_string(
            self._storage.connection_string,
            name,
            message_encode_policy=BinaryBase64EncodePolicy(),
            message_decode_policy=BinaryBase64DecodePolicy(),
        )

    async def put(self, name: str, body: bytes) -> None:
        async with self.queue(name) as queue:
            await queue.send_message(body)

    async def peek(self, name: str) -> list[Envelope]:
        """The messages in a queue, which stay there."""
        async with self.queue(name) as queue:
            return [Envelope.read(message.content) for message in await queue.peek_messages(max_messages=32)]

    async def until_empty(self, name: str) -> None:
        """Wait until a queue has no message, not even an invisible one."""
        async with self.queue(name) as queue:

            async def is_empty() -> bool:
                return not (await queue.get_queue_properties()).approximate_message_count

            await until(is_empty)

    async def until_published(self) -> list[Envelope]:
        """What the audience gets, once there is anything."""
        await until(lambda: self.peek("audience"))
        return await self.peek("audience")

    async def give_up(self) -> None:
        """Move the shot to its poison queue, as a host does at the end of its patience."""
        async with self.queue("shooting-range") as queue:

            async def moved() -> bool:
                message = await queue.receive_message()
                if message is not None:
                    await self.put("shooting-range-poison", message.content)
                    await queue.delete_message(message)
                return message is not None

            await until(moved)

    @property
    def owing(self) -> bool:
        """Whether the newest document of a game has anything in its outbox, or a record beside one owes."""
        newest = {write.id: write.document for write in self.cosmos.history(self.database, "games")}
        documents = [document for document in newest.values() if document]
        return any("outbox" in item.get("_ledger", ()) or item.get("owing_since") for item in documents)

    @property
    def parked(self) -> dict[str, str]:
        """The parked messages and the reasons."""
        newest = {write.id: write.document for write in self.cosmos.history(self.database, "exactlyonce")}
        documents = [document for document in newest.values() if document and document["kind"] == "parked"]
        return {document["message"]: document["reason"] for document in documents}

    async def operate(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command of the operator's: its exit code and what it said."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "exactlyonce.cli", "--app", "demo.app.function_app", *arguments),
            cwd=ROOT,
            env={**os.environ, **self.settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
def own_storage() -> Iterator[Azurite]:
    """The sample's queues have fixed names, and other tests use them too."""
    with azurite() as running:
        yield running


@pytest.fixture
def strategy() -> str:
    return "outbox"


@pytest.fixture
async def sample(
    own_storage: Azurite, own_cosmos: RunningEmulator, tmp_path: Path, strategy: str
) -> AsyncIterator[Range]:
    sample = Range(own_storage, own_cosmos, tmp_path, strategy)
    create_containers(own_cosmos, sample.database)
    for name in QUEUES:
        async with sample.queue(name) as queue:
            await queue.create_queue()
    try:
        yield sample
    finally:
        sample.kill()


@pytest.mark.parametrize("strategy", ["outbox", "colocated"])
async def test_outputs_that_a_killed_process_owes_are_published_within_two_sweeps_though_its_message_never_returns(
    sample: Range,
) -> None:
    await sample.crashed_between_commit_and_publish()
    assert (await sample.peek("audience"), sample.owing) == ([], True)
    sample.start(**ON_NO_TRIGGER)
    for _ in range(2):
        assert await sample.post("/admin/functions/exactlyonce_sweep", json={}) == 202
    await until(lambda: not sample.owing)
    outcomes = await sample.until_published()  # Two sweeps at the same time may make a copy.
    assert {(outcome.id, outcome.type) for outcome in outcomes} == {(outcomes[0].id, "shooting-range.hit")}
    await sample.give_up()
    await sample.until_empty("shooting-range-poison")
    assert not sample.parked


@pytest.mark.parametrize("strategy", ["outbox", "colocated", "stream"])
async def test_a_message_that_was_processed_is_finished_from_its_poison_queue_and_disappears(sample: Range) -> None:
    await sample.crashed_between_commit_and_publish()
    sample.start(**ON_NO_TRIGGER)
    await sample.give_up()
    await sample.until_empty("shooting-range-poison")
    (outcome,) = await sample.until_published()
    assert outcome.type == "shooting-range.hit"
    assert not sample.parked


@pytest.mark.parametrize("strategy", ["outbox", "colocated", "stream"])
async def test_an_unprocessed_message_is_parked_until_an_operator_sends_it_again(sample: Range) -> None:
    sample.start()
    given_up = SHOT.once_more(UNEXPLAINED_ROUNDS)  # It would be returned to its queue before.
    await sample.put("shooting-range-poison", given_up.to_json().text.encode())
    await sample.until_empty("shooting-range-poison")
    assert sample.parked == {"http/k-1": "its queue gave it up; this process did not see why"}
    assert not await sample.peek("audience")
    code, said, _ = await sample.operate("requeue", GAME, "http/k-1", "--to", "shooting-range")
    assert (code, said) == (0, "sent as http/k-1\n")
    assert len(await sample.until_published()) == 1
    assert not sample.parked


async def test_an_operator_finds_what_nobody_can_read_and_discards_it(sample: Range) -> None:
    sample.start()
    await sample.put("shooting-range-poison", b"{ no envelope")
    await sample.until_empty("shooting-range-poison")
    code, said, _ = await sample.operate("parked", "--bodies")
    row = said.splitlines()[1].split()
    assert (code, row[1], row[4]) == (0, '["range","exactlyonce.put-aside"]', "MalformedMessage")
    assert "body_base64" in said
    code, _, told = await sample.operate("requeue", row[1], row[2], "--to", "shooting-range")
    assert (code, told.split(":")[0]) == (1, "MalformedMessage")
    assert (await sample.operate("discard", row[1], row[2], "--yes"))[0] == 0
    assert not sample.parked


async def test_an_operator_sees_what_is_owed_and_sweeps_it(sample: Range) -> None:
    await sample.crashed_between_commit_and_publish()
    code, said, _ = await sample.operate("inspect", "range", '["g-1", "g-1"]')
    assert code == 0
    assert "ledger   version 1, by outbox" in said
    assert "owing    since " in said
    assert message_hash("http/k-1") in said
    assert "target" not in said
    assert (await sample.operate("sweep", "--older-than", "0"))[:2] == (0, "1 swept, 0 failed, 0 left\n")
    assert len(await sample.until_published()) == 1
    assert not sample.owing


@pytest.mark.parametrize("strategy", ["stream"])
async def test_an_operator_lets_a_stream_send_again(sample: Range) -> None:
    await sample.crashed_between_commit_and_publish()
    code, said, _ = await sample.operate("replay", "range", "g-1", "1", "9")
    assert (code, said) == (0, "2 messages sent again\n")
    assert len(await sample.until_published()) == 1
