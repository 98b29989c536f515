"""The messages of the shooting range. Each travels under its registered name."""

from pydantic import BaseModel, Field

from exactlyonce import message


@message("shooting-range.fire-at")
class FireAt(BaseModel):
    """Somebody shoots at a position of a game's target."""

    game_id: str = Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")
    position: int = Field(ge=0, lt=100)


class Outcome(BaseModel):
    """What became of a shot: the `attempt`-th of its game's `round`, both from 0."""

    id: str
    game_id: str
    round: int
    attempt: int


@message("shooting-range.hit")
class Hit(Outcome):
    """The shot hit."""


@message("shooting-range.missed")
class Missed(Outcome):
    """The shot missed."""


class Fired(BaseModel):
    """Answer to who fired: the id of the outcome, and whether the shot hit."""

    id: str
    hit: bool
