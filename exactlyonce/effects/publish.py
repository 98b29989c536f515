"""Publishing outputs."""

from __future__ import annotations

from dataclasses import dataclass
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
class Publish(Effect[Published | Literal[NoAnswer.UNKNOWN]]):
    """Hand outputs to their transports. UNKNOWN if any of them may not have arrived.

    What was committed so long ago that its receivers could not judge it any more is parked instead, which pays what is owed.

    Attributes:
        outputs: to be published.
        owed: the entity that committed them before; None for those that have just been committed.
    """

    outputs: tuple[Output, ...]
    owed: EntityRef | None = None
