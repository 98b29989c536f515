"""What is measured: the sample's shooting range on every strategy, and once more made of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from exactlyonce import Colocated, Context, Entity, Envelope, Outbox, VersionStream, message
from exactlyonce.attempt import Strategy
from exactlyonce.values.frozen_json import Json
from handlers.messages import FireAt
from handlers.shooting_range import Range, fire_at

GAME: Final = "game-1"


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
    """

    name: str
    entity: Entity[Range]
    seeding: tuple[Strategy, int]
    round: int
    bounded: bool = False


def subjects() -> tuple[Subject, ...]:
    """All that is measured."""
    return (
        Subject("Outbox()", shooting_range(Outbox()), (Outbox(), 16), 16),
        Subject("Outbox.transaction_id()", shooting_range(Outbox.transaction_id()), (Outbox(), 16), 16),
        Subject("Colocated()", shooting_range(Colocated()), (Colocated(), 5), 10),
        Subject("VersionStream()", shooting_range(VersionStream()), (VersionStream(), 5), 20),
        Subject("VersionStream(), event-sourced", _sourced(VersionStream()), (VersionStream(), 5), 20),
        Subject("Outbox.embedded()", shooting_range(Outbox.embedded()), (Outbox.embedded(), 100), 4, bounded=True),
    )


def shot(number: int) -> Envelope:
    """The message of this number, from 1."""
    data = Json.of({"game_id": GAME, "position": number % 100})
    return Envelope("bench", f"shot-{number}", "shooting-range.fire-at", data)


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
