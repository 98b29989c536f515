"""The leader board: how a game's shots went. A read model, built from the range's events in the order of the shots."""

from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Resequencer
from handlers.messages import Hit, Missed, Outcome


class Score(BaseModel):
    """State of one game's line on the board. `streak` and `best` count hits in a row, now and at most: order matters."""

    hits: int = 0
    misses: int = 0
    streak: int = 0
    best: int = 0


def game_of(outcome: Outcome) -> str:
    """The game that an outcome belongs to."""
    return outcome.game_id


boards = Entity("board", state=Score, container="boards", partition_key="/gameId", strategy=Resequencer())

# A game numbers the outcomes for its line, since boards take messages in order. So the line knows every copy, however late.
leader_board = Destination("leader-board", receives=(Hit, Missed), to=boards)


@boards.handles(Hit, key=game_of)
def count_hit(state: Score, hit: Hit, context: Context) -> Score:
    """One more hit."""
    streak = state.streak + 1
    return Score(hits=state.hits + 1, misses=state.misses, streak=streak, best=max(state.best, streak))


@boards.handles(Missed, key=game_of)
def count_miss(state: Score, missed: Missed, context: Context) -> Score:
    """One more miss, and the end of a streak."""
    return Score(hits=state.hits, misses=state.misses + 1, best=state.best)
