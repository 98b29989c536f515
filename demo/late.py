"""A year later: copies come of a shot that a game took long ago, to processes that remember nothing.

The copy that comes within the retention is dropped, since its game has the mark of the shot. The one that comes a year later is
dropped as well while nothing else has come to its game, and else refused for its age. Neither is applied again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

import azure.functions as func

from demo.shots import SOURCE
from demo.stack import Stack, create_containers
from exactlyonce import Destination, Envelope
from exactlyonce.errors import ExactlyOnceError, TooOldToJudge
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.config.connections import StorageConnection
from exactlyonce.values.frozen_json import Json
from handlers.messages import Hit, Missed
from handlers.shooting_range import ranges

WEEKS: Final = 21 * 86_400
YEAR: Final = 365 * 86_400
_DATABASE: Final = "a-year-later"
_GAME: Final = "old-game"
DROPPED: Final = "dropped"
APPLIED: Final = "applied again"
REFUSED: Final = f"refused ({TooOldToJudge.__name__})"


@dataclass(frozen=True, slots=True)
class Late:
    """What became of copies that came late.

    Attributes:
        weeks: of the one after three weeks.
        year: of the one after a year.
    """

    weeks: str
    year: str

    @property
    def problem(self) -> str | None:
        """What is wrong; None if the first was dropped, and the second not applied again."""
        if self.weeks == DROPPED and self.year in (DROPPED, REFUSED):
            return None
        return f"After three weeks a copy was {self.weeks}, and after a year {self.year}."


async def a_year_later(stack: Stack) -> Late:
    """Take a shot, and again after the account's clock was moved on, each time in a process that remembers nothing."""
    create_containers(stack.cosmos, _DATABASE)
    data = Json.of({"game_id": _GAME, "position": 0})
    now = datetime.fromtimestamp(stack.cosmos.now(), timezone.utc)
    shot = Envelope(SOURCE, "late", "shooting-range.fire-at", data, now)
    await _take(stack, shot)
    stack.cosmos.advance_clock(WEEKS)
    weeks = await _take(stack, shot)
    stack.cosmos.advance_clock(YEAR)
    return Late(weeks, await _take(stack, shot))


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
    before = max((request.n for request in stack.cosmos.requests(0)), default=0)
    outcome = DROPPED
    try:
        await once.process(func.QueueMessage(id=shot.id, body=shot.to_json().text.encode()), ranges)
    except ExactlyOnceError as error:
        outcome = f"refused ({type(error).__name__})"
    finally:
        await once.close()
    saved = (
        request.applied
        for request in stack.cosmos.requests(before)
        if (request.database, request.container) == (_DATABASE, "games")
    )
    return APPLIED if any(saved) else outcome
