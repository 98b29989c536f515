"""A small entity for tests of unique keys: people of one company, each with an email of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from exactlyonce import Context, Destination, Entity, EntityKey, Envelope, Outbox, message
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT

UNIQUE_KEYS: Final = {"person": [["/email"]]}


@message("person.move")
@dataclass
class Move:
    person: str
    email: str


@message("person.leave")
@dataclass
class Leave:
    person: str


@message("person.moved")
@dataclass
class Moved:
    moves: int


@dataclass
class Person:
    email: str = ""
    moves: int = 0


welcomes = Destination("welcomes", receives=(Moved,))


def people() -> Entity[Person]:
    entity = Entity("person", state=Person, container="people", partition_key="/company", strategy=Outbox())

    @entity.handles(Move, key=lambda move: EntityKey(move.person, "acme"))
    def move(state: Person, given: Move, context: Context) -> Person:
        context.send("welcomes", Moved(state.moves + 1))
        return Person(given.email, state.moves + 1)

    @entity.handles(Leave, key=lambda leave: EntityKey(leave.person, "acme"))
    def leave(state: Person, given: Leave, context: Context) -> Person:
        context.delete()
        return state

    return entity


def move(id: str, person: str, email: str) -> Envelope:
    return Envelope("web", id, "person.move", Json.of({"person": person, "email": email}), SENT)


def leave(id: str, person: str) -> Envelope:
    return Envelope("web", id, "person.leave", Json.of({"person": person}), SENT)
