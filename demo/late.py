"""A year later: copies come of two shots that a game took a simulated year ago.

The copy with a number is dropped: its game knows the number for ever. The foreign one is dropped while its game has its entry
or its record, and refused for its age after that. Neither is applied again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Final

import azure.functions as func

from demo.shots import SOURCE
from demo.stack import Stack, create_containers
from exactlyonce import Destination, Envelope
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.config.connections import StorageConnection
from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from handlers.messages import Hit, Missed
from handlers.shooting_range import ranges

YEAR: Final = 365 * 86_400
_DATABASE: Final = "a-year-later"
_GAME: Final = "old-game"
DROPPED: Final = "dropped"
APPLIED: Final = "applied again"


@dataclass(frozen=True, slots=True)
class Late:
    """What became of copies that came a year later.

    Attributes:
        numbered: of the message with a number.
        foreign: of the one without.
    """

    numbered: str
    foreign: str

    @property
    def problem(self) -> str | None:
        """What is wrong; None if the one was dropped, and the other was not applied again."""
        if self.numbered == DROPPED and self.foreign != APPLIED:
            return None
        return f"A year later the copy with a number was {self.numbered}, and the foreign one {self.foreign}."


async def a_year_later(stack: Stack) -> Late:
    """Take two shots, move the account's clock on by a year, and take them again in a process that remembers nothing."""
    create_containers(stack.cosmos, _DATABASE)
    foreign, numbered = _shots()
    for shot in (foreign, numbered):
        await _take(stack, shot)
    stack.cosmos.advance_clock(YEAR)
    return Late(await _take(stack, numbered), await _take(stack, foreign))


def _shots() -> tuple[Envelope, Envelope]:
    data = Json.of({"game_id": _GAME, "position": 0})
    foreign = Envelope(SOURCE, "foreign", "shooting-range.fire-at", data, datetime.now(timezone.utc))
    place = Place("c1", ranges.ref(_GAME).source, 1)
    return foreign, replace(foreign, id="numbered", extensions=place.extensions)


async def _take(stack: Stack, shot: Envelope) -> str:
    """Let a fresh process take a shot; return what became of it."""
    settings = Settings.model_validate(
        {
            "COSMOS__accountEndpoint": stack.cosmos.endpoint,
            "COSMOS__accountKey": stack.cosmos.key,
            "COSMOS__database": _DATABASE,
        }
    )
    once = ExactlyOnce(
        [ranges],
        destinations=[Destination("costs", receives=(Hit, Missed))],
        settings=settings,
        storage=StorageConnection(stack.storage.connection_string),
    )
    before = max((one.n for one in stack.cosmos.requests(0)), default=0)
    outcome = DROPPED
    try:
        await once.process(func.QueueMessage(id=shot.id, body=shot.to_json().text.encode()), ranges)
    except ExactlyOnceError as error:
        outcome = f"refused ({type(error).__name__})"
    finally:
        await once.close()
    saved = (
        one.applied for one in stack.cosmos.requests(before) if (one.database, one.container) == (_DATABASE, "games")
    )
    return APPLIED if any(saved) else outcome
