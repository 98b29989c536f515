"""Places of a model: what it declares at each place of its JSON, under any name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from exactlyonce.values.validation import adapter, names_read

STRUCTURES: Final = ("model-fields", "dataclass-args", "typed-dict")
ANY: Final = "*"
"""Stands for every key of a mapping, and for every item of a list, in the pattern of a path."""


@dataclass(frozen=True)
class Place:
    """A place of a model's JSON.

    Attributes:
        nodes: the parts of the model's schema that may stand there.
    """

    nodes: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, model: Any) -> Place:
        """The top of a model."""
        return _top(model)

    def declares(self, name: str) -> bool:
        """Whether a property of this name is the model's, whatever it writes there. Of a mapping all are."""
        return name in self.names or self.is_mapping

    @cached_property
    def names(self) -> frozenset[str]:
        """All names under which fields are read or written here; a field with an alias may not be read by its own."""
        return frozenset(name for _, field in self._fields for name in field[0])

    def lacks(self, content: dict[str, Any]) -> bool:
        """Whether a field is absent under each of its names."""
        return any(names.isdisjoint(content) for _, (names, _) in self._fields)

    @cached_property
    def computed(self) -> frozenset[str]:
        """Names of computed fields."""
        parts = (part for node in self.nodes for part in node.get("computed_fields", ()))
        return frozenset(part.get("alias") or part["property_name"] for part in parts)

    @cached_property
    def is_mapping(self) -> bool:
        """Whether names here are keys, and so values."""
        return any(node["type"] == "dict" for node in self.nodes)

    @cached_property
    def is_set(self) -> bool:
        """Whether the items here have no order of their own."""
        return any(node["type"] in ("set", "frozenset") for node in self.nodes)

    def step(self, name: str) -> str:
        """A name as it stands in a pattern."""
        return name if name in self.names or not self.is_mapping else ANY

    def at(self, name: str) -> Place:
        """The place of a property."""
        key = name if name in self.names else ANY
        if key not in self._inside:
            inner = [field[1] for _, field in self._fields if name in field[0]]
            inner += [
                node["values_schema"] for node in self.nodes if node["type"] == "dict" and "values_schema" in node
            ]
            self._inside[key] = self._of(inner)
        return self._inside[key]

    @cached_property
    def _inside(self) -> dict[str, Place]:
        """The places of properties that were asked for: as many as the model has, however many keys a mapping has."""
        return {}

    @cached_property
    def items(self) -> Place:
        """The place of the items of a list."""
        inner: list[Any] = []
        for node in self.nodes:
            schema = node.get("items_schema")
            inner += schema if isinstance(schema, list) else [] if schema is None else [schema]
        return self._of(inner)

    @cached_property
    def _fields(self) -> tuple[tuple[str, tuple[frozenset[str], Any]], ...]:
        fields: list[tuple[str, tuple[frozenset[str], Any]]] = []
        for node in self.nodes:
            if node["type"] in STRUCTURES:
                declared = node["fields"]
                pairs = declared.items() if isinstance(declared, dict) else ((one["name"], one) for one in declared)
                by_name = bool(node["config"].get("validate_by_name"))
                fields += [(name, (_names(name, field, by_name=by_name), field["schema"])) for name, field in pairs]
        return tuple(fields)

    def _of(self, schemas: list[Any]) -> Place:
        definitions = self.nodes[0].get("__definitions__", {}) if self.nodes else {}
        return Place(tuple(node for schema in schemas for node in unwrapped(schema, definitions)))


def ignores_more(model: Any) -> bool:
    """Whether a model takes no notice of properties that it does not declare: no validator sees them, and none is refused."""
    found: Any = adapter(model).core_schema
    if found["type"] == "definitions":
        found = found["schema"]
    behaviour: set[Any] = set()
    while found["type"] in ("model", "dataclass"):
        behaviour |= {found.get("config", {}).get("extra_fields_behavior"), found.get("custom_init") or None}
        found = found["schema"]
    behaviour.add(found.get("extra_behavior"))
    return found["type"] in STRUCTURES and behaviour <= {None, "ignore"}


@cache
def _top(model: Any) -> Place:
    return Place(tuple(unwrapped(adapter(model).core_schema)))


def _names(name: str, field: Any, *, by_name: bool) -> frozenset[str]:
    written = field.get("serialization_alias") or name
    return frozenset({written, *names_read(field.get("validation_alias"), name, by_name=by_name)})


_INSIDE: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "union": lambda part: [one[0] if isinstance(one, tuple) else one for one in part["choices"]],
    "tagged-union": lambda part: [one for one in part["choices"].values() if isinstance(one, dict)],
    "chain": lambda part: part["steps"],
    "lax-or-strict": lambda part: [part["lax_schema"]],
    "json-or-python": lambda part: [part["json_schema"]],
    "json": lambda _: [],  # Its text holds nothing that a document names.
}


def unwrapped(schema: Any, definitions: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The parts of a schema that say what stands at its place: through validators, unions, optionals and references."""
    definitions, seen = definitions or {}, set()
    waiting: list[tuple[Any, dict[str, Any]]] = [(schema, {})]
    while waiting:
        part, config = waiting.pop()
        kind, config = part["type"], part.get("config", config)
        inner: list[Any] = []
        if kind == "definitions":
            definitions = {**definitions, **{one["ref"]: one for one in part["definitions"]}}
            inner = [part["schema"]]
        elif kind == "definition-ref":
            inner = [] if part["schema_ref"] in seen else [definitions[part["schema_ref"]]]
            seen.add(part["schema_ref"])
        elif kind in _INSIDE:
            inner = _INSIDE[kind](part)
        elif "schema" in part and kind not in STRUCTURES:
            inner = [part["schema"]]
        else:
            yield {**part, "config": config, "__definitions__": definitions}
        waiting += ((schema, config) for schema in inner)
