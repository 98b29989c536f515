"""What this process saw of messages that failed: the cause of those that are given up later, if they come here again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, NewerSchema, TryAgainLater

MOST: Final = 1_000
"""Messages that are remembered."""

ENVIRONMENT: Final = (TryAgainLater, ConfigurationError, NewerSchema)
"""Errors that say nothing about the message: the store, a queue, or how this process is configured or deployed, is to blame."""


class Cause(Enum):
    """Why a message failed, as far as this process knows."""

    OWN = "its own"
    """The message cannot be processed as it is: it comes to the same wherever it is delivered."""
    ENVIRONMENT = "its environment's"
    """It says nothing about the message, which is processed as soon as the environment answers."""
    UNKNOWN = "not known"
    """Another process saw it, or this one was started since."""


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: Cause
    told: str


@dataclass(frozen=True)
class Failures:
    """The last failure of messages, by entity type and key: what they say of it is never held."""

    _seen: OrderedDict[tuple[str, str], _Failure] = field(default_factory=OrderedDict)

    def note(self, entity: str, message: str, error: ExactlyOnceError, delivery: int | None) -> None:
        """Remember the failure of a delivery.

        Args:
            entity: name of the entity type.
            message: its key.
            error: that it failed with.
            delivery: which delivery it was, from 1; None if the host did not say.
        """
        counted = "" if delivery is None else f"delivery {delivery} "
        cause = Cause.ENVIRONMENT if isinstance(error, ENVIRONMENT) else Cause.OWN
        self._seen[entity, message] = _Failure(cause, f"{counted}failed with {described(error)}")
        self._seen.move_to_end((entity, message))
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def cause(self, entity: str, message: str) -> Cause:
        """Why a message failed last."""
        seen = self._seen.get((entity, message))
        return Cause.UNKNOWN if seen is None else seen.cause

    def reason(self, entity: str, message: str, who: str = "its queue") -> str:
        """Why a message was given up, as far as this process knows, and who did."""
        seen = self._seen.get((entity, message))
        return f"{who} gave it up; {'this process did not see why' if seen is None else seen.told}"


def named(error: BaseException) -> str:
    """The class of an error, and of what caused it at last: texts of errors that are not ours may quote a message."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    name, deepest = type(error).__name__, type(cause).__name__
    return name if name == deepest else f"{name} ({deepest})"


def described(error: BaseException) -> str:
    """The class of an error, and of its text what may be kept with the message that it is about."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, ExactlyOnceError) and one.kept:
            return f"{named(error)}: {one.kept}"
        one = one.__cause__
    return named(error)
