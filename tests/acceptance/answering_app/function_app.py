"""A function app that answers requests: counters over HTTP."""

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from tests.answering import Add, added_queue, counters

entity = counters()
app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
once = ExactlyOnce.from_environment(entity, destinations=[added_queue])
once.sweep_on(app)


@app.route("counters/{counter}", methods=["POST"])
async def add(req: func.HttpRequest) -> func.HttpResponse:
    """Add an amount, and reply with the total."""
    counter = req.route_params["counter"]
    return await once.answer(req, entity, lambda: Add(counter, **req.get_json()))


@app.route("counters/{counter}/adds", methods=["POST"])
async def open_add(req: func.HttpRequest) -> func.HttpResponse:
    """Open a request to add an amount."""
    counter = req.route_params["counter"]
    return await once.open_request(req, entity, lambda: Add(counter, **req.get_json()))


@app.route("counters/{counter}/adds/{request}", methods=["POST", "GET", "HEAD", "DELETE"])
async def serve_add(req: func.HttpRequest) -> func.HttpResponse:
    """Add, say once more what the total was, or forget it."""
    return await once.serve_request(req, entity, req.route_params["counter"])
