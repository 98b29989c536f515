"""What is measured: the sample's shooting range on every strategy, and once more made of events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from pydantic import BaseModel

from exactlyonce import Colocated, Context, Entity, Envelope, Outbox, VersionStream, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.envelope import STABLE_TIME, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from handlers.messages import FireAt
from handlers.shooting_range import Range, fire_at

GAME: Final = "game-1"
TIMED: Final = "Outbox()"
UNTIMED: Final = "Outbox(), messages without a stable time"
"""Names of the default strategy: where all copies of a message carry one time, and where nobody promises that."""
RECENT: Final = datetime.now(timezone.utc) - timedelta(days=2)
"""When the first message of an entity came about. Each comes a tenth of a second after the one before."""

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
        timed: whether its messages carry a stable time.
    """

    name: str
    entity: Entity[Range]
    seeding: tuple[Strategy, int]
    round: int
    timed: bool = False

    def shot(self, number: int) -> Envelope:
        """The message of this number, from 1."""
        data = Json.of({"game_id": GAME, "position": number % 100})
        return dated(Envelope("bench", f"shot-{number}", "shooting-range.fire-at", data), number, timed=self.timed)


def subjects() -> tuple[Subject, ...]:
    """All that is measured."""
    return (
        Subject(TIMED, shooting_range(Outbox()), (Outbox(), 20), 20, timed=True),
        Subject(UNTIMED, shooting_range(Outbox()), (Outbox(), 20), 20),
        Subject("Colocated()", shooting_range(Colocated()), (Colocated(), 5), 10),
        Subject("VersionStream()", shooting_range(VersionStream()), (VersionStream(), 5), 20),
        Subject("VersionStream(), event-sourced", _sourced(VersionStream()), (VersionStream(), 5), 20),
    )


def dated(message: Envelope, number: int, *, timed: bool) -> Envelope:
    """The message of this number, with its time, which is stable if it is timed."""
    time = RECENT + timedelta(milliseconds=100 * number)
    extensions = ((STABLE_TIME, stable_text(milliseconds(time))),) if timed else ()
    return replace(message, time=time, extensions=(*message.extensions, *extensions))


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
