"""State models and entity documents: the library adds id and partition key, and keeps properties that the model lacks."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from exactlyonce.errors import ConfigurationError, DamagedDocument, HandlerFailed, IdentityChanged
from exactlyonce.handling.messages import require_model
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.declarations import require_name
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.validation import adapter, comes_back, problems, written

RESERVED: Final = frozenset({LEDGER, "_kind", "_rid", "_self", "_etag", "_attachments", "_ts", "ttl"})
"""Properties of the library and the service. With `ttl` the entity would expire, and its ledger with it."""
_LARGEST_EXACT: Final = 2**53
_LARGEST: Final = sys.float_info.max


class StateShape:
    """The mapping between a state model and documents with these partition key paths.

    Raises:
        ConfigurationError: the model cannot start empty, uses a reserved property, or a path is not like `/a` or `/a/b`.
    """

    def __init__(self, state: type, paths: tuple[str, ...]) -> None:
        require_model(state, "A state")
        for path in paths:
            require_name("A partition key path", path)
            if not path.startswith("/") or not all(path[1:].split("/")):
                raise ConfigurationError(f"The partition key path {path!r} is not like '/gameId' or '/game/id'.")
            if path[1:].split("/")[0] in RESERVED:
                raise ConfigurationError(
                    f"The partition key path {path!r} is in a reserved property; take another one."
                )
        self._state = state
        self._steps = tuple(tuple(path[1:].split("/")) for path in paths)
        self._declared = _property_names(state)
        self._require_unreserved(self._declared)
        self._require_start()

    def start(self, entity: EntityRef) -> Any:
        """The state of an absent entity. Raises `ConfigurationError` if the model does not take the entity's key."""
        try:
            return self._start(entity)
        except ValidationError as error:
            raise ConfigurationError(
                f"{self._state.__name__} cannot start as the state of an entity of type {entity.type!r}, whose id and "
                f"partition key it is given: {problems(error)}. Declare them as their messages' keys are, or not at all."
            ) from None  # The cause would quote the key.
        except Exception as error:  # A model's validator may raise anything.
            raise ConfigurationError(
                f"{self._state.__name__} cannot start as the state of an entity of type {entity.type!r}, whose id and "
                f"partition key it is given: making it raised {type(error).__name__}. Correct the model's validators."
            ) from error

    def _start(self, entity: EntityRef) -> Any:
        return adapter(self._state).validate_python(self._known(self._identity(entity)))

    def read(self, entity: EntityRef, body: Json) -> Any:
        """Body to state. Raises `DamagedDocument` naming every property that does not fit."""
        try:
            return adapter(self._state).validate_python(self._known(body.value))
        except ValidationError as error:
            raise DamagedDocument(
                f"The document of entity {entity} does not fit {self._state.__name__}: {problems(error, self._state)}. Nothing "
                "was changed. Correct the document, or give the model a default or a before-validator that reads the old form."
            ) from None  # The cause would quote the document.
        except Exception as error:  # A model's validator may raise anything.
            raise DamagedDocument(
                f"The document of entity {entity} cannot be read as {self._state.__name__}: reading it raised "
                f"{type(error).__name__}. Nothing was changed. Correct the document, or the model's validators."
            ) from error

    def write(self, entity: EntityRef, state: Any, before: Json | None) -> Json:
        """State to body; properties of the body before that the model does not know survive.

        Raises:
            HandlerFailed: the state would be read as something else, or holds a number that the store would round, or a
                reserved property.
            IdentityChanged: it holds another id or partition key than the entity's.
            DamagedDocument: the body before has a reserved property.
        """
        properties = {} if before is None else before.value
        if reserved := RESERVED & properties.keys():
            raise DamagedDocument(
                f"The document of entity {entity} has the reserved property {min(reserved)!r}. With 'ttl' it would expire, and "
                "its ledger with it. Nothing was changed. Remove the property from the document."
            )
        content = _AS_KEPT.decode(Json.of(written(self._state, state)).text)
        if not comes_back(self._state, state, content):
            raise HandlerFailed(
                f"The handler's result, a {type(state).__name__}, would be read as something else. Return a "
                f"{self._state.__name__} whose values have their declared types, and that neither excludes fields nor reads "
                "and writes them under different names."
            )
        if reserved := RESERVED & content.keys():
            raise HandlerFailed(
                f"The handler's result, a {type(state).__name__}, has the reserved property {min(reserved)!r}. Give the "
                "property another name."
            )
        body = {**self._identity(entity), **properties, **content}
        for steps, value in ((("id",), entity.id), *zip(self._steps, entity.partition, strict=True)):
            if _get(content, steps, value) != value:
                raise IdentityChanged(
                    f"The handler changed {'/' + '/'.join(steps)} of entity {entity}. Id and partition key are fixed; send a "
                    "message to the other entity instead."
                )
            _set(body, steps, value)
        return Json.of(body)

    def tombstone(self, entity: EntityRef) -> Json:
        """A body with only id and partition key."""
        return Json.of(self._identity(entity))

    def _identity(self, entity: EntityRef) -> dict[str, Any]:
        body: dict[str, Any] = {"id": entity.id}
        for steps, value in zip(self._steps, entity.partition, strict=True):
            _set(body, steps, value)
        return body

    def _known(self, properties: dict[str, Any]) -> dict[str, Any]:
        """The properties without id and partition key, unless the model declares them: it may forbid extra properties."""
        own = {"id", *(steps[0] for steps in self._steps)} - self._declared
        return {name: value for name, value in properties.items() if name not in own}

    def _require_start(self) -> None:
        sample = EntityRef("sample", tuple("sample" for _ in self._steps), "sample")
        try:
            state = self._start(sample)
        except ValidationError as error:
            if all(one["type"] != "missing" for one in error.errors(include_input=False)):
                return  # Only the sample key does not fit, as where the model declares its key as a number.
            raise ConfigurationError(
                f"{self._state.__name__} cannot be the state of an entity that does not exist yet: {problems(error)}. Give "
                "every field a default."
            ) from None
        try:
            names = frozenset(written(self._state, state))
        except Exception:  # A model's serializer may raise anything; `write` reports it then.
            return
        self._require_unreserved(names)

    def _require_unreserved(self, names: Iterable[str]) -> None:
        if reserved := RESERVED.intersection(names):
            raise ConfigurationError(f"{self._state.__name__} uses the reserved property {min(reserved)!r}; rename it.")


