"""Runs generators of effects in one thread: for scripts, and for Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from exactlyonce.blobs.port import Blobs
from exactlyonce.drivers.operations import blob_operations, store_operations
from exactlyonce.drivers.retry import Pause
from exactlyonce.drivers.runtime import Surroundings
from exactlyonce.effects.effect import Begin, Effect, Step, Together
from exactlyonce.effects.publish import Publish
from exactlyonce.stores.port import Store
from exactlyonce.transports.port import SendReply

Result = TypeVar("Result")


class BlockingDriver:
    """Performs effects as they are asked for; two that may go side by side go one after the other.

    Args:
        store: where documents are.
        publish: sends outputs.
        surroundings: time and chance.
        blobs: where blobs are; None if there are none.
    """

    def __init__(
        self,
        store: Store,
        publish: Callable[[Publish], SendReply],
        surroundings: Surroundings,
        blobs: Blobs | None = None,
    ) -> None:
        self._surroundings = surroundings
        self._perform: Mapping[type[Effect[Any]], Callable[[Any], Any]] = {
            Begin: surroundings.begin,
            Pause: self._pause,
            Together: self._together,
            Publish: publish,
            **store_operations(store),
            **blob_operations(blobs),
        }

    def run(self, step: Step[Result]) -> Result:
        """Run a generator to its result; what it raises comes out."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = self._perform[type(effect)](effect)

    def _pause(self, effect: Pause) -> None:
        self._surroundings.clock.block(effect.seconds)

    def _together(self, effect: Together[Any, Any]) -> tuple[Any, Any]:
        first, second = effect.first, effect.second
        return self._perform[type(first)](first), self._perform[type(second)](second)
