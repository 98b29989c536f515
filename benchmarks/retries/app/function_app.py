"""A function app that answers the requests of the comparison: it counts their keys."""

from __future__ import annotations

import azure.functions as func
from pydantic import BaseModel

from exactlyonce import Context, Entity, Outbox, message
from exactlyonce.hosting import ExactlyOnce


class Asked(BaseModel):
    """Body of a request."""

    key: str
    amount: int


@message("retries.count")
class Count(BaseModel):
    """Count a key once more."""

    tally: str
    key: str


class Counted(BaseModel):
    """Answer to it."""

    id: str
    total: int


class Tally(BaseModel):
    """State of an entity: how often each key was counted."""

    times: dict[str, int] = {}


tallies = Entity("tally", state=Tally, container="tallies", strategy=Outbox())


@tallies.handles(Count, key=lambda given: given.tally)
def count(state: Tally, given: Count, context: Context) -> Tally:
    """Count the key, and reply with the total."""
    times = {**state.times, given.key: state.times.get(given.key, 0) + 1}
    context.reply(Counted(id=context.new_id(), total=sum(times.values())))
    return Tally(times=times)


def asked(req: func.HttpRequest) -> Count:
    """The message of a request."""
    return Count(tally=req.route_params["tally"], key=Asked.model_validate_json(req.get_body()).key)


app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
once = ExactlyOnce.from_environment(tallies)
once.sweep_on(app)


@app.route("any/{tally}", methods=["POST"])
async def under_any_key(req: func.HttpRequest) -> func.HttpResponse:
    """Take any key."""
    return await once.answer(req, tallies, lambda: asked(req))


@app.route("uuid7/{tally}", methods=["POST"])
async def under_dated_keys(req: func.HttpRequest) -> func.HttpResponse:
    """Take keys that carry their time."""
    return await once.answer(req, tallies, lambda: asked(req), keys="uuid7")
