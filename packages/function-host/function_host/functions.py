"""What the host knows of a function: its trigger, checked when the app is loaded."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.functions.decorators.function_app import Function as DeclaredFunction

from .annotations import check_annotations
from .app_settings import AppSettings
from .connections import Connection, find_connection
from .errors import AppError, HostError
from .routes import Route
from .schedule import Schedule
from .service_bus.connection import find_service_bus
from .service_bus.receiver import Entity

_HTTP_OUTPUT = ("http", "$return")


@dataclass(frozen=True, slots=True)
class QueueTrigger:
    """Serve the messages of a storage queue."""

    queue: str
    connection: Connection


@dataclass(frozen=True, slots=True)
class ServiceBusTrigger:
    """Serve the messages of a Service Bus entity.

    Attributes:
        many: whether the function takes batches.
        binary: whether bodies are bytes; otherwise they travel as texts.
        auto_complete: whether success completes a message; None for what host.json says.
    """

    entity: Entity
    connection: Connection
    many: bool
    binary: bool
    auto_complete: bool | None


@dataclass(frozen=True, slots=True)
class TimerTrigger:
    """Run on a schedule, and once at start if asked to."""

    schedule: Schedule
    run_on_startup: bool


@dataclass(frozen=True, slots=True)
class HttpTrigger:
    """Answer requests; no methods at all means every method."""

    route: Route
    methods: frozenset[str]


Trigger = QueueTrigger | ServiceBusTrigger | TimerTrigger | HttpTrigger


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the app.

    Attributes:
        argument: the parameter that receives the trigger's value.
        takes_context: whether it wants a `func.Context` too.
    """

    name: str
    argument: str
    call: Callable[..., Any]
    takes_context: bool
    trigger: Trigger

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop; otherwise it runs in the pool of threads."""
        return inspect.iscoroutinefunction(self.call)

    @property
    def directory(self) -> str:
        """Folder of the file that defines it."""
        return str(Path(inspect.getfile(self.call)).parent)


def describe_function(declared: DeclaredFunction, settings: AppSettings) -> Function:
    """Check a declared function and describe it.

    Raises:
        AppError: it has a binding that this host does not serve, or parameters that do not fit its bindings.
        SettingsError: its connection, or a setting its binding refers to, is not set.
    """
    name = declared.get_function_name() or ""
    try:
        trigger, argument = _trigger(declared, name, settings)
        call = declared.get_user_function()
        takes_context = check_annotations(call, argument, _kind_of(declared))
        return Function(name, argument, call, takes_context, trigger)
    except HostError as error:
        raise type(error)(f"Function '{name}': {error}") from error


def _kind_of(declared: DeclaredFunction) -> str:
    """The type of its trigger, such as `queueTrigger`."""
    return str(getattr(declared.get_trigger(), "type", None))


def _trigger(declared: DeclaredFunction, name: str, settings: AppSettings) -> tuple[Trigger, str]:
    trigger = declared.get_trigger()
    if trigger is None:
        raise AppError("it has no trigger; give it one, such as @app.queue_trigger.")
    for binding in declared.get_bindings():
        if binding is not trigger and not (trigger.type == "httpTrigger" and _is_http_output(binding)):
            raise AppError(
                f"the binding '{binding.name}' of type '{binding.type}' is not supported here: "
                "use a client of the service in the function, or run the app under 'func start'."
            )
    properties = trigger.get_dict_repr()
    match trigger.type:
        case "queueTrigger":
            queue = settings.resolve(properties["queueName"]).lower()
            return QueueTrigger(queue, find_connection(settings, properties.get("connection"))), trigger.name
        case "serviceBusTrigger":
            return _service_bus_trigger(properties, settings), trigger.name
        case "timerTrigger":
            schedule = Schedule(settings.resolve(properties["schedule"]))
            return TimerTrigger(schedule, bool(properties.get("runOnStartup"))), trigger.name
        case "httpTrigger":
            methods = frozenset(
                str(getattr(method, "value", method)).upper() for method in properties.get("methods", ())
            )
            route = Route.parse(settings.resolve(properties.get("route") or name))
            return HttpTrigger(route, methods), trigger.name
    raise AppError(
        f"the trigger '{trigger.type}' is not supported here (only storage queues, Service Bus, timers and HTTP): "
        "run it under 'func start'."
    )


def _service_bus_trigger(properties: dict[str, Any], settings: AppSettings) -> ServiceBusTrigger:
    subscription = properties.get("subscriptionName")
    return ServiceBusTrigger(
        Entity(
            name=settings.resolve(properties.get("queueName") or properties["topicName"]),
            subscription=settings.resolve(subscription) if subscription else None,
            sessions=_is(properties.get("isSessionsEnabled"), "true"),
        ),
        find_service_bus(settings, properties.get("connection")),
        many=_is(properties.get("cardinality"), "many"),
        binary=_is(getattr(properties.get("dataType"), "name", None), "binary"),
        auto_complete=properties.get("autoCompleteMessages"),
    )


def _is(given: object, text: str) -> bool:
    """Whether a binding's property says so; some are enumerations, and all may be texts in any case."""
    return str(getattr(given, "value", given)).lower() == text


def _is_http_output(binding: Any) -> bool:
    return (binding.type, binding.name) == _HTTP_OUTPUT
