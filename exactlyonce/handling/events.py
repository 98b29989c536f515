"""Events: what handlers of an event-sourced entity return in place of a state, and what each does to the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from exactlyonce.errors import ConfigurationError, HandlerFailed, InvalidMessage
from exactlyonce.handling.messages import encode, message_type
from exactlyonce.records.companions import Event
from exactlyonce.values.validation import adapter, problems

State = TypeVar("State")
Message = TypeVar("Message")
Applier = Callable[[State, Message], State]
"""What an event does to a state."""


@dataclass(frozen=True)
class Appliers(Generic[State]):
    """What events do to the state of an entity type.

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
        """Register what events of a type do. Raises `ConfigurationError` if the type is not registered, or taken already."""
        registered = message_type(model)
        for name in (registered.name, *registered.formerly):
            if name in self._appliers:
                raise ConfigurationError(f"Entity {self.entity!r} applies events of type {name!r} twice.")
            self._appliers[name] = (model, applier)

    def events(self, result: Any) -> tuple[Event, ...]:
        """What a handler returned, as events. Raises `HandlerFailed` if it is none."""
        if not isinstance(result, (list, tuple)):
            raise HandlerFailed(
                f"The handler returned a {type(result).__name__}. Entity {self.entity!r} is event-sourced: return a list of "
                "events, which may be empty."
            )
        try:
            return tuple(Event(*encode(event)) for event in result)
        except (ConfigurationError, InvalidMessage) as error:
            raise HandlerFailed(f"What the handler returned holds what is no event: {error}") from error

    def apply(self, state: State, event: Event) -> State:
        """The state after an event.

        Raises:
            HandlerFailed: nothing was registered for it; its data does not fit; or what was registered raised, or returned
                something else than a state.
        """
        if event.type not in self._appliers:
            known = ", ".join(sorted(self._appliers))
            raise HandlerFailed(
                f"Nothing applies events of type {event.type!r} to entity {self.entity!r}; known are: {known}. Register it "
                "with applies(), and keep it as long as streams hold such events."
            )
        model, applier = self._appliers[event.type]
        read = self._read(model, event)
        try:
            after = applier(state, read)
        except Exception as error:
            raise HandlerFailed(f"Applying an event of type {event.type!r} raised {type(error).__name__}.") from error
        if not isinstance(after, self.state):
            raise HandlerFailed(
                f"What applies events of type {event.type!r} returned a {type(after).__name__}. Return the new "
                f"{self.state.__name__}."
            )
        return after

    def _read(self, model: type, event: Event) -> Any:
        advice = "Give the model defaults, or a before-validator that reads what old events hold."
        try:
            return adapter(model).validate_python(event.data.value)
        except ValidationError as error:
            raise HandlerFailed(
                f"An event of type {event.type!r} does not fit {model.__name__}: {problems(error)}. {advice}"
            ) from None  # The cause would quote the event.
        except Exception as error:  # A validator of the model's own may raise anything.
            raise HandlerFailed(
                f"An event of type {event.type!r} cannot be read as {model.__name__}: reading it raised "
                f"{type(error).__name__}. {advice}"
            ) from error
