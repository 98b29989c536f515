"""The function app of the club: wiring only."""

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from exactlyonce_dev_tests.club import (
    DESTINATIONS,
    ENTITIES,
    Gift,
    Join,
    Leave,
    Recharge,
    Visit,
    members,
    to_guestbooks,
    to_members,
)

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(*ENTITIES, destinations=DESTINATIONS)
once.serve_on(app)


@app.route("ask/{what}", methods=["PUT"])
async def ask(req: func.HttpRequest) -> func.HttpResponse:
    model = {"join": Join, "gift": Gift, "recharge": Recharge}[req.route_params["what"]]
    return await once.answer(req, members, lambda: model(**req.get_json()))


@app.route("leave/{id}", methods=["PUT"])
async def leave(req: func.HttpRequest) -> func.HttpResponse:
    await once.send(to_members, Leave(**req.get_json()), message_id=req.route_params["id"], source="web")
    return func.HttpResponse(status_code=202)


@app.route("visit/{id}", methods=["PUT"])
async def visit(req: func.HttpRequest) -> func.HttpResponse:
    await once.send(to_guestbooks, Visit(**req.get_json()), message_id=req.route_params["id"], source="door")
    return func.HttpResponse(status_code=202)
