"""The annotations of a function, checked as the worker does when it loads an app. One that it refuses stops the whole app."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import azure.functions as func
from azure.functions.http import HttpRequestConverter, HttpResponseConverter
from azure.functions.queue import QueueMessageInConverter
from azure.functions.servicebus import ServiceBusMessageInConverter
from azure.functions.timer import TimerRequestConverter

from .errors import AppError

CONTEXT_PARAMETER = "context"
_CONVERTERS: dict[str, tuple[Any, str]] = {
    "httpTrigger": (HttpRequestConverter, "func.HttpRequest"),
    "queueTrigger": (QueueMessageInConverter, "func.QueueMessage"),
    "serviceBusTrigger": (
        ServiceBusMessageInConverter,
        # It does not know `list[...]` on every Python.
        "func.ServiceBusMessage, or typing.List[func.ServiceBusMessage] for batches",
    ),
    "timerTrigger": (TimerRequestConverter, "func.TimerRequest"),
}


def check_annotations(call: Callable[..., Any], argument: str, trigger: str) -> bool:
    """Check the parameters and annotations of a function; return whether it wants a `func.Context` too.

    Args:
        argument: the parameter that receives the trigger's value.
        trigger: its type, such as `queueTrigger`.

    Raises:
        AppError: a parameter or an annotation that the worker does not take.
    """
    takes_context = _takes_context(call, argument)
    annotations = get_type_hints(call)
    converter, wanted = _CONVERTERS[trigger]
    if argument in annotations and not _fits(converter.check_input_type_annotation, annotations[argument]):
        # The worker passes texts to `str`, which is not served here, and refuses the others.
        raise AppError(f"'{argument}' cannot be what its annotation says: write {wanted}.")
    if takes_context and annotations.get(CONTEXT_PARAMETER, func.Context) is not func.Context:
        raise AppError("'context' cannot be what its annotation says: write func.Context.")
    returns = annotations.get("return", str) if trigger == "httpTrigger" else str
    if not _fits(HttpResponseConverter.check_output_type_annotation, returns):
        raise AppError(
            "the worker refuses the return that its annotation says: write '-> func.HttpResponse' or '-> str'."
        )
    return takes_context


def _fits(check: Callable[[Any], bool], annotation: object) -> bool:
    try:
        return check(annotation)
    except TypeError:  # It is no class.
        return False


def _takes_context(call: Callable[..., Any], argument: str) -> bool:
    parameters = inspect.signature(call).parameters
    if argument not in parameters:
        raise AppError(f"its trigger passes '{argument}', which is not among its parameters.")
    unknown = parameters.keys() - {argument, CONTEXT_PARAMETER}
    if unknown:
        raise AppError(f"no binding provides its parameters {', '.join(sorted(unknown))}.")
    return CONTEXT_PARAMETER in parameters and argument != CONTEXT_PARAMETER
