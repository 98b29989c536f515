"""The sample on any strategy and transport, with sessions or without, in batches or not, as settings say."""

import os

import azure.functions as func

from demo.strategies import STRATEGIES, reading
from exactlyonce import Destination
from exactlyonce.hosting import ExactlyOnce
from handlers import leader_board as board
from handlers import shooting_range as shooting
from handlers.leader_board import leader_board
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import shooting_range

ranges = shooting.ranges.using(STRATEGIES[os.environ.get("STRATEGY", "outbox")])
boards = board.boards.using(reading(ranges))
audience = Destination("audience", receives=(Hit, Missed))
# Where something happens to outcomes on their way to the board, they arrive by another queue than they are sent to.
arriving = (Destination("arrivals", to=board.boards),) if os.environ.get("ARRIVALS") == "on" else ()

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(ranges, boards, destinations=(shooting_range, leader_board, audience, *arriving))
once.serve_on(
    app,
    shooting_range,
    *(arriving or (leader_board,)),
    sessions=os.environ.get("SERVICEBUS_SESSIONS") == "on",
    batches=os.environ.get("SERVICEBUS_BATCH") == "on",
)


@app.route("games/{game}/mending", methods=["POST"])
async def mend_board(req: func.HttpRequest) -> func.HttpResponse:
    """Do what is to be done about outcomes that did not reach a game's line on the board."""
    await once.tend(boards, req.route_params["game"])
    return func.HttpResponse(status_code=204)


@app.route("games/{game}/shots", methods=["POST"])
async def fire(req: func.HttpRequest) -> func.HttpResponse:
    """Fire a shot, and say whether it hit."""
    game = req.route_params["game"]
    return await once.answer(req, ranges, lambda shot: FireAt.model_validate({**shot, "game_id": game}))


@app.route("games/{game}", methods=["GET"])
async def show_score(req: func.HttpRequest) -> func.HttpResponse:
    """A game's line on the leader board."""
    score = await once.read(boards, req.route_params["game"])
    if score is None:
        return func.HttpResponse("Nobody has fired in this game yet.", status_code=404)
    return func.HttpResponse(score.model_dump_json(), mimetype="application/json")
