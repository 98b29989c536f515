"""Runs generators of effects in a single thread: for scripts, and for Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from exactlyonce.blobs.port import NoBlobs
from exactlyonce.drivers.book import BlockingBooks
from exactlyonce.drivers.retry import Pause, Runtime
from exactlyonce.effects.effect import Begin, Effect, Step, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.effects.library import CloseNumbers, DeleteBlobs, FindPaid, OpenNumbers, WriteOnce
from exactlyonce.effects.port import Port
from exactlyonce.stores.port import Store
from exactlyonce.transports.port import SendReply

Result = TypeVar("Result")


class BlockingDriver:
    """Performs the effects of generators; the effects of a `Together` in sequence.

    Args:
        store: the store of documents.
        publish: sends outputs.
        runtime: time and chance.
        blobs: the container for blobs; None for none.

    Attributes:
        books: books of this process. End them with the process, or the sweeper searches for the unproved transactions.
    """

    def __init__(
        self,
        store: Store,
        publish: Callable[[Publish], SendReply],
        runtime: Runtime,
        blobs: Port | None = None,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self.books = books = BlockingBooks(self._perform, runtime)
        perform_blobs = (blobs or NoBlobs()).perform
        self._others: Mapping[type[Effect[Any]], Callable[[Any], Any]] = {
            Begin: runtime.begin,
            OpenNumbers: books.open,
            FindPaid: books.find_paid,
            CloseNumbers: books.close,
            Pause: self._pause,
            Together: self._together,
            Publish: publish,
            WriteOnce: perform_blobs,
            DeleteBlobs: perform_blobs,
        }

    def run(self, step: Step[Result]) -> Result:
        """Run a generator to its result, or to its exception."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = self._perform(effect)

    def _perform(self, effect: Effect[Any]) -> Any:
        return self._others.get(type(effect), self._store.perform)(effect)

    def _pause(self, effect: Pause) -> None:
        self._runtime.clock.block(effect.seconds)

    def _together(self, effect: Together[Any, Any]) -> tuple[Any, Any]:
        return self._perform(effect.first), self._perform(effect.second)
