"""Runs generators of effects under asyncio. Cancelling it equals a crash between two effects, which every protocol survives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from exactlyonce.drivers.operations import blob_operations, store_operations
from exactlyonce.drivers.publishing import Publisher
from exactlyonce.drivers.retrying import Pause
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.effects import Begin, Begun, Effect, Publish, Step, Together
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.blobs import AsyncBlobs

Result = TypeVar("Result")


class AsyncDriver:
    """Performs effects as they are asked for.

    Args:
        store: where documents are.
        publisher: where outputs go.
        surroundings: time and chance.
        blobs: where blobs are; None if there are none.
    """

    def __init__(
        self, store: AsyncStore, publisher: Publisher, surroundings: Surroundings, blobs: AsyncBlobs | None = None
    ) -> None:
        self._surroundings = surroundings
        self._perform: Mapping[type[Effect[Any]], Callable[[Any], Awaitable[Any]]] = {
            Begin: self._begin,
            Pause: self._pause,
            Together: self._together,
            Publish: publisher.publish,
            **store_operations(store),
            **blob_operations(blobs),
        }

    async def run(self, step: Step[Result]) -> Result:
        """Run a generator to its result; what it raises comes out."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = await self._perform[type(effect)](effect)

    async def _begin(self, effect: Begin) -> Begun:
        return self._surroundings.begin(effect)

    async def _pause(self, effect: Pause) -> None:
        await self._surroundings.clock.sleep(effect.seconds)

    async def _together(self, effect: Together[Any, Any]) -> tuple[Any, Any]:
        first, second = effect.first, effect.second
        replies = await asyncio.gather(self._perform[type(first)](first), self._perform[type(second)](second))
        return replies[0], replies[1]
