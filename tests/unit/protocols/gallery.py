"""An entity whose messages write blobs, by any strategy, and clean-up of what lost attempts wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Before, Finished, Handled, Memory, Strategy
from exactlyonce.effects.effect import Begin, Effect, Step
from exactlyonce.effects.library import DeleteBlobs, OpenNumbers, WriteOnce
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.steps.clean import clean_blobs
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.records.outbox import Place, number_of
from exactlyonce.stores.blobs.port import MemoryBlobs
from exactlyonce.values.envelope import Envelope, key_of
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.bookkeeping import BOOK
from tests.unit.script import ABSENT, AT, ENTITY, Played, Script, attempt

PROTOCOLS: dict[str, Strategy] = {"outbox": Outbox(), "colocated": Colocated(), "stream": VersionStream()}
ALL_PROTOCOLS: dict[str, Strategy] = {**PROTOCOLS, "resequencer": Resequencer()}


def in_order(number: int) -> Envelope:
    """The n-th deposit, which a read model takes as well."""
    return replace(deposit(f"m-{number}"), extensions=Place("fromweb", ENTITY.source, number).extensions)


def painting(before: Before, envelope: Envelope) -> Handled:
    """A handler that writes a blob, and keeps the name of the transaction in whose folder it is."""
    state: dict[str, Any] = {"id": "a", "owner": "a", "pictures": []} if before.body is None else before.body.value
    key = key_of(envelope)
    book, number = number_of(before.tx)
    folder = f"tx-{number}" if book == BOOK else before.tx
    blob = Blob(f"account/a/{folder}/picture", key.encode(), "t/x", Author(ENTITY, key, before.tx, before.at))
    return Handled(Json.of({**state, "pictures": [*state["pictures"], folder]}), blobs=(blob,))


class Gallery(Script):
    """An entity whose messages write blobs. Each attempt begins a moment later, unless its clock stands still."""

    def __init__(self, protocol: str = "outbox", strategy: Strategy | None = None) -> None:
        super().__init__()
        self.protocol: str = protocol
        self.strategy = strategy or ALL_PROTOCOLS[protocol]
        self.tick = timedelta(microseconds=1)
        self.blobs = MemoryBlobs(lambda: AT)

    def usual(self, effect: Effect[Any]) -> Any:
        match effect:
            case Begin() | OpenNumbers():
                self.at += self.tick
                return super().usual(effect)
            case WriteOnce() | DeleteBlobs():
                return self.blobs.perform(effect)
            case _:
                return super().usual(effect)

    def attempt(self, *numbers: int) -> Step[Any]:
        return attempt(self.strategy, *map(in_order, numbers), handle=painting)

    def paint(self, *numbers: int) -> Finished:
        """Process messages: tx-1 and so on."""
        return self.play(self.attempt(*numbers)).finished

    def crash(self, number: int, after: type[Effect[Any]] = WriteOnce) -> Step[Any]:
        """An attempt that gets no further than this; it may be gone on with."""
        step = self.attempt(number)
        reply: Any = None
        while True:
            effect = step.send(reply)
            reply = self._answer(effect, {})
            if isinstance(effect, after):
                return step

    def clean(self, *, memory: Memory | None = None, replies: dict[Any, Any] | None = None) -> Played:
        candidates = tuple(self.blobs.listed())
        return self.play(clean_blobs(ENTITY, candidates, ABSENT, memory or Memory(), self.strategy), replies)

    @property
    def left(self) -> list[str]:
        """Transactions whose blobs are still there."""
        return [name.split("/")[2] for name in self.blobs.written]
