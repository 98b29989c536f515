"""Effects on companions: the library's documents in an entity's own partition, written in one batch with the entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.records.companions import Companion
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class FoundCompanions:
    """Existing companions with their ETags, in a view at or after the requested token."""

    companions: tuple[tuple[Companion, str], ...]


@dataclass(frozen=True, slots=True)
class FoundNumbered:
    """Entity versions, ascending."""

    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SaveBatch(Effect[Saved | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Save the entity document as `SaveEntity` does, and write companions, all in one transactional batch.

    Attributes:
        entity, document, etag: as for `SaveEntity`.
        create: companions that must not exist; an existing document means a conflict.
        replace: companions to overwrite, each on the condition of its ETag; a changed document means a conflict.
    """

    entity: EntityRef
    document: Json
    etag: str | None
    create: tuple[Companion, ...] = ()
    replace: tuple[tuple[Companion, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LoadCompanions(Effect[FoundCompanions | NoAnswer]):
    """Read companions of an entity by id, at or after `token` if given. Absent companions are left out."""

    entity: EntityRef
    ids: tuple[str, ...]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class FindEntries(Effect[FoundCompanions | NoAnswer]):
    """Read the stream entries of these versions, in order, at or after `token`.

    Attributes:
        ranges: first and last version of each range.
    """

    entity: EntityRef
    ranges: tuple[tuple[int, int], ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class FindNumbered(Effect[FoundNumbered | NoAnswer]):
    """Find the stream versions whose outputs have these numbers, at or after `token` if given.

    Attributes:
        numbers: first and last number.
    """

    entity: EntityRef
    channel: str
    numbers: tuple[int, int]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class FindOwing(Effect[FoundCompanions | NoAnswer]):
    """Find companions of an entity that still owe outputs, in any view; at most 100."""

    entity: EntityRef


@dataclass(frozen=True, slots=True)
class HasCompanions(Effect[bool | NoAnswer]):
    """Whether the entity has any companion, in any view. Best effort."""

    entity: EntityRef


@dataclass(frozen=True, slots=True)
class ReplaceCompanions(Effect[None]):
    """Overwrite existing companions, best effort; a companion with another ETag than the given one stays.

    Attributes:
        companions: companions with their ETags; None overwrites unconditionally.
    """

    entity: EntityRef
    companions: tuple[tuple[Companion, str | None], ...]


@dataclass(frozen=True, slots=True)
class DeleteCompanions(Effect[None]):
    """Delete companions whose ETag is still as read, best effort.

    Attributes:
        companions: id and ETag of each.
    """

    entity: EntityRef
    companions: tuple[tuple[str, str], ...]
