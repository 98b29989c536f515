"""The model's store: one entity document, and one partition of the library, each a log that reads may lag behind.

Logs are immutable and interned, so that comparing worlds compares identities. Tokens and ETags are positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from exactlyonce.frozen_json import Json
from exactlyonce.records import ProcessedRecord, StagedOutputs

TOKEN: Final = "0:-1#"  # noqa: S105


def token_at(position: int) -> str:
    """The session token of a position in a log."""
    return f"{TOKEN}{position}"


def position_of(token: str | None) -> int:
    """The position a token stands for; 0, the empty log, without one."""
    return int(token.removeprefix(TOKEN)) if token else 0


@dataclass(frozen=True, slots=True)
class Version:
    """One accepted write of the entity: the document, and what its commit claimed.

    Attributes:
        document: as saved.
        committed: message, transaction and digest of the outputs of every commit so far.
    """

    document: Json
    committed: frozenset[tuple[str, str, str]]


class EntityLog:
    """Every version of the entity that a read may still return; the last one is the truth."""

    __slots__ = ("first", "versions")

    def __init__(self, first: int, versions: tuple[Version, ...]) -> None:
        self.first = first
        self.versions = versions

    @property
    def newest(self) -> int:
        """Position of the newest version; 0 if the entity is absent."""
        return self.first + len(self.versions) - 1 if self.versions else 0

    def at(self, position: int) -> Version | None:
        """The version at a position; None at 0, where the entity is absent."""
        return self.versions[position - self.first] if position >= max(self.first, 1) else None

    @property
    def truth(self) -> Version | None:
        return self.versions[-1] if self.versions else None


class LibraryLog:
    """The accepted writes of the library's partition: (id, record or None for a delete), in order."""

    __slots__ = ("stages", "writes")

    def __init__(self, writes: tuple[tuple[str, ProcessedRecord | StagedOutputs | None], ...]) -> None:
        self.writes = writes
        self.stages = frozenset(id for id, _ in writes if id.startswith("staged:"))

    def view(self, position: int) -> dict[str, Any]:
        """What exists at a position."""
        found = dict(self.writes[:position])
        return {id: record for id, record in found.items() if record is not None}


class Interned:
    """One object for each distinct log."""

    def __init__(self) -> None:
        self._entities: dict[tuple[Any, ...], EntityLog] = {}
        self._libraries: dict[tuple[Any, ...], LibraryLog] = {}

    def entity(self, first: int, versions: tuple[Version, ...]) -> EntityLog:
        key = (first, versions)
        found = self._entities.get(key)
        if found is None:
            found = self._entities[key] = EntityLog(first, versions)
        return found

    def library(self, writes: tuple[tuple[str, ProcessedRecord | StagedOutputs | None], ...]) -> LibraryLog:
        found = self._libraries.get(writes)
        if found is None:
            found = self._libraries[writes] = LibraryLog(writes)
        return found
