"""The Functions app: wiring only. Business code is in `handlers`, the protocol in `exactlyonce`."""

import os
from typing import Any, List  # noqa: UP035  # The worker does not take list[...] on every Python.

import azure.functions as func
from pydantic import BaseModel, Field

from exactlyonce import Destination
from exactlyonce.hosting import ExactlyOnce
from handlers import leader_board as board
from handlers import shooting_range as shooting
from handlers.leader_board import leader_board
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import shooting_range
from handlers.strategies import reading, writing

audience = Destination("audience", receives=(Hit, Missed))  # Another application shows them on a screen.

# The sample runs on any strategy. An application of yours names one where it declares the entity, and keeps it.
ranges = shooting.ranges.using(writing(os.environ.get("STRATEGY", "outbox")))
boards = board.boards.using(reading(ranges))

# It runs on either transport, too: an application of yours has the triggers of one.
transport = os.environ.get("TRANSPORT", "storage")
sessions = os.environ.get("SERVICEBUS_SESSIONS", "off") == "on"
in_batches = os.environ.get("SERVICEBUS_BATCH", "off") == "on"

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(
    ranges, boards, destinations=(shooting_range, leader_board, audience), transport=transport
)
queues, bus, batches, dead_letters = (func.Blueprint() for _ in range(4))  # type: ignore[no-untyped-call]


@queues.queue_trigger(arg_name="message", queue_name="shooting-range", connection="AzureWebJobsStorage")
async def process_shots(message: func.QueueMessage) -> None:
    """Every shot changes its game once and announces one outcome."""
    await once.process(message, ranges)


@queues.queue_trigger(arg_name="message", queue_name="leader-board", connection="AzureWebJobsStorage")
async def process_outcomes(message: func.QueueMessage) -> None:
    """Every outcome counts once."""
    await once.process(message, boards)


@queues.queue_trigger(arg_name="message", queue_name="shooting-range-poison", connection="AzureWebJobsStorage")
async def settle_shots(message: func.QueueMessage) -> None:
    """A shot that its queue gave up on is finished, comes again later, or is parked."""
    await once.settle(message, ranges, queue="shooting-range")


@queues.queue_trigger(arg_name="message", queue_name="leader-board-poison", connection="AzureWebJobsStorage")
async def settle_outcomes(message: func.QueueMessage) -> None:
    """So is an outcome."""
    await once.settle(message, boards, queue="leader-board")


@bus.service_bus_queue_trigger(
    arg_name="message", queue_name="shooting-range", connection="ServiceBus", is_sessions_enabled=sessions
)
async def process_shots_of_bus(message: func.ServiceBusMessage) -> None:
    """The same on Service Bus."""
    await once.process(message, ranges)


@bus.service_bus_queue_trigger(
    arg_name="message", queue_name="leader-board", connection="ServiceBus", is_sessions_enabled=sessions
)
async def process_outcomes_of_bus(message: func.ServiceBusMessage) -> None:
    """The same on Service Bus."""
    await once.process(message, boards)


@batches.service_bus_queue_trigger(
    arg_name="messages",
    queue_name="shooting-range",
    connection="ServiceBus",
    is_sessions_enabled=sessions,
    cardinality=func.Cardinality.MANY,
)
async def process_batches_of_shots(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006
    """Shots of one game that come together share a commit."""
    await once.process_batch(messages, ranges, queue="shooting-range")


@batches.service_bus_queue_trigger(
    arg_name="messages",
    queue_name="leader-board",
    connection="ServiceBus",
    is_sessions_enabled=sessions,
    cardinality=func.Cardinality.MANY,
)
async def process_batches_of_outcomes(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006
    """So do outcomes."""
    await once.process_batch(messages, boards, queue="leader-board")


@dead_letters.service_bus_queue_trigger(
    arg_name="message", queue_name="shooting-range/$DeadLetterQueue", connection="ServiceBus"
)
async def settle_dead_shots(message: func.ServiceBusMessage) -> None:
    """A shot that Service Bus gave up on is finished, comes again later, or is parked."""
    await once.settle(message, ranges, queue="shooting-range")


@dead_letters.service_bus_queue_trigger(
    arg_name="message", queue_name="leader-board/$DeadLetterQueue", connection="ServiceBus"
)
async def settle_dead_outcomes(message: func.ServiceBusMessage) -> None:
    """So is an outcome."""
    await once.settle(message, boards, queue="leader-board")


if transport == "servicebus":
    app.register_functions(batches if in_batches else bus)
    app.register_functions(dead_letters)
else:
    app.register_functions(queues)


# Every minute: what has been owed for long is published, and stuck lines of the board are looked after.
once.sweep_on(app)


@app.route("games/{game}/mending", methods=["POST"])
async def mend_board(req: func.HttpRequest) -> func.HttpResponse:
    """Do what is to be done about outcomes that did not reach a game's line on the board."""
    await once.tend(boards, req.route_params["game"])
    return func.HttpResponse(status_code=204)


class Shot(BaseModel):
    """Body of a request to fire."""

    position: int = Field(ge=0, lt=100)


@app.route("games/{game}/shots", methods=["POST"])
async def fire(req: func.HttpRequest) -> func.HttpResponse:
    """Fire a shot, and say whether it hit. Requests with one `Idempotency-Key` are one shot, and get the same answer."""

    def shot(content: Any) -> FireAt:
        return FireAt(game_id=req.route_params["game"], position=Shot.model_validate(content).position)

    return await once.answer(req, ranges, shot)


@app.route("games/{game}", methods=["GET"])
async def show_score(req: func.HttpRequest) -> func.HttpResponse:
    """A game's line on the leader board."""
    score = await once.read(boards, req.route_params["game"])
    if score is None:
        return func.HttpResponse("Nobody has fired in this game yet.", status_code=404)
    return func.HttpResponse(score.model_dump_json(), mimetype="application/json")
