"""What is measured: the sample's shooting range on every strategy, and once more made of events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel

from exactlyonce import Colocated, Context, Entity, Envelope, Outbox, VersionStream, message
from exactlyonce.attempt import Strategy
from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from handlers.messages import FireAt
from handlers.shooting_range import Range, fire_at

GAME: Final = "game-1"
NUMBERED: Final = "Outbox()"
FOREIGN: Final = "Outbox(), foreign messages"
"""Names of the default strategy: where messages have numbers, and where they have none."""

_CHANNEL_BYTES: Final = 16
"""Half as many as the digits of a channel's id that the library writes."""


@message("bench.fired")
class Fired(BaseModel):
    """A shot of the round was fired."""

    attempts: int


@message("bench.moved")
class Moved(BaseModel):
    """The round was over."""

    target: int
    round: int


@dataclass(frozen=True)
class Subject:
    """A strategy to be measured.

    Attributes:
        name: in the result.
        entity: the entity type on it.
        seeding: strategy, and number of messages in one commit, by which most of a history is made. What they leave is the
            same as if the strategy had handled message after message.
        round: how many messages it takes until everything was done that is done now and then.
        bounded: whether a document bounds the history.
        sources: how many number its messages, in turn; 0 if they have no numbers.
    """

    name: str
    entity: Entity[Range]
    seeding: tuple[Strategy, int]
    round: int
    bounded: bool = False
    sources: int = 0

    def shot(self, number: int) -> Envelope:
        """The message of this number, from 1."""
        data = Json.of({"game_id": GAME, "position": number % 100})
        shot = Envelope("bench", f"shot-{number}", "shooting-range.fire-at", data)
        if not self.sources:
            return shot
        round, source = divmod(number - 1, self.sources)
        name = f"bench/{source}"
        place = Place(channel_of(name), self.entity.ref(GAME).source, round + 1)
        return replace(shot, source=name, extensions=place.extensions)


def subjects() -> tuple[Subject, ...]:
    """All that is measured."""
    return (
        Subject(NUMBERED, shooting_range(Outbox()), (Outbox(), 100), 10, sources=10),
        Subject(FOREIGN, shooting_range(Outbox()), (Outbox(), 16), 16),
        Subject("Outbox.transaction_id()", shooting_range(Outbox.transaction_id()), (Outbox(), 16), 16),
        Subject("Colocated()", shooting_range(Colocated()), (Colocated(), 5), 10),
        Subject("VersionStream()", shooting_range(VersionStream()), (VersionStream(), 5), 20),
        Subject("VersionStream(), event-sourced", _sourced(VersionStream()), (VersionStream(), 5), 20),
        Subject("Outbox.embedded()", shooting_range(Outbox.embedded()), (Outbox.embedded(), 100), 4, bounded=True),
    )


def channel_of(source: str) -> str:
    """The id of the channel that a source has to a receiver, as long as one that the library gives."""
    return hashlib.blake2b(source.encode(), digest_size=_CHANNEL_BYTES).hexdigest()


def shooting_range(strategy: Strategy) -> Entity[Range]:
    """The sample's entity type, on a strategy."""
    entity = _declared(strategy)
    entity.handles(FireAt, key=_game)(fire_at)
    return entity


def _sourced(strategy: Strategy) -> Entity[Range]:
    entity = _declared(strategy)

    @entity.applies(Fired)
    def fired(state: Range, event: Fired) -> Range:
        return Range(target=state.target, attempts=event.attempts, round=state.round)

    @entity.applies(Moved)
    def moved(state: Range, event: Moved) -> Range:
        del state
        return Range(target=event.target, round=event.round)

    @entity.handles(FireAt, key=_game)
    def fire(state: Range, given: FireAt, context: Context) -> list[Any]:
        after = fire_at(state, given, context)
        if after.round != state.round:
            return [Moved(target=after.target, round=after.round)]
        return [Fired(attempts=after.attempts)]

    return entity


def _declared(strategy: Strategy) -> Entity[Range]:
    return Entity("range", state=Range, container="games", partition_key="/gameId", strategy=strategy)


_game: Callable[[FireAt], str] = lambda given: given.game_id  # noqa: E731  # One for both.
