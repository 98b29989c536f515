"""An app whose functions note what they are given. Both engines load it."""

import threading
from typing import Any, List  # noqa: UP035  # The worker does not take list[...] on every Python.

import azure.functions as func

app = func.FunctionApp()
seen: list[Any] = []
"""What the function that was called last has noted."""


def note(**facts: Any) -> None:
    """Keep what a function sees, as JSON can hold it."""
    seen[:] = [{name: getattr(value, "isoformat", lambda value=value: value)() for name, value in facts.items()}]


@app.queue_trigger(arg_name="message", queue_name="orders", connection="AzureWebJobsStorage")
async def queue(message: func.QueueMessage) -> None:
    note(
        kind=type(message).__name__,
        id=message.id,
        body=message.get_body().decode(),
        json=message.get_json(),
        dequeue_count=message.dequeue_count,
        pop_receipt=message.pop_receipt,
        inserted=message.insertion_time,
        expires=message.expiration_time,
        visible=message.time_next_visible,
    )


@app.queue_trigger(arg_name="message", queue_name="bodies", connection="AzureWebJobsStorage")
async def body(message: func.QueueMessage) -> None:
    note(body=message.get_body().decode())


@app.queue_trigger(arg_name="message", queue_name="contexts", connection="AzureWebJobsStorage")
async def context(message: func.QueueMessage, context: func.Context) -> None:
    local: Any = context.thread_local_storage
    local.mine = "kept"
    note(
        name=context.function_name,
        folder=context.function_directory,
        invocation=context.invocation_id,
        local=local.mine,
        parent=context.trace_context.trace_parent,
        state=context.trace_context.trace_state,
        retry=context.retry_context.retry_count,
        most=context.retry_context.max_retry_count,
    )


@app.queue_trigger(arg_name="message", queue_name="threads", connection="AzureWebJobsStorage")
def threads(message: func.QueueMessage, context: func.Context) -> None:
    local: Any = context.thread_local_storage
    note(main=threading.current_thread() is threading.main_thread(), own=local.invocation_id == context.invocation_id)


@app.queue_trigger(arg_name="message", queue_name="loops", connection="AzureWebJobsStorage")
async def loops(message: func.QueueMessage) -> None:
    note(main=threading.current_thread() is threading.main_thread())


@app.queue_trigger(arg_name="message", queue_name="results", connection="AzureWebJobsStorage")
async def result(message: func.QueueMessage) -> Any:
    return message.get_json()


@app.queue_trigger(arg_name="message", queue_name="failures", connection="AzureWebJobsStorage")
async def failure(message: func.QueueMessage) -> None:
    raise KeyError("detail")


@app.service_bus_queue_trigger(arg_name="message", queue_name="orders", connection="Bus")
async def bus(message: func.ServiceBusMessage) -> None:
    note(
        kind=isinstance(message, func.ServiceBusMessage),
        id=message.message_id,
        body=message.get_body().decode(),
        count=message.delivery_count,
        number=message.sequence_number,
        session=message.session_id,
        enqueued=message.enqueued_time_utc,
        properties=message.application_properties,
        content_type=message.content_type,
        lock=message.lock_token,
    )


@app.service_bus_queue_trigger(
    arg_name="messages", queue_name="batches", connection="Bus", cardinality=func.Cardinality.MANY
)
async def batch(messages: List[func.ServiceBusMessage]) -> None:  # noqa: UP006
    note(found=[[message.message_id, message.get_body().decode(), message.sequence_number] for message in messages])


@app.timer_trigger(arg_name="timer", schedule="0 */5 * * * *")
async def timer(timer: func.TimerRequest) -> None:
    note(past_due=timer.past_due, schedule=timer.schedule, status=timer.schedule_status)  # type: ignore[attr-defined]


@app.route("echo/{name}", methods=["POST"])
async def echo(req: func.HttpRequest) -> func.HttpResponse:
    note(
        method=req.method,
        url=req.url,
        params=dict(req.params),
        route=dict(req.route_params),
        header=req.headers["X-TEST"],
        body=req.get_body().decode(),
        json=req.get_json(),
    )
    return func.HttpResponse('{"done": true}', status_code=201, headers={"X-Reply": "yes"}, mimetype="application/json")


RESULTS = {
    "text": "grüße",
    "plain": func.HttpResponse("plain"),
    "empty": func.HttpResponse(status_code=204),
    "none": None,
    "dict": {"a": 1},
    "number": 7,
    "bytes": b"raw",
    "list": ["a"],
}


@app.route("results/{name}", methods=["GET"])
async def http_result(req: func.HttpRequest):  # type: ignore[no-untyped-def]  # Any other annotation is refused.
    return RESULTS[req.route_params["name"]]


@app.route("raise", methods=["GET"])
async def http_failure(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("detail")
