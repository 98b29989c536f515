"""What this process saw of messages that failed: the reason of those that are given up later, if they come here again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from exactlyonce.errors import ExactlyOnceError

MOST: Final = 1_000
"""Messages that are remembered."""


@dataclass(frozen=True)
class Failures:
    """Names of errors by entity type and message. They never hold what a message says."""

    _seen: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)

    def note(self, entity: str, message: str, error: ExactlyOnceError, delivery: int | None) -> None:
        """Remember the failure of a delivery.

        Args:
            entity: name of the entity type.
            message: its key.
            error: that it failed with.
            delivery: which delivery it was, from 1; None if the host did not say.
        """
        counted = "" if delivery is None else f"delivery {delivery} "
        self._seen[entity, message] = f"{counted}failed with {named(error)}"
        self._seen.move_to_end((entity, message))
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def reason(self, entity: str, message: str, who: str = "its queue") -> str:
        """Why a message was given up, as far as this process knows, and who did."""
        seen = self._seen.get((entity, message), "this process did not see why")
        return f"{who} gave it up; {seen}"


def named(error: BaseException) -> str:
    """The class of an error, and of what caused it at last: texts of errors that are not ours may quote a message."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    name, deepest = type(error).__name__, type(cause).__name__
    return name if name == deepest else f"{name} ({deepest})"
