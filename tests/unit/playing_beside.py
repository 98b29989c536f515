"""Drives the strategies whose records lie beside the entity: a script that answers from a store in memory."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any

from exactlyonce import Destination, Envelope
from exactlyonce.attempt import Again, Finished, Handle, Memory, Strategy, Work
from exactlyonce.effects.blobs import KEPT, WriteOnce
from exactlyonce.effects.effect import Begin, Begun, Effect, Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.companions import KIND, Companion, read_companion
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.outputs import Output
from exactlyonce.records.sequences import Sequences
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from tests.samples import Deposited, accounts
from tests.unit.playing import AT, ENTITY, Player

RECEIPTS = Destination("receipts", receives=(Deposited,), order_by=lambda deposited: "r-1")
ORDERED = Routes.to((RECEIPTS,), {"receipts": 1024 * 1024})
ABSENT = accounts().shape.tombstone(ENTITY)


class Beside(Player):
    """Answers as a world without trouble would.

    Attributes:
        store: where entities and companions are.
        published: every copy of every output.
        at: the present.
    """

    def __init__(self, document: Json | None = None, entity: EntityRef = ENTITY) -> None:
        self.store = MemoryStore(lambda: self.at)
        self.published: list[Output] = []
        self.at: datetime = AT
        self.entity = entity
        self._transactions = count(1)
        if document is not None:
            self.put(document)

    def usual(self, effect: Effect[Any]) -> Any:
        match effect:
            case Begin(messages=messages, more=more):
                return Begun(self.at, tuple(f"tx-{next(self._transactions)}" for _ in range(len(messages) + more)))
            case Publish(outputs=outputs):
                self.published += outputs
                return PUBLISHED
            case WriteOnce():
                return KEPT
            case _:
                return self.store.perform(effect)

    def put(self, document: Json) -> None:
        """Write the entity as if somebody else did."""
        etag = self._etag
        saved = self.store.perform(SaveEntity(self.entity, document, etag))
        assert isinstance(saved, Saved)

    @property
    def writes(self) -> int:
        """How many documents were written so far."""
        return sum(len(partition.log) for partition in self.store.entities.values())

    @property
    def document(self) -> Json | None:
        """The entity's document as it is now."""
        version = self._partition.newest(self.entity.id)
        return None if version is None else version.document

    @property
    def ledger(self) -> Ledger:
        """Its ledger."""
        ledger = read_entity(self.entity, self.document).ledger
        assert ledger is not None
        return ledger

    @property
    def body(self) -> dict[str, Any] | None:
        """The user's properties; None if absent or deleted."""
        body = read_entity(self.entity, self.document).body
        return None if body is None else dict(body.value)

    @property
    def sequences(self) -> Sequences:
        """The numbers that the entity has given out."""
        return self.ledger.sequences

    @property
    def companions(self) -> list[Companion]:
        """Those of the entity, in the order in which they were first written."""
        written = self._partition.view(len(self._partition.log)).values()
        found = (version.document.value for version in written if version.document is not None)
        beside = (one for one in found if KIND in one and one.get("entity") == self.entity.key)
        return [read_companion(self.entity, one) for one in beside]

    @property
    def _partition(self) -> Any:
        return self.store._entity(self.entity)

    @property
    def _etag(self) -> str | None:
        version = self._partition.newest(self.entity.id)
        return None if version is None else version.etag


def work_for(*messages: Envelope, handle: Handle | None = None) -> Work:
    """Messages for the sample entity, whose receipts are numbered."""
    return Work(ENTITY, messages, handle or Runner(accounts(), ENTITY, ORDERED), ABSENT)


def attempt(
    strategy: Strategy, *messages: Envelope, memory: Memory | None = None, handle: Handle | None = None
) -> Step[Finished | Again]:
    """An attempt on the sample entity."""
    return strategy.attempt(work_for(*messages, handle=handle), memory or Memory())


def numbers(outputs: list[Output]) -> list[int]:
    """The numbers of outputs that have one, in order."""
    return [output.order.number for output in outputs if output.order is not None]
