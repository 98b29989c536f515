"""Publishing outputs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.records.outputs import Output
from exactlyonce.values.identity import EntityRef


class Published(Enum):
    """Every output was accepted by its transport."""

    PUBLISHED = "published"


PUBLISHED: Final = Published.PUBLISHED


@dataclass(frozen=True, slots=True)
class Owed:
    """Whose the outputs are that were committed before, and since when they may be owed.

    Attributes:
        entity: that committed them.
        since: time of the oldest of their commits.
    """

    entity: EntityRef
    since: datetime


@dataclass(frozen=True, slots=True)
class Publish(Effect[Published | Literal[NoAnswer.UNKNOWN]]):
    """Hand outputs to their transports. UNKNOWN if any of them may not have arrived.

    What was committed so long ago that its receivers could not judge it any more is parked instead, which pays what is owed.

    Attributes:
        outputs: to be published.
        owed: if they were committed before; None for those that have just been.
    """

    outputs: tuple[Output, ...]
    owed: Owed | None = None
