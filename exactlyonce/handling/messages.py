"""Message types: models with a registered name. Messages carry that name, so that renaming a class breaks nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError

from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.values.envelope import MAX_ATTRIBUTE_LENGTH, require_name
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import message_key
from exactlyonce.values.validation import adapter, comes_back, misfits, problems, written

_ATTRIBUTE: Final = "__exactlyonce_message__"
_Model = TypeVar("_Model")
_NAMED: Final[WeakValueDictionary[str, type]] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class MessageType:
    """The name of a message type, and its former names, which are still read."""

    name: str
    formerly: tuple[str, ...] = ()


def message(name: str, *, formerly: tuple[str, ...] = ()) -> Callable[[type[_Model]], type[_Model]]:
    """Class decorator: register a pydantic model or dataclass as a message type.

    Args:
        name: the `type` attribute of the envelope, such as `shooting-range.fire-at`.
        formerly: earlier names; messages that carry them are read as this type.

    Raises:
        ConfigurationError: the class is neither a pydantic model nor a dataclass, or no receiver could read a name: it is
            empty or blank, has control characters, or more than 1,024 characters.
    """
    if not name or not all(formerly):
        raise ConfigurationError("A message type needs a name; give @message(...) a non-empty string.")
    for each in (name, *formerly):
        require_name(f"The name {each!r} of a message type", each, MAX_ATTRIBUTE_LENGTH)

    def register(model: type[_Model]) -> type[_Model]:
        require_model(model, "A message")
        setattr(model, _ATTRIBUTE, MessageType(name, formerly))
        _NAMED[name] = model
        return model

    return register


def message_type(model: type) -> MessageType:
    """The message type of a model. A subclass is another type and needs its own.

    Raises:
        ConfigurationError: the model is not registered.
    """
    found = model.__dict__.get(_ATTRIBUTE)
    if not isinstance(found, MessageType):
        raise ConfigurationError(f'{model.__name__} is not a message type. Put @message("a-name") above it.')
    return found


def model_named(name: str) -> type | None:
    """The model that was last registered under a name; None if there is none. For tests: readers have models of their own."""
    return _NAMED.get(name)


def is_message(value: object) -> bool:
    """Whether a value is an instance of a registered message type."""
    return isinstance(type(value).__dict__.get(_ATTRIBUTE), MessageType)


def encode(message: object) -> tuple[str, Json]:
    """Type name and data of a message.

    Raises:
        ConfigurationError: its class is not registered.
        InvalidMessage: its receiver would read something else.
    """
    model = type(message)
    name = message_type(model).name
    data = Json.of(written(model, message))
    if not comes_back(model, message, data.value):
        raise InvalidMessage(
            f"The receiver of this {model.__name__} would read something else. Give its fields values of their declared types, "
            "and neither exclude fields nor read and write them under different names."
        )
    return name, data


def decode(model: type[_Model], data: Json, *, source: str, id: str) -> _Model:
    """Data to model.

    Raises:
        InvalidMessage: naming the message and every field that does not fit, without their values.
    """
    try:
        decoded: _Model = adapter(model).validate_python(data.value)
    except ValidationError as error:
        raise InvalidMessage(
            f"Message {message_key(source, id)} does not fit {model.__name__}: {problems(error, model)}. Correct the sender, "
            "or give the model a before-validator that upgrades old bodies.",
            kept=misfits(error, model),
        ) from None  # The cause would quote the body.
    except Exception as error:  # A validator of the model's own may raise anything; so may nesting without end.
        raise InvalidMessage(
            f"Message {message_key(source, id)} cannot be read as {model.__name__}: reading it raised {type(error).__name__}. "
            "Correct the sender, or the model's validators."
        ) from error
    return decoded


def require_model(model: type, what: str) -> None:
    """Raise `ConfigurationError` unless `model` is a pydantic model or a dataclass."""
    if not (issubclass(model, BaseModel) or dataclasses.is_dataclass(model)):
        raise ConfigurationError(f"{what} has to be a pydantic model or a dataclass; {model!r} is neither.")
