"""Checks of an application's declarations, made at its construction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from dis import get_instructions
from itertools import pairwise
from types import FunctionType
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import is_message_type, message_type
from exactlyonce.handling.routes import Destination, subscribers_of, unheard
from exactlyonce.protocols.resequencer.gaps import Rebuild
from exactlyonce.protocols.resequencer.protocol import Resequencer

_LOADS: Final = ("LOAD_METHOD", "LOAD_ATTR")


def require_declared(entities: tuple[Entity[Any], ...], destinations: tuple[Destination, ...]) -> None:
    """Raise `ConfigurationError` if the declarations of an application contradict each other, as far as code shows."""
    for require in (_require_distinct, _require_rebuilds, _require_destinations, _require_announced):
        require(entities, destinations)


def _require_rebuilds(entities: tuple[Entity[Any], ...], destinations: tuple[Destination, ...]) -> None:
    """Raise `ConfigurationError` if a read model requests replays through a destination that does not exist."""
    names = {destination.name for destination in destinations}
    for entity in entities:
        rebuild = entity.strategy.on_gap if isinstance(entity.strategy, Resequencer) else None
        if isinstance(rebuild, Rebuild) and rebuild.through not in names:
            raise ConfigurationError(
                f"Rebuild(...) of entity {entity.name!r} names {rebuild.through!r}, which is no destination of this "
                f"application; declared are: {', '.join(sorted(names)) or 'none'}."
            )


def _require_destinations(entities: tuple[Entity[Any], ...], destinations: tuple[Destination, ...]) -> None:
    """Refuse destinations that do not fit the handlers.

    Raises:
        ConfigurationError: a handler names a `Destination` of its module that the application does not have; or a destination
            receives a type, and leads to an entity type of the application without a handler for the type.
    """
    declared = {destination.name for destination in destinations}
    for item in destinations:
        receiver = receiver_of(item, entities)
        for model in item.receives:
            if receiver is not None and message_type(model).name not in receiver.models:
                raise ConfigurationError(
                    f"Destination {item.name!r} receives {model.__name__} and leads to entity {receiver.name!r}, which has no "
                    "handler of it. Give it one, or leave the type out of receives=."
                )
    for entity in entities:
        for handler in entity.handlers:
            named = {item.name for _, item in _globals_of(handler) if isinstance(item, Destination)}
            if unknown := named - declared:
                raise ConfigurationError(
                    f"{_called(handler)} of entity {entity.name!r} names destination {min(unknown)!r}, which is not of this "
                    f"application; declared are: {', '.join(sorted(declared)) or 'none'}."
                )


def receiver_of(destination: Destination, entities: Iterable[Entity[Any]]) -> Entity[Any] | None:
    """The entity type among `entities` that a destination leads to; None if it leads elsewhere, or has no `to=`."""
    name = destination.to if isinstance(destination.to, str) else getattr(destination.to, "name", None)
    return next((entity for entity in entities if entity.name == name), None)


def leading_to(
    entities: tuple[Entity[Any], ...], destinations: Iterable[Destination | Api]
) -> Iterator[Destination | Api]:
    """The destinations that lead to `entities`, and the services, whose calls are made where handlers run."""
    return (item for item in destinations if isinstance(item, Api) or receiver_of(item, entities) is not None)


def require_led_to(entities: Iterable[Entity[Any]], destinations: Iterable[Destination]) -> None:
    """Raise `ConfigurationError` if no way is known by which messages come to an entity type.

    Ways are a destination that leads to the type, and requests. Requests do not count while a destination without `to=` may
    lead to the type.
    """
    destinations = tuple(destinations)
    led_to = [receiver_of(destination, entities) for destination in destinations]
    for entity in entities:
        if entity in led_to:
            continue
        for destination in destinations:
            mine = [model for model in destination.receives if message_type(model).name in entity.models]
            if destination.to is None and (mine or not destination.receives):
                raise ConfigurationError(
                    f"No destination leads to entity {entity.name!r}, and destination {destination.name!r} does not say where "
                    "it leads. Give it to=; or, if it leads to another application, name the destinations to serve: "
                    "once.serve_on(app, ...). If none leads here, call once.sweep_on(app) instead."
                )
        if not entity.strategy.answers:
            raise ConfigurationError(
                f"No destination leads to entity {entity.name!r}, which takes no requests either. Declare one: "
                "Destination(..., to=...)."
            )


def _require_announced(entities: tuple[Entity[Any], ...], destinations: tuple[Destination, ...]) -> None:
    """Raise `ConfigurationError` if a handler announces a type that no destination receives, as far as the code shows.

    The code shows the type of a message that is made in the call: `context.announce(Paid(...))`. Any other message is refused
    when a handler announces it.
    """
    received, handled = subscribers_of(destinations), _handled_by(entities)
    for entity in entities:
        for handler in entity.handlers:
            for model in _announced(handler):
                if message_type(model).name not in received and (refusal := unheard(model, handled)) is not None:
                    raise ConfigurationError(f"{_called(handler)} of entity {entity.name!r} announces it: {refusal}")


def _handled_by(entities: Iterable[Entity[Any]]) -> frozenset[str]:
    return frozenset(name for entity in entities for name in entity.models)


def unheard_by(entities: tuple[Entity[Any], ...], received: Container[str]) -> Iterator[str]:
    """Possible announcements in vain: types that a handler's code names, that a handler takes, and no destination receives.

    Args:
        entities: the entity types of the application.
        received: the names of the message types that the destinations receive.
    """
    unheard_types = {name for name in _handled_by(entities) if name not in received}
    for entity in entities:
        for handler in entity.handlers:
            named = _globals_of(handler)
            for name, model in named if any(name == "announce" for name, _ in named) else ():
                if is_message_type(model) and message_type(model).name in unheard_types:
                    yield (
                        f"{_called(handler)} of entity {entity.name!r} announces, and names {name}, which a handler of this "
                        "application takes and no destination receives. Name it in receives= of a Destination, unless it is "
                        "only sent."
                    )


def _announced(handler: Callable[..., Any]) -> Iterator[type]:
    """The message types that a handler's code makes inside of `announce(...)`."""
    function = inspect.unwrap(handler)
    if isinstance(function, FunctionType):
        for step, following in pairwise(get_instructions(function)):
            if step.argval == "announce" and step.opname in _LOADS and following.opname == "LOAD_GLOBAL":
                model: Any = function.__globals__.get(following.argval)
                if is_message_type(model):
                    yield model


