"""Two applications that die in every phase of a call between them, and late copies of every verb: nothing is left over."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web

from exactlyonce import Envelope
from exactlyonce.drivers.driver import AsyncDriver
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Memory
from exactlyonce.protocols.outbox.requests import clean_requests
from exactlyonce.records.ledger import LEDGER
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.frozen_json import Json
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from tests.acceptance.answering_hosts import Hosts
from tests.acceptance.hosting import SECONDS
from tests.acceptance.lives import moments
from tests.answering import counters

pytestmark = pytest.mark.acceptance
CALLS: Final = int(os.environ.get("SERVICE_CALLS", "8"))
COUNTERS: Final = 4
ALWAYS: Final = ("Begin", "LoadEntity", "SaveEntity", "Publish")
"""Effects of both sides."""
CALLING: Final = ("Try", "Send")
SERVING: Final = ("OpenRequest", "LoadRequests", "KeepAnswers", "CloseRequest")
EVERYWHERE: Final = CALLS >= 100
CALLER_DIES: Final = (
    [*moments([*CALLING, *ALWAYS]), "received:1", "handled:1", *moments([*CALLING, *ALWAYS], 3)]
    if EVERYWHERE
    else ["after:SaveEntity:2", "after:Try:2", "after:Send:2"]
)
SERVICE_DIES: Final = (
    [*moments([*SERVING, *ALWAYS]), *moments([*SERVING, *ALWAYS], 3)]
    if EVERYWHERE
    else ["after:OpenRequest:2", "after:SaveEntity:2", "after:KeepAnswers:2", "after:CloseRequest:1"]
)
Request = tuple[str, str, bytes]
"""Method, path and body."""


class Gateway:
    """What stands between the applications: it repeats what it could not deliver, and loses replies.

    Attributes:
        requests: of the caller, in order.
        closed: paths of the requests that the service has closed.
    """

    def __init__(self, service: Hosts, random: Random) -> None:
        self._service, self._random = service, random
        self._more = asyncio.Event()
        self.requests: list[Request] = []
        self.closed: set[str] = set()

    async def open(self) -> str:
        """Listen; the address."""
        self._http = aiohttp.ClientSession()
        self._server = await asyncio.get_running_loop().create_server(web.Server(self._pass), "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        self._server.close()
        await self._http.close()

    async def until_closed(self, requests: int) -> None:
        """Wait until so many requests are closed."""
        while len(self.closed) < requests:
            self._more.clear()
            await self._more.wait()

    async def send(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Send a request to the service until it is answered: status, headers and body."""
        method, path, body = request
        headers = {"Content-Type": "application/json"} if body else {}
        while True:
            address = self._random.choice(self._service.hosts).address + path
            try:
                async with self._http.request(method, address, data=body, headers=headers) as reply:
                    kept = {name: reply.headers[name] for name in ("Location", "Content-Type") if name in reply.headers}
                    return reply.status, kept, await reply.read()
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)

    async def _pass(self, given: web.BaseRequest) -> web.StreamResponse:
        request = given.method, given.path_qs, await given.read()
        self.requests.append(request)
        status, headers, body = await self.send(request)
        if given.method == "DELETE" and status == web.HTTPNoContent.status_code:
            self.closed.add(given.path)
            self._more.set()
        if self._random.random() < 0.1 and given.transport is not None:
            given.transport.abort()
        return web.Response(status=status, headers=headers, body=body)


