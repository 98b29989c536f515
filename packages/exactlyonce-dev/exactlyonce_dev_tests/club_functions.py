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
    boards,
    guestbooks,
    members,
    to_guestbooks,
    to_members,
)

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(*ENTITIES, destinations=DESTINATIONS)
once.sweep_on(app)


@app.queue_trigger(arg_name="message", queue_name="members", connection="AzureWebJobsStorage")
async def process_members(message: func.QueueMessage) -> None:
    await once.process(message, members)


@app.queue_trigger(arg_name="message", queue_name="members-poison", connection="AzureWebJobsStorage")
async def settle_members(message: func.QueueMessage) -> None:
    await once.settle(message, members, queue="members")


@app.queue_trigger(arg_name="message", queue_name="boards", connection="AzureWebJobsStorage")
async def process_boards(message: func.QueueMessage) -> None:
    await once.process(message, boards)


@app.queue_trigger(arg_name="message", queue_name="guestbooks", connection="AzureWebJobsStorage")
async def process_guestbooks(message: func.QueueMessage) -> None:
    await once.process(message, guestbooks)


@app.queue_trigger(arg_name="message", queue_name="payments", connection="AzureWebJobsStorage")
async def call_payments(message: func.QueueMessage) -> None:
    await once.call(message)


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
