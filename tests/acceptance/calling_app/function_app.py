"""A function app that calls a service: errands from a queue."""

import os

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from tests.errands import counters_at, errand_queue, errands

service = counters_at(os.environ["SERVICE"])
entity = errands(service)
app = func.FunctionApp()
once = ExactlyOnce.from_environment(entity, destinations=[errand_queue, service])
once.sweep_on(app)


@app.queue_trigger(arg_name="message", queue_name="%QUEUE_errands%", connection="AzureWebJobsStorage")
async def process_errands(message: func.QueueMessage) -> None:
    """Process a message or a reply."""
    await once.process(message, entity)


@app.queue_trigger(arg_name="message", queue_name="%QUEUE_counters%", connection="AzureWebJobsStorage")
async def call_counters(message: func.QueueMessage) -> None:
    """Make a call."""
    await once.call(message)
