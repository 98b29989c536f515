"""Messages: models registered under a name, which travels with each message, and the keys of the entities they are for."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, HandlerFailed, InvalidMessage
from exactlyonce.values.declarations import kind_of, require, require_tuple
from exactlyonce.values.envelope import (
    ID_RULE,
    MAX_ATTRIBUTE_LENGTH,
    MAX_KEY_BYTES,
    EntityRef,
    PartitionValue,
    is_document_id,
    message_key,
    require_name,
)
from exactlyonce.values.frozen_json import Json, misfits, problems, raised_in, unread
from exactlyonce.values.raised import class_of
from exactlyonce.values.round_trips import ApplicationsCode, lost, read_text, written_text

_ATTRIBUTE: Final = "__exactlyonce_message__"
_Model = TypeVar("_Model")
UNREAD: Final[list[Callable[[str, frozenset[str], str, str], None]]] = []
"""Callbacks for properties that no model reads. The package's root adds the log, since handling imports no log."""
_NAMED: Final[dict[str, type]] = {}


@dataclass(frozen=True, slots=True)
class MessageType:
    """The name of a message type, its former names, which are still read, and whether it may lack a receiver."""

    name: str
    formerly: tuple[str, ...] = ()
    event: bool = False


def message(
    name: str, *, formerly: tuple[str, ...] = (), event: bool = False
) -> Callable[[type[_Model]], type[_Model]]:
    """Class decorator: register a pydantic model or dataclass as a message type.

    Args:
        name: the `type` attribute of the envelope, such as `shooting-range.fire-at`.
        formerly: earlier names; messages under these names are read as this type.
        event: whether it may be announced before any destination receives it. For other types the announcement is refused,
            since a command would be lost in silence.

    Raises:
        ConfigurationError: the class is neither a pydantic model nor a dataclass; or another class has the name; or no receiver
            could read a name: it is no string, empty or blank, has control characters, or more than 1,024 characters.
    """
    if isinstance(above := cast("object", name), type):
        raise ConfigurationError(f'@message stands above {above.__name__} without a name. Write @message("a-name").')
    name = require_name("The name of a message type, the first argument of @message(...),", name, MAX_ATTRIBUTE_LENGTH)
    require_tuple(f"formerly= of message type {name!r}", formerly, '("an-earlier-name",)')
    for former in formerly:
        require_name(f"A name in formerly= of message type {name!r}", former, MAX_ATTRIBUTE_LENGTH)
    if len({name, *formerly}) <= len(formerly):
        raise ConfigurationError(f"formerly= of message type {name!r} has a name twice, or the present one.")
    require(f"event= of message type {name!r}", event, bool, "True or False")

    def register(model: type[_Model]) -> type[_Model]:
        require_model(model, "A message")
        if (other := _NAMED.get(name)) is not None and not same_source(other, model):
            raise ConfigurationError(
                f"{full_name(other)} and {full_name(model)} both travel as {name!r}. Rename a message type; if both classes "
                "are the same message, use a single class."
            )
        setattr(model, _ATTRIBUTE, MessageType(name, formerly, event))
        _NAMED[name] = model
        return model

    return register


def full_name(model: type) -> str:
    """A class with its module."""
    return f"{model.__module__}.{model.__qualname__}"


def same_source(kind: type, other: type) -> bool:
    """Whether two classes come from the same definition: reloaded, or in a module that was imported under two names."""
    if kind.__qualname__ != other.__qualname__:
        return False
    if kind.__module__ == other.__module__:
        return True
    files = [getattr(sys.modules.get(module), "__file__", None) for module in (kind.__module__, other.__module__)]
    if None not in files:
        return files[0] == files[1]
    path, other_path = f".{kind.__module__}", f".{other.__module__}"
    return path.endswith(other_path) or other_path.endswith(path)


def message_type(model: type) -> MessageType:
    """The message type of a model. A subclass is another type and needs its own.
    Raises `ConfigurationError`: the model is not registered, or no class."""
    if not isinstance(model, type):
        raise ConfigurationError(
            f"A message type is a class, and this is {kind_of(model)}. Give the class of the messages."
        )
    registered = model.__dict__.get(_ATTRIBUTE)
    if not isinstance(registered, MessageType):
        raise ConfigurationError(f'{model.__name__} is not a message type. Put @message("a-name") above it.')
    return registered