def _integer(digits: str) -> int:
    number = int(digits)
    if abs(number) > _LARGEST_EXACT and (abs(number) > _LARGEST or int(float(number)) != number):
        raise HandlerFailed(
            "The handler's result has a whole number that the store would round: the store keeps doubles, exact up to "
            "2^53. Keep it as a string, or as a Decimal."
        )
    return number


def _number(digits: str) -> float:
    """The service takes 1 and 1.0 for one value and may return either, so both are written as 1."""
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) <= _LARGEST_EXACT else number


_AS_KEPT: Final = json.JSONDecoder(parse_int=_integer, parse_float=_number)
"""Reads a state as the store returns it, so that a message sees the same in a group as alone."""


def _property_names(model: Any) -> frozenset[str]:
    """Property names as they stand in the document."""
    if issubclass(model, BaseModel):
        return frozenset(field.serialization_alias or name for name, field in model.model_fields.items())
    return frozenset(field.name for field in dataclasses.fields(model))


def _get(properties: dict[str, Any], steps: tuple[str, ...], default: Any) -> Any:
    for step in steps:
        if not isinstance(properties, dict) or step not in properties:
            return default
        properties = properties[step]
    return properties


def _set(properties: dict[str, Any], steps: tuple[str, ...], value: Any) -> None:
    for step in steps[:-1]:
        properties = properties.setdefault(step, {})
    properties[steps[-1]] = value
