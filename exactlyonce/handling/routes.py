"""Where messages may go, as far as business code can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from exactlyonce.errors import OutputTooLarge, UnknownDestination
from exactlyonce.handling.messages import message_type


@dataclass(frozen=True, slots=True)
class Destination:
    """A logical name for a queue or topic; settings say which one it is.

    Attributes:
        name: what `context.send` is given.
        receives: message types that `context.announce` delivers here.
    """

    name: str
    receives: tuple[type, ...] = ()


@dataclass(frozen=True)
class Routes:
    """What a handler's outputs are checked against.

    Attributes:
        limits: for each destination the longest envelope it takes, in bytes.
        subscribers: for each message type name the destinations that receive it when it is announced.
        max_delay: longest delay of a message; it has to appear before it expires.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    subscribers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_delay: timedelta = timedelta(days=7)

    @classmethod
    def to(
        cls, destinations: tuple[Destination, ...], limits: Mapping[str, int], max_delay: timedelta = timedelta(days=7)
    ) -> Routes:
        """Routes to these destinations, each of which has a limit."""
        subscribers: dict[str, tuple[str, ...]] = {}
        for destination in destinations:
            for name in dict.fromkeys(message_type(model).name for model in destination.receives):
                subscribers[name] = (*subscribers.get(name, ()), destination.name)
        return cls(dict(limits), subscribers, max_delay)

    def check(self, destination: str, size: int) -> None:
        """Raise `UnknownDestination` or `OutputTooLarge` unless an envelope of `size` bytes may go there."""
        if destination not in self.limits:
            known = ", ".join(sorted(self.limits)) or "none"
            raise UnknownDestination(
                f"There is no destination {destination!r}; known are: {known}. Declare it where the application is composed."
            )
        if size > self.limits[destination]:
            raise OutputTooLarge(
                f"A message for {destination!r} has {size} bytes; its queue takes {self.limits[destination]}. Send less, or "
                "put the content in a blob and its address in the message."
            )
