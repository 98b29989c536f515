"""The port of observers, to which drivers report while they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import Effect, Step
from exactlyonce.values.envelope import EntityRef, Envelope, Extensions

Reply = TypeVar("Reply")
Result = TypeVar("Result")


Delivery = Any
"""An observer's own object for a delivery of a message."""


class Watch(Protocol):
    """An observer's own object for a run of attempts on an entity."""

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        """The same attempts, observed."""
        ...


class Observer(Protocol):
    """Gets the reports of drivers. It changes nothing and never raises into them."""

    def processing(self, entity: EntityRef, envelope: Envelope) -> AbstractContextManager[Delivery]:
        """Entered while a delivery is processed, from its arrival until it is acknowledged or given back."""
        ...

    def watching(self, entity: EntityRef, deliveries: Sequence[Delivery] | None) -> AbstractContextManager[Watch]:
        """Entered while attempts are made on an entity: for the deliveries that share them, or, with None, for maintenance."""
        ...

    def perform(self, effect: Effect[Reply], perform: Callable[[Any], Awaitable[Any]]) -> Awaitable[Any]:
        """Perform an effect, and observe its reply."""
        ...

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """Entered while a message is sent outside of handlers; gives the attributes of its trace context."""
        ...

    def charged(self, units: float) -> None:
        """Called with the request units of every reply of the store."""
        ...

    def called(self, call: Envelope, received: Any) -> None:
        """Called with the result of each try of a call to a service: the answer, or the class of the failure as a text."""
        ...


class ObserverSlot:
    """Holds the observer of a process.

    Attributes:
        observer: None for no observer; then drivers report nothing.
    """

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = observer
        self._looked = observer is not None

    def look(self, find: Callable[[], Observer | None]) -> None:
        """Look for an observer, a single time. It has to be configured before the first message.

        Args:
            find: returns the observer of this process; None if it has none.
        """
        if not self._looked:
            self._looked = True
            self.observer = find()

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """The observer's `sending`; without an observer no attributes."""
        return nullcontext(()) if self.observer is None else self.observer.sending(destination, message_id)

    def charged(self, units: float) -> None:
        """Report the request units of a reply to the observer, if there is one."""
        if self.observer is not None:
            self.observer.charged(units)

    def called(self, call: Envelope, received: Any) -> None:
        """Report the result of a try of a call to the observer, if there is one."""
        if self.observer is not None:
            self.observer.called(call, received)
