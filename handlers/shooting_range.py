"""The shooting range: a target that moves after every round."""

from typing import Final

from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox
from handlers.messages import FireAt, Fired, Hit, Missed

SHOTS_IN_A_ROUND: Final = 5
POSITIONS: Final = 100


class Range(BaseModel):
    """State of one game."""

    target: int = 0
    attempts: int = 0
    round: int = 0


ranges = Entity("range", state=Range, container="games", partition_key="/gameId", strategy=Outbox())


def game_of(shot: FireAt) -> str:
    """The game that a shot is fired in."""
    return shot.game_id


shooting_range = Destination("shooting-range", to=ranges)


@ranges.handles(FireAt, key=game_of)
def fire_at(state: Range, shot: FireAt, context: Context) -> Range:
    """Announce whether the shot hit, answer the request if there is one, and move the target when the round is over."""
    id, hit = context.new_id(), shot.position == state.target
    outcome = Hit if hit else Missed
    context.announce(outcome(id=id, game_id=shot.game_id, round=state.round, attempt=state.attempts))
    context.reply(Fired(id=id, hit=hit), status=201, headers={"Location": f"/api/games/{shot.game_id}"})
    if state.attempts + 1 >= SHOTS_IN_A_ROUND:
        return Range(target=context.random.randrange(POSITIONS), round=state.round + 1)
    return Range(target=state.target, attempts=state.attempts + 1, round=state.round)
