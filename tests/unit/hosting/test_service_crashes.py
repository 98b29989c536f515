"""A service that dies between any two effects, while its caller opens a request, has it carried out and closes it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import azure.functions as func
import pytest

from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Awaited, Effect, Together
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.testing.world import World
from tests.unit.hosting import desks
from tests.unit.hosting.desks import Desk

OPENING = 4
"""Effects in which two openings are over."""


class Mortal(AsyncDriver):
    """A driver whose process dies at effects, before them or after them. Cancelling equals a crash."""

    deaths: tuple[tuple[int, bool], ...] = ()
    performed = 0

    def _performed(self, effect: Effect[Any]) -> Awaitable[Any]:
        return super()._performed(effect) if isinstance(effect, Together) else self._mortally(effect)

    async def _mortally(self, effect: Effect[Any]) -> Any:
        Mortal.performed += 1
        number = Mortal.performed
        if (number, False) in self.deaths:
            raise asyncio.CancelledError
        reply = await super()._performed(effect)
        if (number, True) in self.deaths:
            raise asyncio.CancelledError
        return reply


def mortal_maintenance(world: World, tries: int = 2) -> Maintenance:
    driver = Mortal(Awaited(world.store), world._publisher, Runtime(world.clock, world.random))
    return Maintenance(driver, Retrying(Backoff(tries=tries), world.random), world.routes)


async def survived(desk: Desk, asked: Callable[[], Awaitable[Any]]) -> Any:
    """What comes of it, tried again after each crash."""
    with contextlib.suppress(asyncio.CancelledError):
        return await asked()
    desk.restart()
    return await survived(desk, asked)


async def insisted(desk: Desk, verb: str, location: str = "") -> func.HttpResponse:
    """What a caller is answered that tries again after a crash."""
    response: func.HttpResponse = await survived(desk, lambda: desk.serve(verb, location) if location else desk.open())
    return response


async def swept(desk: Desk) -> None:
    """Sweep, again after a crash."""
    await survived(desk, desk.sweep)


async def played() -> None:
    """A request from its opening to late copies of everything; the service may die at any moment, and is swept."""
    desk = Desk()
    location = (await insisted(desk, "OPEN")).headers["Location"]
    first = await insisted(desk, "POST", location)
    assert (first.status_code, first.get_body()) == (200, b'{"total":1}')
    assert (await insisted(desk, "GET", location)).get_body() == first.get_body()
    assert (await insisted(desk, "DELETE", location)).status_code == 204
    late = [(await insisted(desk, verb, location)).status_code for verb in ("POST", "GET", "DELETE", "POST")]
    assert late[1:3] == [404, 204]
    assert {late[0], late[3]} <= {200, 404}, "while its entry is there, the answer is known"
    await swept(desk)
    died, Mortal.deaths = Mortal.deaths, ()  # From now on it only looks.
    desk.restart()
    await swept(desk)
    assert (await insisted(desk, "POST", location)).status_code == 404
    assert await desk.total == 1
    assert len({output.id for output in desk.published}) == 1
    assert len(desk.left()) <= sum(number <= OPENING for number, _ in died), (
        "what nobody knows to be open waits for clean-up"
    )
    document = desk.store.entities["counter", "c"].log[-1].document
    assert document is not None
    assert "outbox" not in document.value["_ledger"]


async def test_whenever_the_service_dies_a_request_is_carried_out_once_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(desks, "maintenance", mortal_maintenance)
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(Mortal, "deaths", ())
    monkeypatch.setattr(Mortal, "performed", 0)
    await played()
    count = Mortal.performed
    assert count > 20
    moments = tuple(product(range(1, count + 1), (False, True)))
    for first in moments:
        for second in (None, (first[0] + 2, False), (first[0] + 5, True)):
            Mortal.deaths = (first,) if second is None else (first, second)
            Mortal.performed = 0
            await played()
