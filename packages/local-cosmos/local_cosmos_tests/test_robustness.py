"""Bad requests, one kind at a time: each gets the error that the service documents, and the next request is served."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Iterator
from email.utils import formatdate
from time import time
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.raw_connection import RawAnswer, RawConnection, Signer
from local_cosmos_tests.raw import BATCH, QUERY

MEGABYTE = 1024 * 1024


class Wire:
    """A connection of the test's own, and requests about its container."""

    def __init__(self, connection: RawConnection, signer: Signer, documents: list[str]) -> None:
        self.connection = connection
        self.signer = signer
        self.documents = documents

    async def post(self, body: Any, headers: dict[str, str] | None = None, **more: Any) -> RawAnswer:
        signed = self.signer.request("POST", self.documents, body, key="p", headers=headers, **more)
        return await self.connection.send(signed)

    async def get(self, path: list[str], **more: Any) -> RawAnswer:
        return await self.connection.send(self.signer.request("GET", path, **more))


@pytest.fixture
async def wire(emulator: RunningEmulator, container: ContainerProxy) -> AsyncIterator[Wire]:
    connection = await RawConnection.open(emulator.endpoint)
    yield Wire(connection, Signer(emulator.key), [*container.container_link.split("/"), "docs"])
    connection.close()


def message(answer: RawAnswer) -> str:
    """The message of a proper error."""
    assert answer.content["code"]
    return str(answer.content["message"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"nonsense",
        b"\xff\xfe",
        b"[1,]",
        b"{'id':'a'}",
        b'{"id":NaN}',
        b'{"id":1e999}',
        b"null",
        b"[]",
    ],
)
async def test_what_is_not_the_json_of_an_item_is_refused(wire: Wire, body: bytes) -> None:
    answer = await wire.post(body)
    assert answer.status == 400
    assert message(answer)
    assert (await wire.post({"id": "a", "pk": "p"})).status == 201


@pytest.mark.parametrize(("minutes", "status"), [(-16, 403), (16, 403), (-14, 201), (14, 201)])
async def test_a_signature_is_good_for_fifteen_minutes(wire: Wire, minutes: int, status: int) -> None:
    date = formatdate(time() + 60 * minutes, usegmt=True)
    assert (await wire.post({"id": "a", "pk": "p"}, date=date)).status == status


@pytest.mark.parametrize("date", ["", "yesterday", "0", "9" * 5000, "é", "Mon, 99 Nov 2026 99:99:99 GMT"])
async def test_a_date_that_is_none_is_unauthorized(wire: Wire, date: str) -> None:
    answer = await wire.post({"id": "a", "pk": "p"}, date=date)
    assert (answer.status, answer.content["code"]) == (401, "Unauthorized")


@pytest.mark.parametrize(
    "authorization", ["", "x", "type=master&ver=1.0&sig=", "type%3Dmaster%26ver%3D1.0%26sig%3DAAAA", "é"]
)
async def test_a_wrong_signature_is_unauthorized(wire: Wire, authorization: str) -> None:
    answer = await wire.post({"id": "a", "pk": "p"}, {"Authorization": authorization})
    assert (answer.status, answer.content["code"]) == (401, "Unauthorized")


@pytest.mark.parametrize(
    "path",
    [
        ["nothing"],
        ["dbs", "d", "nothing"],
        ["dbs", "d", "docs"],
        ["a"] * 50,
        ["dbs", "d", "colls", "c", "docs", "a", "b"],
    ],
)
async def test_there_is_nothing_at_an_unknown_path(wire: Wire, path: list[str]) -> None:
    answer = await wire.get(path)
    assert (answer.status, answer.content["code"]) == (404, "NotFound")


@pytest.mark.parametrize("size", [2 * MEGABYTE, 20 * MEGABYTE])
async def test_an_oversized_body_is_refused_and_not_kept_in_memory(
    wire: Wire, emulator: RunningEmulator, size: int
) -> None:
    answer = await wire.post({"id": "a", "pk": "p", "filler": "x" * size})
    assert (answer.status, answer.content["code"]) == (413, "RequestEntityTooLarge")
    again = await RawConnection.open(emulator.endpoint)
    request = wire.signer.request("POST", wire.documents, {"id": "a", "pk": "p"}, key="p")
    assert (await again.send(request)).status == 201
    again.close()


