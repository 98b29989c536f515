"""The leader board: how often each game's target was hit and missed. A read model, built from the range's events."""

from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox
from handlers.messages import Hit, Missed


class Score(BaseModel):
    """State of one game's line on the board."""

    hits: int = 0
    misses: int = 0


boards = Entity("board", state=Score, container="boards", partition_key="/gameId", strategy=Outbox())

leader_board = Destination("leader-board", receives=(Hit, Missed))


@boards.handles(Hit, key=lambda hit: hit.game_id)
def count_hit(state: Score, hit: Hit, context: Context) -> Score:
    """One more hit."""
    return state.model_copy(update={"hits": state.hits + 1})


@boards.handles(Missed, key=lambda missed: missed.game_id)
def count_miss(state: Score, missed: Missed, context: Context) -> Score:
    """One more miss."""
    return state.model_copy(update={"misses": state.misses + 1})
