"""The Functions app: wiring only. Business code is in `handlers`, the protocol in `exactlyonce`."""

import azure.functions as func

from exactlyonce import Destination
from exactlyonce.hosting import ExactlyOnce
from handlers.leader_board import boards, leader_board
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import ranges, shooting_range

audience = Destination("audience", receives=(Hit, Missed))  # Another application shows them on a screen.

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(ranges, boards, destinations=(shooting_range, leader_board, audience))
once.serve_on(app)  # Functions on all queues that lead to ranges and boards, and the sweeper.


@app.route("games/{game}/shots", methods=["POST"])
async def fire(req: func.HttpRequest) -> func.HttpResponse:
    """Fire a shot, and say whether it hit. Requests with one `Idempotency-Key` are one shot, and get the same answer."""
    game = req.route_params["game"]
    return await once.answer(req, ranges, lambda shot: FireAt.model_validate({**shot, "game_id": game}))


@app.route("games/{game}", methods=["GET"])
async def show_score(req: func.HttpRequest) -> func.HttpResponse:
    """A game's line on the leader board."""
    score = await once.read(boards, req.route_params["game"])
    if score is None:
        return func.HttpResponse("Nobody has fired in this game yet.", status_code=404)
    return func.HttpResponse(score.model_dump_json(), mimetype="application/json")
