"""Whose a library container is, where its entities live, and for how long messages are known: one document says it to all.

What the library keeps of an entity is named by its type, its partition key and its id, and by nothing else. Two applications
with a type of the same name in one library container would take each other's messages for their own duplicates. So the first
start of an application writes down whose the container is, and every later one compares.
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
"""Kind and id of the document, and its partition. Partitions of entities are arrays of JSON, so none has this name."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class OwnedType:
    """Where the entities of one type live.

    Attributes:
        type: name of the entity type.
        container: its container, in the database of the library container.
        paths: of that container's partition key, from the top.
    """

    type: str
    container: str
    paths: tuple[str, ...]


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Application:
    """The owner of a library container.

    Attributes:
        name: of the application.
        types: all entity types that it has ever had, and not given up; by name.
        retention: for how long it knows messages.
        kind: what the document is.
        schema: version of this shape.
    """

    name: str
    types: tuple[OwnedType, ...]
    retention: Retention
    kind: Literal["application"] = "application"
    schema: int = SCHEMA

    def joined_by(self, types: Iterable[OwnedType]) -> Application:
        """With those of the types that it does not know yet."""
        return replace(self, types=_by_name({one.type: one for one in (*types, *self.types)}.values()))

    def without(self, type: str) -> Application:
        """Without a type."""
        return replace(self, types=tuple(one for one in self.types if one.type != type))

    def place_of(self, type: str) -> OwnedType | None:
        """Where the entities of a type live; None if it is not known."""
        return next((one for one in self.types if one.type == type), None)

    def contradicted_by(self, types: Iterable[OwnedType]) -> Iterator[str]:
        """What is said otherwise of types that it knows, a sentence for each."""
        for one in types:
            known = self.place_of(one.type)
            if known is not None and known.container != one.container:
                yield (
                    f"Entities of type {one.type!r} live in container {known.container!r}, not in {one.container!r}: correct "
                    "the container's name, or give the type another name. Records are named by the type, so that those of one "
                    "container would be taken for those of the other."
                )
            elif known is not None and known.paths != one.paths:
                yield (
                    f"Container {known.container!r} of entities of type {one.type!r} has the partition key "
                    f"{', '.join(known.paths)}, not {', '.join(one.paths)}: correct the partition key."
                )


def application_of(name: str, types: Iterable[OwnedType], retention: Retention) -> Application:
    """An application as it is written down first."""
    return Application(name, _by_name(types), retention)


def read_application(document: Any) -> Application:
    """Read the document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Application, document, "The document of the application in the library container")


def application_document(application: Application) -> dict[str, Any]:
    """The document, without the id and partition key its layout gives it."""
    return write_shape(application)


def _by_name(types: Iterable[OwnedType]) -> tuple[OwnedType, ...]:
    return tuple(sorted(types, key=lambda one: one.type))
