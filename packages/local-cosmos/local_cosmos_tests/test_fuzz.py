"""Nonsense gets a proper error of Cosmos DB: never a 500, never silence.

The suite sends some thousands of requests; `LOCAL_COSMOS_FUZZ=100000` as many as that, each time others.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.raw_connection import RawAnswer, RawConnection, Signer
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests import fuzz_queries, fuzz_requests
from local_cosmos_tests.accounts import LocalAccount
from local_cosmos_tests.fuzz_requests import FuzzedRequest
from local_cosmos_tests.raw import KEY

EXAMPLES = int(os.environ.get("LOCAL_COSMOS_FUZZ", "0"))
ITEMS: list[dict[str, Any]] = [
    {"id": "a", "pk": "p", "n": 1, "list": [1, "x", None], "o": {"p": {"q": True}}},
    {"id": "b", "pk": "p", "n": "text", "list": {}, "é": 1.5},
    {"id": "c", "pk": "q"},
]


def fuzzed(in_suite: int) -> settings:
    return settings(
        max_examples=EXAMPLES or in_suite,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def require_proper(status: int, body: bytes, what: object) -> None:
    """An answer of the service: a status it uses, and an error with code and message."""
    assert 200 <= status < 500, f"{status} to {what}: {body!r}"
    if status >= 400:
        error = json.loads(body)
        assert error["code"], what
        assert error["message"], what


@pytest.fixture(scope="module")
def library() -> LocalAccount:
    """An emulator without HTTP, with some items."""
    account = LocalAccount(partitions=2)
    for item in ITEMS:
        assert account.ask("create", item, item["pk"]).status == 201
    return account


@fuzzed(in_suite=1200)
@given(
    fuzz_queries.TEXTS,
    st.lists(st.fixed_dictionaries({"name": st.just("@p"), "value": fuzz_requests.JSON}), max_size=1),
    st.sampled_from(["query", "query", "query", "query_plan"]),
)
def test_any_text_is_answered_as_a_query_or_refused(
    library: LocalAccount, text: str, parameters: list[Any], operation: Any
) -> None:
    body = json.dumps({"query": text, "parameters": parameters}).encode()  # Numbers that are no JSON included.
    continuation = None
    for _ in range(3):
        reply = library.ask(operation, body, cross_partition=True, page_size=1, continuation=continuation)
        require_proper(reply.status, reply.body, text)
        if reply.status == 200:
            json.loads(reply.body, parse_constant=pytest.fail)
        continuation = reply.continuation
        if continuation is None:
            break


class Target:
    """An emulator over http, with a connection that is kept as long as it lasts."""

    def __init__(self, emulator: RunningEmulator) -> None:
        self._endpoint = emulator.endpoint
        self._signer = Signer(emulator.key)
        self._loop = asyncio.new_event_loop()
        self._connection: RawConnection | None = None

    def send(self, request: FuzzedRequest) -> RawAnswer:
        signed = self._signer.request(request.verb, request.path, request.body, headers=request.headers)
        return self._loop.run_until_complete(self._send(signed))

    async def _send(self, signed: bytes) -> RawAnswer:
        if self._connection is None:
            self._connection = await RawConnection.open(self._endpoint)
        answer = await self._connection.send(signed)
        if answer.headers.get("connection", "").lower() == "close":
            self._connection.close()
            self._connection = None
        return answer

    def restore(self) -> None:
        """Database, container and items as they were."""
        for path, body in ((["dbs"], {"id": "d"}), (["dbs", "d", "colls"], {"id": "c", "partitionKey": KEY})):
            self.send(FuzzedRequest("POST", path, {}, json.dumps(body).encode()))
        for item in ITEMS:
            headers = {"x-ms-documentdb-partitionkey": json.dumps([item["pk"]])}
            path = ["dbs", "d", "colls", "c", "docs"]
            self.send(FuzzedRequest("POST", path, headers, json.dumps(item).encode()))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running_emulator(AccountSettings(partitions=2)) as emulator:
        running = Target(emulator)
        running.restore()
        yield running
        running.close()


@fuzzed(in_suite=1200)
@given(fuzz_requests.REQUESTS)
def test_any_signed_request_is_answered_properly(target: Target, request: FuzzedRequest) -> None:
    answer = target.send(request)
    require_proper(answer.status, answer.body, request)
    if request.verb in {"DELETE", "PUT"} and answer.status < 300:
        target.restore()
