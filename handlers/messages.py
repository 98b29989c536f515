"""The messages of the shooting range. Each travels under its registered name."""

from pydantic import BaseModel, Field

from exactlyonce import message


@message("shooting-range.fire-at")
class FireAt(BaseModel):
    """Somebody shoots at a position of a game's target."""

    game_id: str = Field(min_length=1)
    position: int = Field(ge=0, lt=100)


@message("shooting-range.hit")
class Hit(BaseModel):
    """The shot hit."""

    id: str
    game_id: str


@message("shooting-range.missed")
class Missed(BaseModel):
    """The shot missed."""

    id: str
    game_id: str
