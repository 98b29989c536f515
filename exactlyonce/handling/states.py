"""State models and entity documents: the library adds id and partition key, and keeps properties that the model lacks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from pydantic import PydanticUserError, ValidationError

from exactlyonce.errors import ConfigurationError, DamagedDocument, HandlerFailed, IdentityChanged
from exactlyonce.handling.documents import Declared, Save, Unknown, covers, unknown, without
from exactlyonce.handling.messages import require_model, tell_unread
from exactlyonce.raised import ApplicationsCode, class_of
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.declarations import require_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.places import Place, ignores_more
from exactlyonce.values.round_trips import looks_further, lost, read_text, written, written_text
from exactlyonce.values.validation import problems, raised_in

RESERVED: Final = frozenset({LEDGER, "_kind", "_rid", "_self", "_etag", "_attachments", "_ts", "ttl"})
"""Properties of the library and the service. With `ttl` the entity would expire, and its ledger with it."""
_LARGEST_EXACT: Final = 2**53
_LONGEST_SHOWN: Final = 80
_LARGEST: Final = sys.float_info.max


class StateShape:
    """The mapping between a state model and documents with these partition key paths.

    Args:
        state: the model.
        paths: of the partition key.
        declared: the properties that are not the state's.

    Raises:
        ConfigurationError: the model cannot start empty, uses a reserved property, or has one of those that are declared not to
            be its; or a path is not like `/a` or `/a/b`.
    """

    def __init__(self, state: type, paths: tuple[str, ...], declared: Declared = Declared()) -> None:  # noqa: B008
        require_model(state, "A state")
        for path in paths:
            require_text("A partition key path", path)
            if not path.startswith("/") or not all(path[1:].split("/")):
                raise ConfigurationError(f"The partition key path {path!r} is not like '/gameId' or '/game/id'.")
            if path[1:].split("/")[0] in RESERVED:
                raise ConfigurationError(
                    f"The partition key path {path!r} is in a reserved property; take another one."
                )
        self._state = state
        self._steps = tuple(tuple(path[1:].split("/")) for path in paths)
        places = [("id",), *self._steps]
        if any(place[: len(one)] == one for one in places for place in places if len(place) > len(one)) or len(
            {*paths}
        ) < len(paths):
            raise ConfigurationError(
                "Of the paths of a partition key, each names another property, and none leads into another one, or into id."
            )
        try:
            self._top = Place.of(state)
        except PydanticUserError as error:  # As of an annotation that names what is defined later.
            raise ConfigurationError(f"{state.__name__} cannot be the state of an entity: {error.message}") from None
        self._own = frozenset({"id", *(steps[0] for steps in self._steps)}) - self._top.names
        self._declared = declared
        self._hidden = tuple(
            require_text("A name in removed= or foreign=", one) for one in (*declared.removed, *declared.foreign)
        )
        self._ignores = ignores_more(state) and not any("." in pattern for pattern in self._hidden)
        self._require_unreserved(self._top.names)
        self._require_start()
        declared.require_unread(self._top, RESERVED | self._own, state.__name__)

    def start(self, entity: EntityRef) -> Any:
        """The state of an absent entity. Raises `ConfigurationError` if the model does not take the entity's key."""

        def failed(error: BaseException) -> ConfigurationError:  # A model's validator may raise anything.
            return ConfigurationError(
                f"{self._state.__name__} cannot start as the state of an entity of type {entity.type!r}, whose id and "
                f"partition key it is given: making it raised {class_of(error)}. Correct the model's validators."
            )

        try:
            with ApplicationsCode(failed, ValidationError):
                return self._start(entity)
        except ValidationError as error:
            raise ConfigurationError(
                f"{self._state.__name__} cannot start as the state of an entity of type {entity.type!r}, whose id and "
                f"partition key it is given: {problems(error, is_quoted=False)}. Declare them as their messages' keys are, "
                "or not at all."
            ) from raised_in(error)  # Pydantic's own error would quote the key.

    def _start(self, entity: EntityRef) -> Any:
        return self._read(self._identity(entity))

    def _start_content(self, entity: EntityRef) -> Any:
        return written(self._state, self._start(entity))

    def read(self, entity: EntityRef, body: Json) -> Any:
        """Body to state. Raises `DamagedDocument` naming every property that does not fit."""

        def failed(error: BaseException) -> DamagedDocument:  # A model's validator may raise anything.
            return DamagedDocument(
                f"The document of entity {entity} cannot be read as {self._state.__name__}: reading it raised "
                f"{class_of(error)}. Nothing was changed. Correct the document, or the model's validators."
            )

        try:
            with ApplicationsCode(failed, ValidationError):
                return read_text(self._state, self._text(body))
        except ValidationError as error:
            raise DamagedDocument(
                f"The document of entity {entity} does not fit {self._state.__name__}: {problems(error, self._state)}. Nothing "
                "was changed. Correct the document, or give the model a default, or an alias or a before-validator that reads "
                "the old form."
            ) from raised_in(error)  # Pydantic's own error would quote the document.

    def write(self, entity: EntityRef, state: Any, before: Json | None, *, adopted: bool = False) -> Json:
        """State to body. What is read next is this state; properties that nothing of the model reads stay.

        Args:
            entity: that it is of.
            state: to be written.
            before: the body that is replaced.
            adopted: whether the body before may be of another program: then fields that it lacks were not renamed.

        Raises:
            HandlerFailed: the state would be read as something else, or holds a number that the store would round, or a
                reserved property.
            IdentityChanged: it holds another id or partition key than the entity's.
            DamagedDocument: the body before has a reserved property; or one that the model does not know, and that may be the
                old name of a field, or is in a list that was changed.
        """
        stored = {} if before is None else before.value
        if reserved := RESERVED & stored.keys():
            raise DamagedDocument(
                f"The document of entity {entity} has the reserved property {min(reserved)!r}. With 'ttl' it would expire, and "
                "its ledger with it. Nothing was changed. Remove the property from the document."
            )
        content = _AS_KEPT.decode(written_text(self._state, state))
        if not isinstance(state, self._state) or not isinstance(content, dict):
            raise self._changed(state, f"it is no {self._state.__name__}")
        if reserved := RESERVED & content.keys():
            raise HandlerFailed(
                f"The handler's result, a {type(state).__name__}, has the reserved property {min(reserved)!r}. Give the "
                "property another name."
            )
        for steps, value in self._places(entity):
            # The model may declare a key as a number, or a UUID: then it writes what it reads of the key in another form.
            if (now := _get(content, steps, value)) != value and now != _get(self._start_content(entity), steps, value):
                raise IdentityChanged(
                    f"The handler changed {'/' + '/'.join(steps)} of entity {entity}. Id and partition key are fixed; send a "
                    "message to the other entity instead."
                )
        body = self._body(entity, stored, content)
        if before is not None and not covers(body, stored):
            body = self._body(entity, stored, self._merged(entity, state, stored, content, adopted))
        frozen = Json.of(body)
        if (what := lost(self._state, state, self._text(frozen))) is not None:
            raise self._changed(state, what)
        return frozen

    def _merged(
        self, entity: EntityRef, state: Any, stored: dict[str, Any], content: dict[str, Any], adopted: bool
    ) -> dict[str, Any]:
        """Content with what stays of the stored document."""
        whole = without(self._known(stored), self._declared.removed)
        for steps, _ in self._places(entity):
            whole = without(whole, [".".join(steps)])
        base = without(whole, self._declared.foreign)
        old = self._read(stored)
        save = Save(
            str(entity),
            self._top,
            base,
            content,
            old,
            state,
            lambda some: written(self._state, self._read(some)),
            looks_further(self._state),
            lambda names: tell_unread(
                f"documents of {self._state.__name__}",
                frozenset(ascii(name[:_LONGEST_SHOWN]) for name in names),
                "stay there unread, while a field is absent",
                "Was a field renamed? Then let the model read the old name, too. Declare removed= or foreign= otherwise",
            ),
        )
        foreign, kept = unknown(whole, base, Place()), [group.of(whole) for group in save.keeps(adopted=adopted)]
        merged = save.merged([*foreign, *kept])
        if self._lost(state, merged) is None:
            return merged
        # A validator reads something that looked like nobody's, such as an old name whose value was a default.
        stays: list[Unknown] = foreign
        for group in kept:
            if self._lost(state, save.merged([*stays, group])) is None:
                stays = [*stays, group]
        return save.merged(stays)

    def _body(self, entity: EntityRef, stored: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
        own = {name: stored[name] for name in self._own if name in stored}
        body = {**self._identity(entity), **own, **content}
        for steps, value in self._places(entity):
            _set(body, steps, value)
        return body

    def _lost(self, state: Any, body: dict[str, Any]) -> str | None:
        return lost(self._state, state, self._text(Json.of(body)))

    def _changed(self, state: Any, what: str) -> HandlerFailed:
        return HandlerFailed(
            f"The handler's result, a {type(state).__name__}, would be read as something else: {what}. Return a "
            f"{self._state.__name__} whose values have their declared types, and that neither excludes fields nor reads and "
            "writes them under different names."
        )

    def tombstone(self, entity: EntityRef) -> Json:
        """A body with only id and partition key."""
        return Json.of(self._identity(entity))

    def _identity(self, entity: EntityRef) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for steps, value in self._places(entity):
            _set(body, steps, value)
        return body

    def _places(self, entity: EntityRef) -> tuple[tuple[tuple[str, ...], Any], ...]:
        """Where id and partition key stand, and what they are."""
        return ((("id",), entity.id), *zip(self._steps, entity.partition, strict=True))

    def _read(self, properties: dict[str, Any]) -> Any:
        return read_text(self._state, self._text(Json.of(properties)))

    def _text(self, body: Json) -> str:
        """What the model gets of a document."""
        return body.text if self._ignores else Json.of(without(self._known(body.value), self._hidden)).text

    def _known(self, properties: dict[str, Any]) -> dict[str, Any]:
        """The properties without id and partition key, unless the model declares them: it may forbid extra properties."""
        return {name: value for name, value in properties.items() if name not in self._own}

    def _require_start(self) -> None:
        sample = EntityRef("sample", tuple("sample" for _ in self._steps), "sample")

        def failed(error: BaseException) -> ConfigurationError:
            return ConfigurationError(
                f"{self._state.__name__} cannot be the state of an entity that does not exist yet: making one raised "
                f"{class_of(error)}. Correct the model's validators and default factories."
            )

        try:
            with ApplicationsCode(failed, ValidationError):
                state = self._start(sample)
        except ValidationError as error:
            if all(one["type"] != "missing" for one in error.errors(include_input=False)):
                return  # Only the sample key does not fit, as where the model declares its key as a number.
            raise ConfigurationError(
                f"{self._state.__name__} cannot be the state of an entity that does not exist yet: {problems(error)}. Give "
                "every field a default."
            ) from None
        try:
            with ApplicationsCode(lambda error: HandlerFailed(f"A serializer raised {class_of(error)}.")):
                names = frozenset(written(self._state, state))
        except HandlerFailed:  # `write` reports it then.
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
