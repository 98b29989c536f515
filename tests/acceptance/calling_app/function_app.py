"""A function app that calls a service: errands from a queue."""

import os

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from tests.errands import counters_at, errand_queue, errands

service = counters_at(os.environ["SERVICE"])
entity = errands(service)
app = func.FunctionApp()
once = ExactlyOnce.from_environment(entity, destinations=[errand_queue, service])
once.serve_on(app)
