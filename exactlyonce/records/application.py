"""The application: owner of a library container, with its entity types and its retention, stored in one document.

The library names its records by entity type, partition key and id, and by nothing else. Two applications with a type of the
same name in one library container would take each other's messages for duplicates. So the first start of an application
writes down the owner of the container, and every later start compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import with_config

from exactlyonce.values.frozen_json import EXACT, SCHEMA, read_shape, write_shape
from exactlyonce.values.lifetimes import Retention

DEFAULT_NAME: Final = "exactlyonce"
KIND: Final = "application"
"""Kind, id and partition of the document. Partitions of entities are arrays of JSON, so none has this name."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OwnedType:
    """The location of all entities of one type.

    Attributes:
        type: name of the entity type.
        container: container of the entities, in the database of the library container.
        paths: paths of the container's partition key, from the top.
    """

    type: str
    container: str
    paths: tuple[str, ...]


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Application:
    """The owner of a library container.

    Attributes:
        name: name of the application.
        types: all entity types ever declared and not given up, by name.
        retention: time for which copies of messages are recognized.
        kind: kind of the document.
        schema: version of this shape.
    """

    name: str
    types: tuple[OwnedType, ...]
    retention: Retention
    kind: Literal["application"] = "application"
    schema: int = SCHEMA

    def joined_by(self, types: Iterable[OwnedType]) -> Application:
        """The application, extended by new types."""
        return replace(self, types=_by_name({kind.type: kind for kind in (*types, *self.types)}.values()))

    def without(self, type: str) -> Application:
        """The application without a type."""
        return replace(self, types=tuple(kind for kind in self.types if kind.type != type))

    def place_of(self, type: str) -> OwnedType | None:
        """The location of a type's entities; None for a new type."""
        return next((kind for kind in self.types if kind.type == type), None)

    def contradicted_by(self, types: Iterable[OwnedType]) -> Iterator[str]:
        """A sentence for each of the types whose stored location differs."""
        for kind in types:
            stored = self.place_of(kind.type)
            if stored is not None and stored.container != kind.container:
                yield (
                    f"Entities of type {kind.type!r} live in container {stored.container!r}, not in {kind.container!r}: "
                    "correct "
                    "the container's name, or give the type another name. Records are named by the type, so records of the "
                    "two containers would be taken for one another."
                )
            elif stored is not None and stored.paths != kind.paths:
                yield (
                    f"Container {stored.container!r} of entities of type {kind.type!r} has the partition key "
                    f"{', '.join(stored.paths)}, not {', '.join(kind.paths)}: correct the partition key."
                )


def application_of(name: str, types: Iterable[OwnedType], retention: Retention) -> Application:
    """The application as first written down."""
    return Application(name, _by_name(types), retention)


def read_application(document: Any) -> Application:
    """Read the document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Application, document, "The document of the application in the library container")


def application_document(application: Application) -> dict[str, Any]:
    """The document, without id and partition key, which the layout adds."""
    return write_shape(application)


def _by_name(types: Iterable[OwnedType]) -> tuple[OwnedType, ...]:
    return tuple(sorted(types, key=lambda kind: kind.type))
