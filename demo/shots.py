"""The shots to fire, and in which order and how often their messages are sent, or their requests made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from demo.options import Options
from exactlyonce import Envelope
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.values.frozen_json import Json

SOURCE: Final = "demo"
HTTP_SOURCE: Final = "http"
"""Source of what comes by a request."""
HTTP_EVERY: Final = 10
"""One in so many shots is fired over HTTP."""
DUPLICATES: Final = 0.25
"""Share of the shots that are sent again, at any later time; some of them more than once."""
DISPLACEMENT: Final = 40
"""How many places a message may be sent too early or too late."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One shot: what it is known by, what it says, and when it was fired."""

    id: str
    game: str
    position: int
    time: datetime = field(default_factory=SystemClock().now, compare=False)
    over_http: bool = False

    @property
    def source(self) -> str:
        """Who sends it."""
        return HTTP_SOURCE if self.over_http else SOURCE

    @property
    def envelope(self) -> Envelope:
        """The message, the same in every copy."""
        data = Json.of({"game_id": self.game, "position": self.position})
        return Envelope(self.source, self.id, "shooting-range.fire-at", data, self.time)


def plan_shots(options: Options, random: Random) -> tuple[Shot, ...]:
    """The distinct shots. Positions are few, so that some hit: a new game's target stands at 0. The naive app has no HTTP."""
    return tuple(
        Shot(
            f"shot-{number}",
            f"game-{random.randrange(options.games)}",
            random.choice((0, 0, 17, 42, 99)),
            over_http=options.strategy != "naive" and number % HTTP_EVERY == 0,
        )
        for number in range(options.shots)
    )


def plan_deliveries(shots: tuple[Shot, ...], options: Options, random: Random) -> tuple[Shot, ...]:
    """Shots in the order in which their messages are sent: reordered, and some of them repeatedly."""
    places = [(number + random.uniform(0, DISPLACEMENT), shot) for number, shot in enumerate(shots)]
    if options.faults:
        for _ in range(round(len(shots) * DUPLICATES)):
            number = random.randrange(len(shots))
            places.append((random.uniform(number, len(shots) + DISPLACEMENT), shots[number]))
    places.sort(key=lambda place: place[0])
    return tuple(shot for _, shot in places)
