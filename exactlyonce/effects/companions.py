"""Requests for companions: the library's documents in an entity's own partition, written in one batch with the entity."""

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
    """Companions that exist, each with the ETag it has, in a view at or after the token asked with."""

    companions: tuple[tuple[Companion, str], ...]


@dataclass(frozen=True, slots=True)
class FoundNumbered:
    """Versions, ascending."""

    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SaveBatch(Effect[Saved | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Save the entity document as `SaveEntity` does, and write companions, all in one transactional batch.

    Attributes:
        entity, document, etag: as for `SaveEntity`.
        create: companions that must not exist; if one does, it is a conflict.
        replace: companions to write over, each if it still has this ETag; else it is a conflict.
    """

    entity: EntityRef
    document: Json
    etag: str | None
    create: tuple[Companion, ...] = ()
    replace: tuple[tuple[Companion, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LoadCompanions(Effect[FoundCompanions | NoAnswer]):
    """Read companions of an entity by id, at or after `token`, if one is given. Those that are absent are left out."""

    entity: EntityRef
    ids: tuple[str, ...]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class FindEntries(Effect[FoundCompanions | NoAnswer]):
    """Read the stream entries of an entity that produced these versions, in their order, at or after `token`.

    Attributes:
        entity: whose stream it is.
        ranges: first and last version of each range.
        token: session token.
    """

    entity: EntityRef
    ranges: tuple[tuple[int, int], ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class FindNumbered(Effect[FoundNumbered | NoAnswer]):
    """Find the versions in an entity's stream whose outputs have these numbers, at or after `token`, if one is given.

    Attributes:
        entity: whose stream it is.
        channel: that carried them.
        numbers: first and last.
        token: session token.
    """

    entity: EntityRef
    channel: str
    numbers: tuple[int, int]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class FindOwing(Effect[FoundCompanions | NoAnswer]):
    """Find companions of an entity that still owe outputs, in whatever view answers; at most 100."""

    entity: EntityRef


@dataclass(frozen=True, slots=True)
class HasCompanions(Effect[bool | NoAnswer]):
    """Whether the entity has any companion, in whatever view answers. Best effort."""

    entity: EntityRef


@dataclass(frozen=True, slots=True)
class ReplaceCompanions(Effect[None]):
    """Write over companions that exist, best effort; one that has changed since it had the ETag given stays as it is.

    Attributes:
        entity: whose companions they are.
        companions: each with its ETag, or None to write over it whatever it is.
    """

    entity: EntityRef
    companions: tuple[tuple[Companion, str | None], ...]


@dataclass(frozen=True, slots=True)
class DeleteCompanions(Effect[None]):
    """Delete companions that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose companions they are.
        companions: id and ETag of each.
    """

    entity: EntityRef
    companions: tuple[tuple[str, str], ...]
