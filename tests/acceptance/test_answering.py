"""Requests to two hosts that are killed and whose store loses replies: one effect and one answer for each key."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64decode
from collections.abc import AsyncIterator
from random import Random
from typing import Final

import aiohttp
import pytest

from exactlyonce.records.ledger import LEDGER
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.acceptance.answering_hosts import Hosts
from tests.acceptance.hosting import SECONDS

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]
REQUESTS: Final = int(os.environ.get("ANSWERING_REQUESTS", "60"))
KILLS: Final = 3
COUNTERS: Final = 4


@pytest.fixture
async def hosts(storage: Azurite, cosmos: RunningEmulator) -> AsyncIterator[Hosts]:
    found = Hosts(storage, cosmos)
    try:
        await found.open()
        yield found
    finally:
        for host in found.hosts:
            await host.kill()


class Client:
    """A client that repeats each request until it has an answer, and once more for certain.

    Attributes:
        answers: status code, headers and body that each key was given, without what tells a retry.
    """

    def __init__(self, hosts: Hosts, random: Random) -> None:
        self._hosts = hosts
        self._random = random
        self.answers: dict[int, set[tuple[int, str | None, bytes]]] = {}
        self.trouble = 0
        self._more = asyncio.Event()

    async def until(self, keys: int) -> None:
        """Wait until so many keys have an answer."""
        while len(self.answers) < keys:
            self._more.clear()
            await self._more.wait()

    async def send(self, http: aiohttp.ClientSession, number: int, times: int = 2) -> None:
        """Send a request, until it was answered so many times."""
        headers = {"Idempotency-Key": f'"k-{number}"'}
        answered = 0
        while answered < times:
            host = self._random.choice(self._hosts.hosts)
            address = f"{host.address}/api/counters/c-{number % COUNTERS}"
            try:
                async with http.post(address, json={"amount": number}, headers=headers) as reply:
                    body = await reply.read()
            except aiohttp.ClientError:
                self.trouble += 1
                await asyncio.sleep(0.1)
                continue
            if reply.status == 503:
                assert reply.content_type == "application/problem+json"
                assert reply.headers["Retry-After"]
                self.trouble += 1
                continue
            self.answers.setdefault(number, set()).add((reply.status, reply.headers.get("Location"), body))
            answered += 1
            self._more.set()


async def test_every_key_has_one_effect_and_one_answer_however_hosts_and_replies_are_lost(hosts: Hosts) -> None:
    random = Random(20)
    client = Client(hosts, random)
    hosts.cosmos.add_fault(
        FaultRule(hosts.name, operations=("create", "replace", "batch"), probability=0.1, seed=1, action="close")
    )
    numbers = list(range(1, REQUESTS + 1))
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as http, asyncio.timeout(SECONDS * 2):
        waiting = iter(numbers)

        async def work() -> None:
            for number in waiting:
                await client.send(http, number)

        workers = asyncio.gather(*(work() for _ in range(8)))
        for one in range(KILLS):
            await client.until((one + 1) * REQUESTS // (KILLS + 2))
            host = hosts.hosts[one % 2]
            await host.kill()
            await host.start()
        await workers
        for number in random.sample(numbers, 20):
            await client.send(http, number, 1)
        reused = await http.post(
            f"{hosts.hosts[0].address}/api/counters/c-1", json={"amount": -1}, headers={"Idempotency-Key": "k-1"}
        )
        assert (reused.status, reused.content_type) == (422, "application/problem+json")
        while any(document[LEDGER]["owing_since"] for document in hosts.documents().values()):
            await http.post(f"{hosts.hosts[0].address}/admin/functions/exactlyonce_sweep", json={})
            await asyncio.sleep(0.1)
    print(f"{client.trouble} requests of {len(numbers)} keys were without an answer")
    assert {number: len(answers) for number, answers in client.answers.items()} == dict.fromkeys(numbers, 1)
    for counter in range(COUNTERS):
        own = [number for number in numbers if number % COUNTERS == counter]
        answers = sorted(json.loads(body)["total"] for number in own for _, _, body in client.answers[number])
        document = hosts.documents()[f"c-{counter}"]
        assert document["total"] == sum(own) == answers[-1]
        assert len(set(answers)) == len(own)
    assert client.trouble > 0
    sent = {json.loads(b64decode(body))["id"] for body in hosts.published()}
    assert len(sent) == len(numbers)
