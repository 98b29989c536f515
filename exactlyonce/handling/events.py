"""Events, which handlers of an event-sourced entity return in place of a state, and their appliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from exactlyonce.errors import ConfigurationError, HandlerFailed, InvalidMessage
from exactlyonce.handling.messages import encode, message_type
from exactlyonce.raised import ApplicationsCode, class_of
from exactlyonce.records.companions import Event
from exactlyonce.values.declarations import kind_of
from exactlyonce.values.round_trips import read_text
from exactlyonce.values.validation import problems, raised_in

State = TypeVar("State")
Message = TypeVar("Message")
Applier = Callable[[State, Message], State]
"""Returns the state after an event."""


@dataclass(frozen=True)
class Appliers(Generic[State]):
    """The appliers of an entity type, by event type.

    Attributes:
        entity: name of the type.
        state: its state model.
    """

    entity: str
    state: type[State]
    _appliers: dict[str, tuple[type, Applier[State, Any]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._appliers)

    def add(self, model: type, applier: Applier[State, Any]) -> None:
        """Register an applier. Raises `ConfigurationError` if the type is not registered, or has an applier already."""
        registered = message_type(model)
        for name in (registered.name, *registered.formerly):
            if name in self._appliers:
                raise ConfigurationError(f"Entity {self.entity!r} applies events of type {name!r} twice.")
            self._appliers[name] = (model, applier)

    def events(self, result: Any) -> tuple[Event, ...]:
        """A handler's result as events. Raises `HandlerFailed` if it is not a list of events."""
        if not isinstance(result, (list, tuple)):
            raise HandlerFailed(
                f"The handler returned {kind_of(result)}. Entity {self.entity!r} is event-sourced: return a list of "
                "events, which may be empty."
            )
        try:
            return tuple(Event(*encode(event)) for event in result)
        except (ConfigurationError, InvalidMessage) as error:
            raise HandlerFailed(f"The handler's result has an item that is not an event: {error}") from error

    def apply(self, state: State, event: Event) -> State:
        """The state after an event.

        Raises:
            HandlerFailed: it has no applier; its data does not fit; or the applier raised, or returned something else than a
                state.
        """
        if event.type not in self._appliers:
            known = ", ".join(sorted(self._appliers))
            raise HandlerFailed(
                f"Entity {self.entity!r} has no applier of events of type {event.type!r}; known are: {known}. Register one "
                "with applies(), and keep it as long as streams hold such events."
            )
        model, applier = self._appliers[event.type]
        read = self._read(model, event)
        with ApplicationsCode(
            lambda error: HandlerFailed(f"Applying an event of type {event.type!r} raised {class_of(error)}."),
            HandlerFailed,
        ):
            after = applier(state, read)
            if not isinstance(after, self.state):
                raise HandlerFailed(
                    f"The applier of events of type {event.type!r} returned {kind_of(after)}. Return the new "
                    f"{self.state.__name__}."
                )
            return after

    def _read(self, model: type, event: Event) -> Any:
        advice = "Give the model defaults, or a before-validator that reads old events."

        def failed(error: BaseException) -> HandlerFailed:  # A validator of the model's own may raise anything.
            return HandlerFailed(
                f"An event of type {event.type!r} cannot be read as {model.__name__}: reading it raised {class_of(error)}. "
                f"{advice}"
            )

        try:
            with ApplicationsCode(failed, ValidationError):
                return read_text(model, event.data.text)
        except ValidationError as error:
            raise HandlerFailed(
                f"An event of type {event.type!r} does not fit {model.__name__}: {problems(error, model)}. {advice}"
            ) from raised_in(error)  # Pydantic's own error would quote the event.
