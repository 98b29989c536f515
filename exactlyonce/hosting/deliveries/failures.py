"""Failures of deliveries that this process saw: they give the cause when one of the messages is given up later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, NewerSchema, TryAgainLater
from exactlyonce.raised import causes_of, class_of, is_librarys

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST: Final = 1_000
"""Most messages that are remembered."""

ENVIRONMENT: Final = (TryAgainLater, ConfigurationError, NewerSchema)
"""Errors that are not the message's fault: the store, a queue, or how this process is configured or deployed, is to blame."""


class Cause(Enum):
    """The cause of a message's last failure, as far as this process knows."""

    OWN = "its own"
    """The message cannot be processed as it is: any process would fail with it."""
    ENVIRONMENT = "its environment's"
    """The failure is not the message's fault; it is processed as soon as the environment answers."""
    UNKNOWN = "not known"
    """Another process saw the failure, or this process was started since."""


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: Cause
    text: str


@dataclass(frozen=True)
class Failures:
    """The last failures of messages, by entity type and key. Bodies are never kept."""

    _seen: OrderedDict[tuple[str, str], _Failure] = field(default_factory=OrderedDict)

    def note(self, entity: str, message: str, error: ExactlyOnceError, delivery: int | None) -> None:
        """Remember the failure of a delivery.

        Args:
            entity: name of the entity type.
            message: its key.
            error: the error that it failed with.
            delivery: number of the delivery, from 1; None if the host did not say.
        """
        counted = "" if delivery is None else f"delivery {delivery} "
        cause = Cause.ENVIRONMENT if isinstance(error, ENVIRONMENT) else Cause.OWN
        self._seen[entity, message] = _Failure(cause, f"{counted}failed with {described(error)}")
        self._seen.move_to_end((entity, message))
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def cause(self, entity: str, message: str) -> Cause:
        """The cause of a message's last failure."""
        seen = self._seen.get((entity, message))
        return Cause.UNKNOWN if seen is None else seen.cause

    def reason(self, entity: str, message: str, who: str = "its queue") -> str:
        """What gave a message up, and why, as far as this process knows."""
        seen = self._seen.get((entity, message))
        return f"{who} gave it up; {'this process did not see why' if seen is None else seen.text}"


def named(error: BaseException) -> str:
    """The class of an error, and that of its first cause. Texts are left out: other libraries' errors may quote a message."""
    *_, cause = causes_of(error)
    name, deepest = class_of(error), class_of(cause)
    return name if name == deepest else f"{name} ({deepest})"


def described(error: BaseException) -> str:
    """The class of an error, and the part of its text that may be kept with a parked message."""
    for one in causes_of(error):
        if is_librarys(one) and one.kept:
            return f"{named(error)}: {one.kept}"
    return named(error)


def told(
    door: Callable[Concatenate[Any, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]:
    """Decorator of a method of an application that a trigger calls: what it raises is for the host, which logs it whole.

    So an error of the library has only such causes as may be logged. Nothing else is changed: not even the error's class.
    """

    @wraps(door)
    async def through(self: Any, /, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return await door(self, *args, **named)
        except ExactlyOnceError as error:
            if self._parts.texts:
                raise
            failure = self._parts.show(error)
        raise failure  # Outside of the block above, whose exception it would have as its context.

    return through