def _called(handler: Callable[..., Any]) -> str:
    return f"The handler {getattr(handler, '__name__', type(handler).__name__)}"


def _globals_of(handler: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The names in a handler's code, with their global values; none for a handler without code of its own, as a partial."""
    function = inspect.unwrap(handler)
    if not isinstance(function, FunctionType):
        return []
    return [(name, function.__globals__.get(name)) for name in function.__code__.co_names]


def _require_distinct(entities: tuple[Entity[Any], ...], destinations: tuple[Destination, ...]) -> None:
    """Raise `ConfigurationError` if two entities, destinations or message types have the same name."""
    for what, names in (
        ("entities", [entity.name for entity in entities]),
        ("destinations", [destination.name for destination in destinations]),
    ):
        if repeated := {name for name in names if names.count(name) > 1}:
            raise ConfigurationError(f"Two {what} have the name {min(repeated)!r}.")
    models: dict[str, type] = {}
    used = [model for entity in entities for model in entity.models.values()]
    used += [model for destination in destinations for model in destination.receives]
    for model in used:
        registered = message_type(model)
        for name in (registered.name, *registered.formerly):
            if models.setdefault(name, model) is not model:
                raise ConfigurationError(
                    f"{models[name].__name__} and {model.__name__} both travel as {name!r}. Give one of them another name."
                )
