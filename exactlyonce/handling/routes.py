"""Routes: the destinations of messages, their limits and orders, for business code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from exactlyonce.errors import OutputTooLarge, UnknownDestination
from exactlyonce.handling.messages import message_type
from exactlyonce.records.sequences import PARTITION_KEY
from exactlyonce.values.envelope import Extensions


@dataclass(frozen=True, slots=True)
class Destination:
    """A logical name for a queue or topic; settings say which one it is.

    Attributes:
        name: for `context.send`.
        receives: message types that `context.announce` sends here.
        order_by: names the read model that a message is for; its messages are numbered. None for no order.
        session_by: names the entity that a message is for; with Service Bus sessions its messages are one session. A message
            with an order needs none: its ordering key is the session.
    """

    name: str
    receives: tuple[type, ...] = ()
    order_by: Callable[[Any], str] | None = None
    session_by: Callable[[Any], str] | None = None


@dataclass(frozen=True)
class Routes:
    """The rules for a handler's outputs.

    Attributes:
        limits: for each destination the longest envelope it takes, in bytes.
        subscribers: for each message type name the destinations that receive it when it is announced.
        max_delay: longest delay of a message; it has to appear before it expires.
        orders: for each destination with an order, the function that gives the ordering key of a message.
        blobs: address of the container for blobs; None if there is none.
        sessions: for each destination with sessions, the function that gives the session of a message.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    subscribers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_delay: timedelta = timedelta(days=7)
    orders: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    blobs: str | None = None
    sessions: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    @classmethod
    def to(
        cls,
        destinations: tuple[Destination, ...],
        limits: Mapping[str, int],
        max_delay: timedelta = timedelta(days=7),
        blobs: str | None = None,
    ) -> Routes:
        """Routes to these destinations.

        Args:
            destinations: of the application.
            limits, max_delay, blobs: as the attributes.
        """
        subscribers: dict[str, tuple[str, ...]] = {}
        for destination in destinations:
            for name in dict.fromkeys(message_type(model).name for model in destination.receives):
                subscribers[name] = (*subscribers.get(name, ()), destination.name)
        orders = {one.name: one.order_by for one in destinations if one.order_by is not None}
        sessions = {one.name: one.session_by for one in destinations if one.session_by is not None}
        return cls(dict(limits), subscribers, max_delay, orders, blobs, sessions)

    def ordering_key(self, destination: str, message: object) -> str | None:
        """The ordering key of a message to a destination; None if that has no order."""
        name = self.orders.get(destination)
        return None if name is None else name(message)

    def session(self, destination: str, message: object) -> Extensions:
        """The session of a message to a destination, as attributes of its envelope; none if that has no sessions.

        Raises:
            ValueError: the session is empty or not a string.
        """
        if destination not in self.sessions:
            return ()
        key = self.sessions[destination](message)
        if not isinstance(key, str) or not key:
            raise ValueError(f"The session of a message to {destination!r} has to be a string that is not empty.")
        return ((PARTITION_KEY, key),)

    def is_too_large(self, destination: str, size: int) -> bool:
        """Whether an envelope of `size` bytes is over the limit of a destination that exists."""
        return size > self.limits.get(destination, size)

    def check(self, destination: str, size: int) -> None:
        """Raise `UnknownDestination` or `OutputTooLarge` unless an envelope of `size` bytes may go there."""
        if destination not in self.limits:
            known = ", ".join(sorted(self.limits)) or "none"
            raise UnknownDestination(
                f"There is no destination {destination!r}; known are: {known}. Declare it where the application is composed."
            )
        if size > self.limits[destination]:
            raise OutputTooLarge(
                f"A message for {destination!r} has {size} bytes; its queue takes {self.limits[destination]}. Send less; or "
                "name a container for blobs in EXACTLYONCE__blobContainer, so that the data travels by reference."
            )