class Applications:
    """A caller and a service, each on hosts of its own, and a gateway between them."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator) -> None:
        self.storage, self.cosmos = storage, cosmos
        self.service = Hosts(storage, cosmos, [SERVICE_DIES])
        self.gateway = Gateway(self.service, Random(20))
        self.caller: Hosts | None = None

    async def open(self) -> Hosts:
        """Start both; the caller."""
        self.caller = Hosts(
            self.storage,
            self.cosmos,
            [CALLER_DIES],
            app=Path(__file__).parent / "calling_app",
            container="errands",
            queues=("errands", "counters"),
            SERVICE=await self.gateway.open(),
        )
        await asyncio.gather(self.service.open(), self.caller.open())
        for name in (self.service.name, self.caller.name):
            operations = ("create", "replace", "batch", "delete")
            self.cosmos.add_fault(FaultRule(name, operations=operations, probability=0.1, seed=1, action="close"))
        return self.caller

    async def close(self) -> None:
        if self.caller is not None:
            await self.caller.kill()
        await self.service.kill()
        await self.gateway.close()


@pytest.fixture
async def applications(storage: Azurite, own_cosmos: RunningEmulator) -> AsyncIterator[Applications]:
    found = Applications(storage, own_cosmos)
    try:
        yield found
    finally:
        await found.close()


def put(caller: Hosts, numbers: range) -> None:
    """Put the messages that make errands run. Putting them again makes copies."""
    with caller.queue("errands") as queue:
        for number in numbers:
            data = Json.of({"errand": f"e-{number}", "counter": f"c-{number % COUNTERS}", "amount": number})
            envelope = Envelope("test", f"m-{number}", "errand.run", data, BEGAN)
            queue.send_message(b64encode(envelope.to_json().text.encode()).decode())


BEGAN: Final = datetime.now(timezone.utc)


async def are_closed(caller: Hosts) -> dict[str, dict[str, Any]]:
    """The errands, once each has had all its replies."""
    errands = caller.documents()
    while not all(len(errand["statuses"]) == 3 for errand in errands.values()):
        await asyncio.sleep(0.1)
        errands = caller.documents()
    return errands


async def late_copies(gateway: Gateway) -> Counter[tuple[str, int]]:
    """Send every request once more, and ask for each answer: how often each verb was answered with what."""
    places = {path for method, path, _ in gateway.requests if method == "DELETE"}
    late = [*gateway.requests, *(("GET", path, b"") for path in sorted(places))]
    Random(20).shuffle(late)
    replies: Counter[tuple[str, int]] = Counter()
    for request in late:
        status, _, _ = await gateway.send(request)
        replies["OPEN" if request[2] else request[0], status] += 1
    return replies


def opened(service: Hosts) -> list[dict[str, Any]]:
    """The documents of requests."""
    return [item for item in service.library() if item["kind"] == "request"]


async def clean_up(service: Hosts) -> None:
    """Delete the requests that were left open, as clean-up does when they are as old as the retention."""
    connection = CosmosConnection(service.cosmos.endpoint, service.name, key=service.cosmos.key)
    entity = counters()
    driver = AsyncDriver(
        CosmosStore(connection, [EntityContainer(entity.name, service.container, ("/id",))]), Publisher({}), Runtime()
    )
    # What a run does not reach, since the store loses replies, the next one does.
    while left := opened(service):
        for document in left:
            ref = entity.ref(json.loads(document["entity"])[-1])
            await driver.run(clean_requests(ref, ((document["request"], document["_etag"]),), Memory()))
    await connection.close()


async def test_each_call_is_executed_once_and_nothing_is_left_whenever_either_application_dies(
    applications: Applications,
) -> None:
    caller, service, gateway = await applications.open(), applications.service, applications.gateway
    hosts, numbers = (*caller.hosts, *service.hosts), range(0)
    async with asyncio.timeout(SECONDS * 2):
        while not (numbers and all(host.has_died_everywhere for host in hosts)):
            more = range(numbers.stop or 1, (numbers.stop or 1) + CALLS)
            put(caller, more)
            numbers = range(1, more.stop)
            await gateway.until_closed(len(numbers))
        await are_closed(caller)
        put(caller, numbers)
        late = await late_copies(gateway)
        await caller.emptied("errands", "counters")
        await asyncio.gather(caller.settled(), service.settled())
        errands = await are_closed(caller)
    assert late.keys() <= {("OPEN", 201), ("POST", 200), ("POST", 404), ("GET", 404), ("DELETE", 204)}
    assert {name: item["statuses"] for name, item in errands.items()} == {
        f"e-{item}": [201, 200, 204] for item in numbers
    }
    for counter, document in service.documents().items():
        own = [number for number in numbers if f"c-{number % COUNTERS}" == counter]
        answers = [total for number in own for total in errands[f"e-{number}"]["answers"]]
        assert document["total"] == sum(own) == max(answers)
        assert len(answers) == len(set(answers)) == len(own)
    assert all("calls" not in errand[LEDGER] for errand in errands.values())
    left = opened(service)
    assert all(item["answer"] is None and item["request"] not in "".join(gateway.closed) for item in left)
    await clean_up(service)
    # What clean-up leaves: whose the container is, what processes prove, and what remembers messages until they are too old.
    assert {item["kind"] for item in (*caller.library(), *service.library())} <= {"application", "book", "page"}
    print(
        f"{len(numbers)} calls in {len(gateway.requests)} requests; {len(left)} openings were nobody's; "
        f"late copies: {dict(late)}"
    )