def model_named(name: str) -> type | None:
    """The model last registered under a name; None if there is none. For tests: readers have models of their own."""
    return _NAMED.get(name)


def is_message(value: object) -> bool:
    """Whether a value is an instance of a registered message type."""
    return is_message_type(type(value))


def is_message_type(value: object) -> bool:
    """Whether a value is a registered message type."""
    return isinstance(value, type) and isinstance(value.__dict__.get(_ATTRIBUTE), MessageType)


def encode(message: object) -> tuple[str, Json]:
    """The type name and the data of a message.

    Raises:
        ConfigurationError: its class is not registered.
        InvalidMessage: its receiver would read other values, or a value has no form in JSON.
        HandlerFailed: a serializer of the model raised.
    """
    if isinstance(message, type):
        raise ConfigurationError(
            f"A message is an instance, and this is {kind_of(message)}. Give {message.__name__}(...)."
        )
    model = type(message)
    name = message_type(model).name
    serializers = ApplicationsCode(
        lambda error: HandlerFailed(
            f"This {model.__name__} cannot be written as JSON: writing it raised {class_of(error)}. Correct its serializers, "
            "or give its fields values that JSON has."
        ),
        ExactlyOnceError,
    )
    with serializers:
        content = json.loads(written_text(model, message))
    try:
        data = Json.of(content)
    except ValueError:
        raise InvalidMessage(
            f"This {model.__name__} holds NaN, an infinity or half a character, which JSON does not have. Leave it out, or "
            "keep it as a text."
        ) from None  # The cause would quote it.
    with serializers:
        what = lost(model, message, data.text)
    if what is not None:
        raise InvalidMessage(
            f"The receiver of this {model.__name__} would read something else: {what}. Give its fields values of their "
            "declared types, and neither exclude fields nor read and write them under different names."
        )
    return name, data


def read_as(
    model: type[_Model],
    text: str,
    kind: type[ExactlyOnceError],
    about: str,
    *,
    raised: str,
    unfit: str,
    kept: Callable[[ValidationError, type], str | None] = lambda *_: None,
) -> _Model:
    """The value in a text. A model's validators may raise anything; every error is of one kind, about the text, with the advice
    for a validator that `raised` or for a text that is `unfit`, and with the part that may be stored, as `kept` makes it."""
    try:
        with ApplicationsCode(
            lambda error: kind(
                f"{about} cannot be read as {model.__name__}: reading it raised {class_of(error)}. {raised}"
            ),
            ValidationError,
        ):
            value: _Model = read_text(model, text)
            return value
    except ValidationError as error:
        raise kind(
            f"{about} does not fit {model.__name__}: {problems(error, model)}. {unfit}", kept=kept(error, model)
        ) from raised_in(error)  # Pydantic's own error would quote the text.


def decode(model: type[_Model], data: Json, *, source: str, id: str) -> _Model:
    """The message as an instance of its model.
    Raises `InvalidMessage`: data does not fit the model; the text names the message and every wrong field, without values."""
    decoded = read_as(
        model,
        data.text,
        InvalidMessage,
        f"Message {message_key(source, id)}",
        raised="Correct the sender, or the model's validators.",
        unfit="Correct the sender, or give the model a before-validator that upgrades old bodies.",
        kept=misfits,
    )
    name = message_type(model).name if is_message_type(model) else model.__name__
    tell_unread(
        f"messages of type {name}",
        unread(model, data.value),
        "are lost, since their model here does not read them",
        'Is this instance older than their sender? Add them to the model, or refuse such messages with extra="forbid"',
    )
    return decoded


def tell_unread(of: str, names: frozenset[str], fate: str, advice: str) -> None:
    """Report properties that no model reads to the operators: the messages or documents that have them, the end of a sentence
    on the fate of the properties, and advice. Without names nothing is reported."""
    for tell in UNREAD if names else ():
        tell(of, names, fate, advice)


def require_model(model: type, what: str) -> None:
    """Raise `ConfigurationError` unless `model` is a pydantic model or a dataclass."""
    if not isinstance(model, type):
        raise ConfigurationError(
            f"{what} has to be a pydantic model or a dataclass; this is {kind_of(model)}. Give the class."
        )
    if not (issubclass(model, BaseModel) or dataclasses.is_dataclass(model)):
        raise ConfigurationError(f"{what} has to be a pydantic model or a dataclass; {model!r} is neither.")


