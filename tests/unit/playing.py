"""Drives a strategy by hand: a script that answers its effects, and keeps what it asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any, TypeVar

from exactlyonce import Outbox
from exactlyonce.attempt import Again, Finished, Handle, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundStaged,
    HasRecords,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import Entry, Ledger, read_entity
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import RETENTION
from tests.samples import accounts

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ENTITY = accounts().ref("a")
ROUTES = Routes({"receipts": 1024 * 1024})
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


class Player:
    """Plays a strategy to its end; what is not said in a play is answered by `usual`.

    Attributes:
        asked: what the last play asked for, also where it raised.
    """

    asked: list[Effect[Any]]

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

    def usual(self, effect: Effect[Any]) -> Any:
        """What an effect is answered."""
        raise NotImplementedError


class Script(Player):
    """Answers as a store and queues without trouble would; keeps the document saved last."""

    def __init__(self, document: Json | None = None, *, timestamp: int = 1_000) -> None:
        self.document = document
        self.timestamp = timestamp
        self.records: frozenset[str] = frozenset()
        self.library_position = 0
        self._etags = count(1)
        self._transactions = count(1)
        self.etag = None if document is None else "etag-0"

    @property
    def ledger(self) -> Ledger:
        ledger = read_entity(ENTITY, self.document).ledger
        assert ledger is not None
        return ledger

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.ledger.entries

    def usual(self, effect: Effect[Any]) -> Any:  # noqa: C901, PLR0911
        """What a world without trouble answers."""
        match effect:
            case Begin(messages=messages, more=more):
                return Begun(AT, tuple(f"tx-{next(self._transactions)}" for _ in range(len(messages) + more)))
            case LoadEntity():
                return Loaded(self.document, self.etag, self.timestamp if self.document else 0, "0:-1#100")
            case SaveEntity(document=document):
                self.document, self.etag = document, f"etag-{next(self._etags)}"
                return Saved(self.etag, "0:-1#101")
            case FindProcessed(messages=messages):
                return Found(self.records & frozenset(messages), self._library_token)
            case HasRecords():
                return bool(self.records)
            case WriteProcessed(records=records):
                self.records |= {record.message for record in records}
                return Written(self._library_written())
            case Stage() | Park():
                return Written(self._library_written())
            case LoadStaged():
                return FoundStaged(())
            case Publish():
                return PUBLISHED
            case LoadParked():
                return FoundParked(None, None, None)
            case DeleteStaged() | DeleteProcessed() | DeleteParked():
                return None
            case _:
                raise AssertionError(f"not expected: {effect}")

    @property
    def _library_token(self) -> str:
        return f"0:-1#{self.library_position}"

    def _library_written(self) -> str:
        self.library_position += 1
        return self._library_token


def attempt(
    strategy: Outbox,
    *messages: Envelope,
    memory: Memory | None = None,
    handle: Handle | None = None,
    retention: timedelta = RETENTION,
) -> Step[Finished | Again]:
    """An attempt on the sample entity."""
    handle = handle or Runner(accounts(strategy), ENTITY, ROUTES)
    work = Work(ENTITY, messages, handle, Json('{"id":"a","owner":"a"}'), retention=retention)
    return strategy.attempt(work, memory or Memory())
