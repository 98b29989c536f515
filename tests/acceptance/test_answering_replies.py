"""The table of replies, as clients of HTTP see it: curl, urllib, and aiohttp, against a host."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.parser import BytesParser
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp
import pytest

from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.acceptance.answering_hosts import Hosts

pytestmark = pytest.mark.acceptance


class Reply(NamedTuple):
    """What a client got; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


Send = Callable[[str, Mapping[str, str], bytes], Awaitable[Reply]]


async def by_aiohttp(address: str, headers: Mapping[str, str], body: bytes) -> Reply:
    async with aiohttp.ClientSession() as http, http.post(address, headers=headers, data=body) as reply:
        return Reply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, await reply.read())


async def by_urllib(address: str, headers: Mapping[str, str], body: bytes) -> Reply:
    def send() -> Reply:
        try:
            with urlopen(Request(address, body, dict(headers))) as reply:  # noqa: S310  # Of this machine.
                return Reply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.read())
        except HTTPError as error:
            return Reply(error.code, {name.lower(): value for name, value in error.headers.items()}, error.read())

    return await asyncio.to_thread(send)


async def by_curl(address: str, headers: Mapping[str, str], body: bytes) -> Reply:
    given = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    command = ["curl", "--silent", "--include", *given, "--data-binary", "@-", address]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    sent, _ = await process.communicate(body)
    head, _, rest = sent.partition(b"\r\n\r\n")
    status, _, lines = head.partition(b"\r\n")
    found = BytesParser().parsebytes(lines)
    return Reply(int(status.split()[1]), {name.lower(): value for name, value in found.items()}, rest)


@pytest.fixture
async def host(storage: Azurite, cosmos: RunningEmulator) -> AsyncIterator[Hosts]:
    found = Hosts(storage, cosmos, [()], EXACTLYONCE__deliveryTimeout="3")
    try:
        await found.open()
        yield found
    finally:
        await found.kill()


def assert_problem(reply: Reply, status: int) -> None:
    assert reply.status == status, reply
    assert reply.headers["content-type"].startswith("application/problem+json")
    assert json.loads(reply.body)["status"] == status


async def assert_as_tabled(send: Send, hosts: Hosts, name: str) -> None:
    """Every row of the table that a client can bring about."""
    address = f"{hosts.hosts[0].address}/api/counters/{name}"

    async def post(key: str | None, body: object = None, media_type: str = "application/json") -> Reply:
        headers = {"Content-Type": media_type, **({} if key is None else {"Idempotency-Key": key})}
        return await send(address, headers, json.dumps(body or {}).encode())

    first = await post("k-1", {"amount": 2, "status": 201})
    assert (first.status, first.body, first.headers["location"]) == (201, b'{"total":2}', f"/counters/{name}")
    again = await post('"k-1"', {"status": 201, "amount": 2})
    assert (again.status, again.body, again.headers["idempotent-replayed"]) == (201, b'{"total":2}', "true")
    assert_problem(await post("k-1", {"amount": 3}), 422)
    assert_problem(await post(None), 400)
    assert_problem(await post("k-2", media_type="text/plain"), 415)
    refused = [await post("k-3", {"status": 409}) for _ in range(2)]
    assert [(item.status, item.body) for item in refused] == [(409, b'{"total":3}')] * 2
    assert_problem(await post("k-4", {"failing": True}), 500)
    writes = ("create", "replace", "batch")
    rule = hosts.cosmos.add_fault(FaultRule(hosts.name, operations=writes, when="before", action="close"))
    lost = await post("k-5")
    assert_problem(lost, 503)
    assert int(lost.headers["retry-after"]) > 0
    hosts.cosmos.remove_fault(rule)
    assert (await post("k-5")).body == b'{"total":4}'
    assert hosts.documents()[name]["total"] == 4


async def test_replies_are_as_tabled_for_every_client(host: Hosts) -> None:
    clients = {"aiohttp": by_aiohttp, "urllib": by_urllib}
    if shutil.which("curl"):
        clients["curl"] = by_curl
    for name, send in clients.items():
        await assert_as_tabled(send, host, name)
