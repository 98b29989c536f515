"""Entity documents over releases: properties that a save keeps or drops, and the reasons to refuse a save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from exactlyonce.errors import ConfigurationError, DamagedDocument
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.round_trips import ANY, Place, stored_parts

_Path = tuple[str | int, ...]
_ADVICE: Final = (
    "If it was renamed, let the model read the old name too, such as by Field(validation_alias=AliasChoices('new', 'old')). If "
    "no release needs it any more, declare Entity(..., removed=({name!r},)): it goes with the next save. If another program "
    "keeps it, declare foreign=({name!r},)."
)


@dataclass(frozen=True)
class Unknown:
    """Stored properties that the model does not write, at all places of one pattern.

    Attributes:
        pattern: name of the properties: steps joined by dots, with `*` for keys of mappings and items of lists.
        declared: whether the model declares them all the same, as for reading.
        places: paths and values.
    """

    pattern: str
    declared: bool
    places: list[tuple[_Path, Any]] = field(default_factory=list)

    def of(self, document: Any) -> Unknown:
        """The same properties with their values in another document."""
        return replace(self, places=[(path, _part(document, path)) for path, _ in self.places])


@dataclass(frozen=True)
class Declared:
    """Properties outside the state, by their patterns.

    Attributes:
        removed: properties of former releases, unread by every release. The next save drops them.
        foreign: properties of other programs, which stay in the documents.
    """

    removed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def require_unread(self, top: Place, reserved: Iterable[str], state: str) -> None:
        """Raise `ConfigurationError` if a pattern names no property, or a property of the model or the library."""
        for pattern in (*self.removed, *self.foreign):
            place, steps = top, pattern.split(".")
            if not all(steps) or steps[-1] == ANY:
                raise ConfigurationError(
                    f"removed= and foreign= name properties such as 'total' or 'lines.*.price'; {pattern!r} is none."
                )
            for step in steps[:-1]:
                place = place.items if step == ANY and not place.is_mapping else place.at(step)
            if place.declares(steps[-1]) or steps[0] in reserved:
                raise ConfigurationError(
                    f"The property {pattern!r} cannot be in removed= or foreign=: {state}, or the library, has it."
                )
        if both := set(self.removed) & set(self.foreign):
            raise ConfigurationError(f"The property {min(both)!r} is in removed= and in foreign=. Leave one out.")


def without(document: Any, patterns: Iterable[str]) -> Any:
    """A document without the properties of these patterns."""
    for pattern in patterns:
        document = _cut(document, pattern.split("."))
    return document


def _cut(part: Any, steps: list[str]) -> Any:
    first, *rest = steps
    if isinstance(part, list):
        return [_cut(item, rest) for item in part] if first == ANY and rest else part
    if not isinstance(part, dict):
        return part
    if not rest:
        return {name: item for name, item in part.items() if name != first}
    return {name: _cut(item, rest) if first in (ANY, name) else item for name, item in part.items()}


def unknown(stored: Any, again: Any, top: Place) -> list[Unknown]:
    """The stored properties that are absent `again`, after the model read and wrote the document."""
    groups: dict[str, Unknown] = {}
    for path, pattern, declared, value in _unwritten(stored, again, top):
        name = ".".join(pattern)
        groups.setdefault(name, Unknown(name, declared)).places.append((path, value))
    return list(groups.values())


def _unwritten(stored: Any, again: Any, place: Place) -> Iterator[tuple[_Path, tuple[str, ...], bool, Any]]:
    inner: list[tuple[str | int, str, Any, Any, Place]] = []
    if isinstance(stored, dict) and isinstance(again, dict):
        for name, value in stored.items():
            if name not in again:
                yield (name,), (place.step(name),), place.declares(name), value
            else:
                inner.append((name, place.step(name), value, again[name], place.at(name)))
    elif isinstance(stored, list) and isinstance(again, list):
        inner += ((n, ANY, *pair, place.items) for n, pair in enumerate(zip(stored, again, strict=False)))
    for step, shown, value, other, at in inner:
        for path, pattern, declared, part in _unwritten(value, other, at):
            yield (step, *path), (shown, *pattern), declared, part


@dataclass(frozen=True)
class Save:
    """A save of a state over a stored document with more properties than the state.

    Attributes:
        about: the entity, for errors.
        top: the model.
        stored: the document without identity and foreign properties.
        content: the new state, written by the model.
        old, new: the stored state, and the new state.
        again: reads a document with the model, and writes the result.
        looks: whether code of the model may look at undeclared properties.
        tell: takes the patterns of unread properties that stay in an object which lacks a field of the model.
    """

    about: str
    top: Place
    stored: dict[str, Any]
    content: dict[str, Any]
    old: Any
    new: Any
    again: Callable[[Any], Any]
    looks: bool = True
    tell: Callable[[frozenset[str]], None] = lambda _: None
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @cached_property
    def written(self) -> Any:
        """The stored document, read and written by the model."""
        return self.again(self.stored)

    def keeps(self, *, adopted: bool) -> list[Unknown]:
        """The properties that stay, since no part of the model reads them.

        Args:
            adopted: whether another program may have written the document: then an absent field was not renamed.

        Raises:
            DamagedDocument: a field seems to have been renamed.
        """
        groups = unknown(self.stored, self.written, self.top)
        others = [group for group in groups if not group.declared]
        read = self._read(others)
        kept = [group for group in others if group not in read]
        read += [group for group in groups if group.declared]
        other = self._probe(read, _other) if read and kept else self.written
        if not adopted:
            self.tell(frozenset(group.pattern for group in kept if self._require_no_rename(group, other)))
        return kept

    def _probe(self, groups: list[Unknown], edit: Callable[[Any], Any] | None) -> Any:
        try:
            return self.again(_edited(self.stored, groups, edit))
        except Exception:  # A validator of the model may raise anything.
            return None

    def _read(self, groups: list[Unknown]) -> list[Unknown]:
        """The groups that a validator reads: without them, or with other values, the state differs."""

        def reads(some: list[Unknown]) -> bool:
            return any(self._probe(some, edit) != self.written for edit in (None, _other))

        if not (self.looks and groups and reads(groups)) or self._probe([], None) != self.written:
            return []  # The last: the model asks a clock, or chance.
        return [group for group in groups if reads([group])]

    def _require_no_rename(self, group: Unknown, other: Any) -> bool:
        """Refuse the save if an unknown property may be a renamed field.

        Its object must lack a field that fits the property's value, and no other property may fill this field.

        Returns:
            whether an object with the property lacks any field of the model: it is empty, or was renamed to another form.
        """
        lacks = False
        absent: dict[str, list[tuple[_Path, Any]]] = {}
        for path, value in group.places:
            stored, written, place = self.stored, self.written, self.top
            for step in path[:-1]:
                stored, written = stored[step], written[step]  # type: ignore[index]
                place = place.items if isinstance(step, int) else place.at(step)
            lacks = lacks or place.lacks(stored)
            for name in place.names & written.keys() - stored.keys() - place.computed:
                absent.setdefault(name, []).append(((*path[:-1], name), value))
        for name, places in absent.items():
            if self._fits(places, other):
                raise DamagedDocument(
                    f"The document of entity {self.about} has {group.pattern!r}, which no field of the state reads, and lacks "
                    f"{name!r} beside it, which would take the value. Nothing was changed, since a renamed field would lose "
                    f"its value. {_ADVICE.format(name=group.pattern)}"
                )
        return lacks

    def _fits(self, places: list[tuple[_Path, Any]], other: Any) -> bool:
        """Whether a value, put into an absent field, would arrive there."""
        # Each try reads the whole document. So all values are tried at once, and if they do not fit, then a value of each kind.
        for some in (places, *([place] for place in {type(place[1]): place for place in places}.values())):
            renamed = self._probe([Unknown("", False, some)], lambda value: value)
            for path, value in some if renamed is not None else ():
                before = _part(self.written, path)
                if _part(renamed, path) != before == _part(other, path) and _carries(_part(renamed, path), value):
                    return True
        return False

    def merged(self, groups: list[Unknown]) -> dict[str, Any]:
        """The content with these properties, wherever their object still exists.
        Raises `DamagedDocument`: a property is in a list that the handler changed."""
        body = deepcopy(self.content) if groups else self.content
        for group in groups:
            for path, value in group.places:
                target = self._target(body, group, path[:-1])
                if isinstance(target, dict):
                    target.setdefault(path[-1], value)
        return body

    def _target(self, body: Any, group: Unknown, path: _Path) -> Any:
        content: Any = self.content
        stored: Any = self.stored
        written, old, new, place = self.written, self.old, self.new, self.top
        for step in path:
            if isinstance(step, int):
                is_mixed = place.is_set and not self._once(_alike, stored, written)
                if isinstance(content, list) and (is_mixed or not self._once(_begins, content, written)):
                    raise DamagedDocument(
                        f"The document of entity {self.about} has {group.pattern!r}, which no field of the state reads, in a "
                        "list that the handler changed, or in a set, so its item is unknown. Nothing was changed. If this "
                        "instance is older than the writer of the document, finish the deployment, and requeue the "
                        "message. Otherwise add the field to the model, keep the items in a mapping by their keys, or "
                        f"declare Entity(..., removed=({group.pattern!r},))."
                    )
                old, new = (item[step] if isinstance(item, (list, tuple)) else None for item in (old, new))
            else:
                if not isinstance(content, dict) or step not in content:
                    return None
                old, new = (self._once(_parts, *pair).get(step) for pair in ((old, written), (new, content)))
            if not isinstance(content, (list, dict)) or type(old) is not type(new):
                return None  # Another variant stands there now.
            inside: Any = content
            body, content, written, stored = body[step], inside[step], written[step], stored[step]
            place = place.items if isinstance(step, int) else place.at(step)
        return body

    def _once(self, make: Callable[..., Any], *of: Any) -> Any:
        """The result of a function of parts of this save, computed a single time for a part with many unknown properties."""
        key = (make, *map(id, of))
        if key not in self._made:
            self._made[key] = make(*of)
        return self._made[key]


def _parts(value: Any, content: Any) -> dict[str, Any]:
    return dict(stored_parts(value, content))


def _alike(stored: list[Any], written: list[Any]) -> bool:
    """Whether the items of a set are in equal order, as far as the properties known to the model show."""
    pairs = zip(stored, written, strict=False)
    return len(stored) == len(written) and all(
        other.get(name, value) == value
        for item, other in pairs
        if isinstance(item, dict) and isinstance(other, dict)
        for name, value in item.items()
    )


def _begins(items: list[Any], others: list[Any]) -> bool:
    return items[: len(others)] == others


def _part(document: Any, path: _Path) -> Any:
    try:
        for step in path:
            document = document[step]
    except (TypeError, LookupError):
        return None
    return document


def _carries(written: Any, value: Any) -> bool:
    """Whether a field kept a part of its new value. A model accepts any object, and drops undeclared properties."""
    if isinstance(value, dict) and isinstance(written, dict):
        return any(name in written for name in value)
    # To read a truth value as a number, and a number as a truth value, is pydantic's courtesy, and no sign of a new name.
    return written is not None and isinstance(value, bool) == isinstance(written, bool)


def _edited(document: Any, groups: list[Unknown], edit: Callable[[Any], Any] | None) -> Any:
    """A document with changed values of these properties, or without them."""
    document = Json.of(document).value
    for group in groups:
        for path, value in group.places:
            part = document
            for step in path[:-1]:
                part = part[step]
            if edit is None:
                del part[path[-1]]
            else:
                part[path[-1]] = edit(value)
    return document


def _other(value: Any) -> Any:
    """A different value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}1"
        case list():
            return [_other(item) for item in value] or [1]
        case dict():
            return {name: _other(item) for name, item in value.items()} or {"1": 1}
    return 1
