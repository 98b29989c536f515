"""Drives protocols by hand: a script that answers their effects from a store in memory, and keeps what they asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any, TypeVar

from exactlyonce import Destination, Envelope
from exactlyonce.effects.attempt import Again, Finished, Handle, Memory, Strategy, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved, SaveEntity
from exactlyonce.effects.library import KEPT, CloseNumbers, FindPaid, OpenNumbers, WriteOnce
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.companions import KIND, Companion, read_companion
from exactlyonce.records.ledger import Ledger, Mark, Page, read_entity, read_page, split
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import OutboxEntry, Output, Place, Sequence, Sequences, channel_id
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import RETENTION
from tests.samples import Deposited, accounts
from tests.unit.bookkeeping import Bookkeeper

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ENTITY = accounts().ref("a")
ABSENT = accounts().shape.tombstone(ENTITY)
RECEIPTS = Destination("receipts", receives=(Deposited,), to="reader", entity_by=lambda deposited: "r-1", ordered=True)
ROUTES = Routes({"receipts": 1024 * 1024})
READER = "reader/r-1"
CHANNEL = channel_id(AT, "tx-1", 0)
"""In which receipts travel: the first transaction begins it."""
ORDERED = Routes.to((RECEIPTS,), {"receipts": 1024 * 1024})
BOOKKEEPING = (FindPaid, OpenNumbers, CloseNumbers, Begin)
"""What costs no request."""
Kind = TypeVar("Kind", bound="Effect[Any]")
Replies = Mapping[type[Effect[Any]], Any]


@dataclass(frozen=True)
class Played:
    """What an attempt asked, in order, and what came of it."""

    effects: tuple[Effect[Any], ...]
    result: Any

    @property
    def kinds(self) -> list[type]:
        return [type(effect) for effect in self.effects]

    @property
    def requests(self) -> list[type]:
        """Without what costs none."""
        return [kind for kind in self.kinds if kind not in BOOKKEEPING]

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def only(self, kind: type[Kind]) -> Kind:
        (found,) = self.all(kind)
        return found

    @property
    def finished(self) -> Finished:
        assert isinstance(self.result, Finished), self.result
        return self.result

    @property
    def again(self) -> Again:
        assert isinstance(self.result, Again), self.result
        return self.result


class Script:
    """Answers as a world without trouble would; what a play does not say is answered by `usual`.

    Attributes:
        store: where entities, their companions and the library's documents are.
        published: every copy of every output.
        at: the present.
        book: of the process that plays.
        books: what the store says of the books of others.
        asked: what the last play asked for, also where it raised.
    """

    asked: list[Effect[Any]]

    def __init__(self, document: Json | None = None, entity: EntityRef = ENTITY) -> None:
        self.store = MemoryStore(lambda: self.at)
        self.published: list[Output] = []
        self.at: datetime = AT
        self.entity = entity
        self.book = Bookkeeper()
        self.books: list[Book] = []
        self._transactions = count(1)
        if document is not None:
            self.put(document)

    def play(self, step: Step[Any], replies: Replies | None = None) -> Played:
        """Play to the end.

        Args:
            step: what to play.
            replies: in place of the usual ones, by kinds of effects. A list holds one for each time, after which the usual
                ones come again; a function is given the effect.
        """
        scripted = {
            kind: list(reply) if isinstance(reply, list) else [reply] for kind, reply in (replies or {}).items()
        }
        effects: list[Effect[Any]] = []
        self.asked = effects
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                return Played(tuple(effects), finished.value)
            effects.append(effect)
            reply = self._answer(effect, scripted)

    def _answer(self, effect: Effect[Any], scripted: dict[type[Effect[Any]], list[Any]]) -> Any:
        if isinstance(effect, Together):
            return self._answer(effect.first, scripted), self._answer(effect.second, scripted)
        if waiting := scripted.get(type(effect)):
            reply = waiting.pop(0)
            return reply(effect) if callable(reply) else reply
        return self.usual(effect)

    def usual(self, effect: Effect[Any]) -> Any:  # noqa: PLR0911
        """What a world without trouble answers."""
        match effect:
            case Begin(messages=messages, more=more):
                return Begun(self.at, tuple(f"tx-{next(self._transactions)}" for _ in range(len(messages) + more)))
            case OpenNumbers():
                return self.book.give(effect, self.at)
            case FindPaid():
                return self.book.paid(effect, self.books)
            case CloseNumbers():
                return self.book.close(effect)
            case Publish(outputs=outputs):
                self.published += outputs
                return PUBLISHED
            case WriteOnce():
                return KEPT
            case _:
                return self.store.perform(effect)

    def restart(self) -> None:
        """Another process plays from now on, which knows nothing of the book before."""
        self.book = Bookkeeper(f"{int(self.book.id, 16) + 1:020x}")

    def put(self, document: Json) -> None:
        """Write the entity as if somebody else did."""
        version = self._partition.newest(self.entity.id)
        saved = self.store.perform(SaveEntity(self.entity, document, version and version.etag))
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
    def entries(self) -> tuple[OutboxEntry, ...]:
        """What the outbox of the ledger holds."""
        return self.ledger.outbox

    @property
    def marks(self) -> list[Mark]:
        """Those in the ledger."""
        return [Mark.read(part) for part in split(self.ledger.marks)]

    @property
    def pages(self) -> list[Page]:
        """Those that there are, in their order."""
        partition = self.store._library(self.entity)
        found = [version.document.value for version in partition.view(len(partition.log)).values() if version.document]
        return sorted((read_page(item) for item in found if item.get("kind") == "page"), key=lambda page: page.number)

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
        own = (item for item in found if KIND in item and item.get("entity") == self.entity.key)
        return [read_companion(self.entity, item) for item in own]

    @property
    def _partition(self) -> Any:
        return self.store._entity(self.entity)


def receipts(last: int, channel: str = CHANNEL) -> Sequence:
    """The sequence of the sample entity's receipts, after so many."""
    return Sequence("receipts", READER, channel, last)


def receipt(number: int, channel: str = CHANNEL) -> Place:
    """The place of a receipt."""
    return Place(channel, READER, number)


def work_for(*messages: Envelope, handle: Handle | None = None) -> Work:
    """Messages for the sample entity, whose receipts are numbered."""
    return Work(ENTITY, messages, handle or Runner(accounts(), ENTITY, ORDERED), ABSENT)


def attempt(
    strategy: Strategy,
    *messages: Envelope,
    memory: Memory | None = None,
    handle: Handle | None = None,
    retention: timedelta = RETENTION,
    routes: Routes = ORDERED,
    entity: EntityRef = ENTITY,
) -> Step[Finished | Again]:
    """An attempt on the sample entity."""
    handle = handle or Runner(accounts(), ENTITY, routes)
    return strategy.attempt(Work(entity, messages, handle, ABSENT, retention=retention), memory or Memory())


def numbers(outputs: list[Output]) -> list[int]:
    """The numbers of outputs that have one, in order."""
    return [output.place.number for output in outputs if output.place is not None]