# Keys: the names of entities in an application.


_LARGEST_EXACT: Final = 2**53 - 1
_HALF: Final = re.compile(r"[\ud800-\udfff]")
"""Half a surrogate pair, which neither the service nor a queue takes."""


@dataclass(frozen=True, slots=True)
class EntityKey:
    """The key of an entity whose id and partition key differ.

    Attributes:
        id: the document's id.
        partition: the value, or the values of a hierarchical key from the top.
    """

    id: str
    partition: PartitionValue | tuple[PartitionValue, ...]


def entity_ref(type: str, key: str | EntityKey) -> EntityRef:
    """The full name of an entity of a type. A string is both id and partition key.
    Raises `InvalidMessage`: the id or the partition key is not valid in Cosmos DB."""
    id, partition = _parts(key)
    if not is_document_id(id):
        raise InvalidMessage(f"The key of an entity {type!r} is not a document id, which is a string of {ID_RULE}.")
    if not all(_is_partition_value(value) for value in partition):
        raise InvalidMessage(
            f"The partition key of an entity {type!r} has to be made of strings of Unicode, booleans, and numbers up to 2^53."
        )
    # The service treats 1 and 1.0 as equal, but JSON writes two texts: an entity must not have two names.
    canonical = (int(item) if isinstance(item, float) and item.is_integer() else item for item in partition)
    ref = EntityRef(type, tuple(canonical), id)
    if (size := len(ref.key.encode())) > MAX_KEY_BYTES:
        raise InvalidMessage(
            f"The type, the partition key and the id of an entity {type!r} have {size} bytes together; the library container "
            f"takes {MAX_KEY_BYTES} as partition key. Derive shorter ones in key=."
        )
    return ref


def entity_named(
    what: str, function: Callable[[Any], object], message: object, ref: Callable[[Any], EntityRef]
) -> EntityRef:
    """The entity named by a function of the application, the `what` of errors; `ref` makes the full name of a key.

    Raises:
        HandlerFailed: the function raised, or returned no key.
        ConfigurationError, InvalidMessage: as `ref` does.
    """

    def failed(error: BaseException) -> HandlerFailed:
        return HandlerFailed(f"{what} raised {class_of(error)}.")

    with ApplicationsCode(failed):
        key = function(message)
    with ApplicationsCode(failed, ExactlyOnceError):  # A key may have code of its own, too.
        if (mistake := _mistaken(key)) is not None:
            raise HandlerFailed(f"{what} gave {mistake}. Return a string, or an EntityKey of strings.")
        return ref(key)


def _mistaken(key: object) -> str | None:
    """The kind of a function's result if it is no key; None for a key, valid or not."""
    if isinstance(key, str):
        return None
    if not isinstance(key, EntityKey):
        return kind_of(key)
    id, partition = cast("tuple[object, tuple[object, ...]]", _parts(key))
    if not isinstance(id, str):
        return f"an EntityKey whose id is {kind_of(id)}"
    wrong = [value for value in partition if not isinstance(value, (str, int, float))]
    return f"an EntityKey whose partition key has {kind_of(wrong[0])}" if wrong else None


def _parts(key: object) -> tuple[str, tuple[PartitionValue, ...]]:
    if isinstance(key, EntityKey):
        values = key.partition if isinstance(key.partition, tuple) else (key.partition,)
        return _plain(key.id), tuple(map(_plain, values))
    if isinstance(key, str):
        return _plain(key), (_plain(key),)
    raise InvalidMessage(f"The key of an entity has to be a string or an EntityKey; it is {kind_of(key)}.")


def _plain(value: Any) -> Any:
    """A string as such: a string of an `Enum` is written in addresses as another text than in JSON."""
    return str.__str__(value) if isinstance(value, str) else value


def _is_partition_value(value: object) -> bool:
    """Whether the service keeps a value exactly. It keeps numbers as doubles, so larger numbers would no longer be distinct."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return abs(value) <= _LARGEST_EXACT  # Neither infinite nor NaN.
    return isinstance(value, bool) or (isinstance(value, str) and not _HALF.search(value))
