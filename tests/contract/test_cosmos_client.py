"""What the client of Cosmos DB does not spend its time on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from devtools.cosmos_emulator.inprocess import RunningEmulator
from exactlyonce.stores import cosmos_client


@pytest.mark.parametrize(("proxies", "needed"), [({}, False), ({"no": "*"}, True)])
async def test_a_request_needs_a_thread_only_where_a_proxy_is_set(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], needed: bool
) -> None:
    monkeypatch.setattr(cosmos_client, "getproxies", lambda: proxies)
    handed: list[object] = []
    async with cosmos_client.cosmos_client(emulator.endpoint, emulator.key) as client:
        monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", recording(handed))
        await anext(client.list_databases(), None)
    assert bool(handed) is needed


def recording(handed: list[object]) -> Callable[..., Awaitable[Any]]:
    """In place of `run_in_executor`: does at once what a thread would do."""

    async def run(_: object, function: Callable[..., Any], *args: Any) -> Any:
        handed.append(function)
        return function(*args)

    return run
