"""Apps on the function host with Azurite's queues, and what the host has done with their messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import azure.functions as func

from function_host import FunctionHost, HostJson, HostOptions, Point, function_host
from function_host.azurite import Azurite

SECONDS = 1800
"""Ends a wait for what does not come, with a better message than the end of its process; it measures no machine."""


class Passed:
    """The checkpoint of a host: counts the messages that passed each point."""

    def __init__(self) -> None:
        self.points: Counter[Point] = Counter()
        self._more = asyncio.Event()

    def __call__(self, point: Point) -> None:
        self.points[point] += 1
        self._more.set()

    async def until(self, times: int, *points: Point) -> None:
        """Wait until so many messages have passed these points; by default, were handled."""
        async with asyncio.timeout(SECONDS):
            while sum(self.points[point] for point in points or (Point.HANDLED,)) < times:
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def hosted(app: func.FunctionApp, storage: Azurite, passed: Passed, dequeues: int) -> AsyncIterator[FunctionHost]:
    """The app on a host that polls often, and delivers a message that fails at once again, up to so many times."""
    queues = {"maxDequeueCount": dequeues, "visibilityTimeout": "00:00:00", "maxPollingInterval": "00:00:00.100"}
    host_json = HostJson.model_validate({"extensions": {"queues": queues}})
    settings = {"AzureWebJobsStorage": storage.connection_string}
    async with function_host(app, settings, host_json=host_json, options=HostOptions(checkpoint=passed)) as host:
        yield host