@pytest.mark.parametrize("levels", [129, 1_000, 100_000])
@pytest.mark.parametrize("opened", ["[", '{"a":'], ids=["arrays", "objects"])
async def test_an_item_nested_deeper_than_128_levels_is_refused(wire: Wire, levels: int, opened: str) -> None:
    closed = "]" if opened == "[" else "}"
    nested = opened * (levels - 1) + "1" + closed * (levels - 1)
    answer = await wire.post(f'{{"id":"a","pk":"p","deep":{nested}}}'.encode())
    assert (answer.status, "128 levels" in message(answer) or "recursion" in message(answer)) == (400, True)


async def test_128_levels_are_allowed_in_an_item_and_in_a_batch_and_patches_cannot_add_to_them(wire: Wire) -> None:
    nested = "[" * 125 + "1" + "]" * 125
    assert (await wire.post(f'{{"id":"a","pk":"p","deep":{nested}}}'.encode())).status == 201
    operation = f'[{{"operationType":"Upsert","resourceBody":{{"id":"a","pk":"p","deep":{nested}}}}}]'
    assert (await wire.post(operation.encode(), dict(BATCH))).status == 200
    deeper = {"operations": [{"op": "set", "path": "/deep/0", "value": json.loads("[" * 100 + "]" * 100)}]}
    for _ in range(3):
        path = [*wire.documents, "a"]
        patched = await wire.connection.send(wire.signer.request("PATCH", path, deeper, key="p"))
        deeper["operations"][0]["path"] += "/0" * 90
    assert patched.status == 400


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c WHERE " + "NOT " * 2_500 + "true",
        "SELECT * FROM c WHERE " + "(" * 4_900 + "1" + ")" * 4_900,
        "SELECT VALUE " + "[" * 4_900 + "]" * 4_900 + " FROM c",
        " OR ".join(["SELECT * FROM c WHERE c.n = 1"] + ["c.n = 1"] * 900),
        "SELECT * FROM c WHERE c.n IN (1" + ",1" * 4_900 + ")",
        "SELECT c" + ".a" * 4_900 + " FROM c",
        "SELECT * FROM c WHERE c.text LIKE '" + "%a" * 4_900 + "b'",
        "SELECT * FROM c WHERE c.text = '" + "x" * 9_900 + "'",
        "x" * 10_000,
        "SELECT " + "9" * 9_900 + " FROM c",
    ],
    ids=lambda text: text[:40],
)
async def test_a_query_of_ten_thousand_characters_is_answered_or_refused(wire: Wire, text: str) -> None:
    await wire.post({"id": "a", "pk": "p", "text": "a" * 5_000})
    answer = await wire.post({"query": text}, dict(QUERY))
    assert answer.status in {200, 400}
    assert answer.status == 200 or message(answer)


@pytest.mark.parametrize(
    "request_text",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /dbs HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /dbs HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /%ff%00%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\nx-ms-date: \xff\r\nAuthorization: \xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nx-ms-date: \xff\r\nAuthorization: \xff\r\n\r\n",
        b"GET /dbs/%ff HTTP/1.1\r\nHost: localhost\r\nx-ms-date: \xff\r\nAuthorization: sig=\xff\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET http://elsewhere/dbs HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=lambda text: repr(text[:30]),
)
async def test_broken_http_is_refused(emulator: RunningEmulator, request_text: bytes) -> None:
    connection = await RawConnection.open(emulator.endpoint)
    answer = await connection.send(request_text)
    assert 400 <= answer.status < 500
    connection.close()


@pytest.fixture
def many_files() -> Iterator[int]:
    """So many connections that both ends of each fit into what this process may open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield min(3_000, (limits[1] - 200) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_thousands_of_open_connections_are_served(emulator: RunningEmulator, wire: Wire, many_files: int) -> None:
    opened = [await RawConnection.open(emulator.endpoint) for _ in range(many_files)]
    try:
        await wire.post({"id": "a", "pk": "p"})
        request = wire.signer.request("GET", [*wire.documents, "a"], key="p")
        answers = await asyncio.gather(*(connection.send(request) for connection in opened))
        assert {answer.status for answer in answers} == {200}
    finally:
        for connection in opened:
            connection.close()
