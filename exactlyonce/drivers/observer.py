"""The port of observers: what drivers report while they run. Without an observer they report nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import Effect, Step
from exactlyonce.values.envelope import Envelope, Extensions
from exactlyonce.values.identity import EntityRef

Reply = TypeVar("Reply")
Result = TypeVar("Result")


Delivery = Any
"""One delivery of a message while it is processed: something of the observer's own."""


class Watch(Protocol):
    """Attempts on one entity while they are made."""

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        """The same attempts, watched."""
        ...


class Observer(Protocol):
    """What drivers tell. It changes nothing and never raises into them."""

    def processing(self, entity: EntityRef, envelope: Envelope) -> AbstractContextManager[Delivery]:
        """A delivery is processed, from its arrival until it may be acknowledged or is given back."""
        ...

    def watching(self, entity: EntityRef, deliveries: Sequence[Delivery] | None) -> AbstractContextManager[Watch]:
        """Attempts are made on an entity: for deliveries that share them; with None, for somebody else who waits."""
        ...

    def perform(self, effect: Effect[Reply], perform: Callable[[Any], Awaitable[Any]]) -> Awaitable[Any]:
        """Perform an effect, and see what it comes to."""
        ...

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """A message is sent from outside of any handler; gives the attributes of the trace that it begins or goes on with."""
        ...

    def charged(self, units: float) -> None:
        """A reply of the store cost so many request units."""
        ...


class ObserverSlot:
    """Where drivers find their observer.

    Attributes:
        observer: None while nobody observes; then drivers do nothing more than look at it.
    """

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = observer
        self._looked = observer is not None

    def look(self, find: Callable[[], Observer | None]) -> None:
        """Look for an observer, once: it has to be configured before the first message.

        Args:
            find: returns the observer of this process; None if it has none.
        """
        if not self._looked:
            self._looked = True
            self.observer = find()

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """What the observer's `sending` gives; no attributes without one."""
        return nullcontext(()) if self.observer is None else self.observer.sending(destination, message_id)

    def charged(self, units: float) -> None:
        """Tell the observer, if there is one, what a reply of the store cost."""
        if self.observer is not None:
            self.observer.charged(units)
