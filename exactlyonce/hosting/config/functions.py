"""Functions on a function app: for the queues that lead to an application, and the timer of the sweeper."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, List  # noqa: UP035  # The worker does not take list[...] on every Python.

import azure.functions as func

from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.config.settings import Settings

Taking = Callable[[Any], Awaitable[object]]
_NO_LETTER: Final = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True, slots=True)
class Served:
    """A destination whose messages the application's functions take.

    Attributes:
        verb: the first part of the function's name.
        take: awaits a delivered message, or the messages of a batch.
        settle: awaits a message that the queue gave up on.
        subscription: the subscription, for a topic; None for a queue.
    """

    name: str
    verb: str
    take: Taking
    settle: Taking
    sessions: bool = False
    batches: bool = False
    subscription: str | None = None

    def register(self, app: func.FunctionApp | func.Blueprint, settings: Settings) -> None:
        """Register a function on the queue, and a function on the poison queue or the dead letters."""
        queue, ending = settings.destinations.get(self.name, self.name), _NO_LETTER.sub("_", self.name)
        taking, settling = partial(_function, f"{self.verb}_{ending}"), partial(_function, f"settle_{ending}")
        if settings.transport == "storage":
            on_storage = partial(app.queue_trigger, arg_name="message", connection=settings.connection)
            on_storage(queue_name=queue)(taking(self.take, func.QueueMessage))
            on_storage(queue_name=f"{queue}-poison")(settling(self.settle, func.QueueMessage))
            return
        options: dict[str, Any] = {
            "arg_name": "messages" if self.batches else "message",
            "connection": settings.service_bus,
            "is_sessions_enabled": self.sessions or None,
            "cardinality": func.Cardinality.MANY if self.batches else None,
        }
        if self.subscription is None:
            trigger = app.service_bus_queue_trigger(queue_name=queue, **options)
        else:
            trigger = app.service_bus_topic_trigger(topic_name=queue, subscription_name=self.subscription, **options)
            queue = f"{queue}/Subscriptions/{self.subscription}"
        trigger(taking(self.take, List[func.ServiceBusMessage] if self.batches else func.ServiceBusMessage))  # noqa: UP006
        app.service_bus_queue_trigger(
            arg_name="message", queue_name=f"{queue}/$DeadLetterQueue", connection=settings.service_bus
        )(settling(self.settle, func.ServiceBusMessage))


def require_own_queues(served: list[Served], settings: Settings) -> None:
    """Raise `ConfigurationError` if two destinations share a queue: each function would take messages of the other."""
    names: dict[str, str] = {}
    for item in served:
        queue = settings.destinations.get(item.name, item.name)
        if (other := names.setdefault(queue, item.name)) != item.name:
            raise ConfigurationError(
                f"Destinations {other!r} and {item.name!r} both come by queue {queue!r}. Map one of them to another queue in "
                "EXACTLYONCE__destinations, or name the destinations to serve: once.serve_on(app, ...)."
            )


def _function(name: str, take: Taking, kind: Any) -> Callable[..., Awaitable[None]]:
    """A function with this name and an argument of this kind, as the host and its worker read them from a function."""

    async def take_one(message: Any) -> None:
        await take(message)

    async def take_all(messages: Any) -> None:
        await take(messages)

    function, argument = (take_one, "message") if isinstance(kind, type) else (take_all, "messages")
    function.__name__ = name
    function.__annotations__ = {argument: kind, "return": None}
    return function


EVERY_MINUTE = "0 * * * * *"


def register_sweeper(
    app: func.FunctionApp | func.Blueprint, sweep: Callable[[], Awaitable[object]], schedule: str
) -> None:
    """Register a timer that calls `sweep`; the schedule has six fields of NCRONTAB."""

    async def exactlyonce_sweep(timer: func.TimerRequest) -> None:  # noqa: ARG001  # The host passes it.
        await sweep()

    app.timer_trigger(arg_name="timer", schedule=schedule)(exactlyonce_sweep)
