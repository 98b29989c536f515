"""The comparison of retries: what the client does, what counts, and that this library passes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiohttp import web

from benchmarks.peers.port import NotInstalledError
from benchmarks.retries import measuring
from benchmarks.retries.__main__ import failures
from benchmarks.retries.by_ours import DATED, OURS
from benchmarks.retries.client import keys
from benchmarks.retries.measuring import Work, measure
from benchmarks.retries.page import retries_tables
from benchmarks.retries.port import Door, Product, Serving

SMALL = Work(requests=12, kills=2, entities=3, in_flight=2)


class Answering:
    """A product in memory. It remembers a key until that expires; with `knowing=False` it remembers none."""

    path = "/{entity}"
    expiring: Mapping[str, str] = {"known": "/{entity}"}
    processes = 2

    def __init__(self, *, knowing: bool = True) -> None:
        self.knowing = knowing
        self.killed: list[int] = []
        self.requests: Counter[str] = Counter()
        self._answers: dict[str, bytes] = {}
        self._effects: Counter[str] = Counter()
        self._doors: Sequence[Door] = ()

    @property
    def doors(self) -> Sequence[Door]:
        return self._doors

    async def restart(self, process: int) -> None:
        self.killed.append(process)

    async def effects(self) -> Counter[str]:
        return self._effects

    async def expire(self) -> None:
        self._answers.clear()

    async def _answer(self, request: web.Request) -> web.Response:
        key = request.headers["Idempotency-Key"]
        self.requests[key] += 1
        if key not in self._answers or not self.knowing:
            self._effects[key] += 1
            self._answers[key] = json.dumps({"id": str(uuid4())}).encode()
        return web.Response(body=self._answers[key])

    @asynccontextmanager
    async def open(self, _: Path) -> AsyncIterator[Serving]:
        application = web.Application()
        application.router.add_post("/{entity}", self._answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._doors = (Door(f"http://127.0.0.1:{runner.addresses[0][1]}"),)
        try:
            yield self
        finally:
            await runner.cleanup()

    @property
    def product(self) -> Product:
        return Product("exactlyonce", lambda: {"part": "1.0"}, self.open)


async def measured(serving: Answering) -> dict[str, Any]:
    return await measure(serving.product, SMALL)


async def test_every_request_loses_an_answer_and_gets_two_while_processes_are_killed_in_turn() -> None:
    serving = Answering()
    result = await measured(serving)
    assert serving.killed == [0, 1]
    assert result["lost answers"] == 12
    assert sorted(serving.requests.values())[-12:] == [3] * 10 + [3, 4], "and one comes with another body"
    assert result["effects of a key"] == result["answers of a key"] == {"1": 12}


async def test_a_key_that_expired_is_told_by_its_answer() -> None:
    result = await measured(Answering())
    assert result["another body"] == "the same answer"
    assert result["expired"] == {"known": {"answer": "another answer", "effects": 2}}


async def test_a_key_that_never_expires_is_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remembering(Answering):
        async def expire(self) -> None:
            """It never does."""

    monkeypatch.setattr(measuring, "PATIENCE_SECONDS", 0)
    result = await measured(Remembering())
    assert result["expired"] == {"known": {"answer": "the same answer", "effects": 1}}


async def test_who_knows_no_key_is_found_out() -> None:
    result = await measured(Answering(knowing=False))
    assert result["effects of a key"] == {"3": 11, "4": 1} or result["effects of a key"] == {"3": 12}
    assert result["answers of a key"] == {"2": 12}


async def test_who_is_missing_is_named() -> None:
    def missing() -> dict[str, str]:
        raise NotInstalledError("Install it.")

    assert await measure(Product("absent", missing, Answering().open), SMALL) == {"missing": "Install it."}


async def test_who_fails_costs_nobody_else() -> None:
    class Broken(Answering):
        async def effects(self) -> Counter[str]:
            raise OSError("Its store is gone.")

    result = await measured(Broken())
    assert result == {"missing": "It failed (OSError)."}
    assert list(failures({"products": {OURS.name: result}})) == ["It failed (OSError)."]


def test_keys_carry_their_time() -> None:
    now = time.time()
    for number, key in enumerate(made := keys(50, now, Random(1))):
        uuid = UUID(key)
        assert (uuid.version, uuid.int >> 80) == (7, int(now * 1000) + number)
    assert len(set(made)) == 50


def figures(**changed: Any) -> dict[str, Any]:
    """A result of this library, in which all is well unless it is changed."""
    one = {
        "versions": {"azure-cosmos": "4"},
        "seconds": 9.9,
        "lost answers": 11,
        "unanswered": 7,
        "effects of a key": {"1": 12},
        "answers of a key": {"1": 12},
        "another body": "422 Key reused",
        "expired": {DATED: {"answer": "400 Too old", "effects": 1}},
    }
    return {
        "machine": {"cores": 2, "cpu": "c", "python": "3", "date": "d"},
        "work": vars_of(SMALL),
        "products": {OURS.name: {**one, **changed}},
    }


def vars_of(work: Work) -> dict[str, int]:
    return {"requests": work.requests, "kills": work.kills, "entities": work.entities, "in_flight": work.in_flight}


def test_what_was_not_kept_is_reported() -> None:
    assert list(failures(figures())) == []
    (twice,) = failures(figures(**{"effects of a key": {"1": 11, "2": 1}}))
    assert twice == "Effects of a key: {'1': 11, '2': 1}; 1 is wanted for all."
    (again,) = failures(figures(expired={DATED: {"answer": "another answer", "effects": 2}}))
    assert again == "A key that carries its time had 2 effects after it expired; 1 is wanted."
    assert list(failures({"products": {}})) == []


def test_the_page_has_a_row_for_each_product_and_a_sentence_for_each_that_is_missing() -> None:
    result = figures()
    result["products"]["Restate"] = {"missing": "Install it."}
    page = retries_tables(result)
    assert "| exactlyonce | 12 of 12 | 12 of 12 | 11 | 7 | 10 | 422 Key reused |" in page
    assert f"| exactlyonce | {DATED} | 400 Too old | 1 |" in page
    assert "Restate was not measured. Install it." in page


@pytest.mark.acceptance
async def test_this_library_has_one_effect_and_one_answer_for_each_key() -> None:
    result = await measure(OURS, Work(requests=20, kills=1, entities=2, in_flight=4))
    assert list(failures({"products": {OURS.name: result}})) == []
    assert result["another body"].startswith("422")
    assert [item["effects"] for item in result["expired"].values()] == [2, 1]
