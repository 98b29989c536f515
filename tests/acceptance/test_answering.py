"""Requests to two hosts that die at every effect, and whose store loses replies: one effect and one answer for each key."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64decode
from collections.abc import AsyncIterator
from random import Random
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import pytest

from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.acceptance.answering_hosts import Hosts
from tests.acceptance.hosting import SECONDS
from tests.acceptance.lives import moments

pytestmark = pytest.mark.acceptance
REQUESTS: Final = int(os.environ.get("ANSWERING_REQUESTS", "60"))
COUNTERS: Final = 4
OFTEN: Final = ("SaveEntity", "Publish", "LoadEntity", "OpenNumbers")
"""Effects of every attempt."""
SELDOM: Final = ("WriteBook", "FindPages", "WritePage")
"""Of some attempts. A few requests have none of them."""
DEATHS: Final = [*moments(OFTEN), *moments(OFTEN, 5), *moments(SELDOM)] if REQUESTS >= 500 else moments(OFTEN[:2])
"""In turn of the two hosts."""


@pytest.fixture
async def hosts(storage: Azurite, own_cosmos: RunningEmulator) -> AsyncIterator[Hosts]:
    found = Hosts(storage, own_cosmos, (DEATHS[::2], DEATHS[1::2]))
    try:
        await found.open()
        yield found
    finally:
        await found.kill()


class Client:
    """A client that loses the first answer to each request, and then repeats it until it has two.

    Attributes:
        answers: status code, headers and body that each key was given, without what tells a retry.
        trouble: how many requests had none.
    """

    def __init__(self, hosts: Hosts, random: Random) -> None:
        self._hosts = hosts
        self._random = random
        self.answers: dict[int, set[tuple[int, str | None, bytes]]] = {}
        self.trouble = 0

    def _address(self, number: int) -> str:
        return f"{self._random.choice(self._hosts.hosts).address}/api/counters/c-{number % COUNTERS}"

    async def lose(self, number: int) -> None:
        """Send a request, and hang up as its answer comes."""
        body = json.dumps({"amount": number})
        head = f'Host: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: "k-{number}"\r\n'
        while True:
            url = urlsplit(self._address(number))
            try:
                reader, writer = await asyncio.open_connection(url.hostname, url.port)
                writer.write(f"POST {url.path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
                begun = await reader.read(1)
                writer.close()
            except OSError:
                begun = b""
            if begun:
                return
            self.trouble += 1
            await asyncio.sleep(0.1)

    async def send(self, http: aiohttp.ClientSession, number: int, times: int = 2) -> None:
        """Send a request, until it was answered so many times."""
        headers = {"Idempotency-Key": f'"k-{number}"'}
        answered = 0
        while answered < times:
            try:
                async with http.post(self._address(number), json={"amount": number}, headers=headers) as reply:
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
                await client.lose(number)
                await client.send(http, number)

        await asyncio.gather(*(work() for _ in range(8)))
        for number in random.sample(numbers, 20):
            await client.send(http, number, 1)
        reused = await http.post(
            f"{hosts.hosts[0].address}/api/counters/c-1", json={"amount": -1}, headers={"Idempotency-Key": "k-1"}
        )
        assert (reused.status, reused.content_type) == (422, "application/problem+json")
        await hosts.settled()
    print(f"{client.trouble} requests of {len(numbers)} keys were without an answer")
    assert all(host.has_died_everywhere for host in hosts.hosts)
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
