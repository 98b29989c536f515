"""Requests to the library's partition of an entity: staged messages, parked messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.effects.entity import Conflict
from exactlyonce.records.library import ParkedMessage, StagedOutputs, Unparked
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import RETENTION

NOTED_FOR: Final = int((2 * RETENTION).total_seconds())
"""Seconds for which a note of a message that is parked no longer stays, unless the application's retention is another."""


@dataclass(frozen=True, slots=True)
class FoundStaged:
    """The staged documents that exist, in a view at or after the token asked with."""

    documents: tuple[StagedOutputs, ...]


@dataclass(frozen=True, slots=True)
class FoundParked:
    """A parked message, in whatever view answers.

    Attributes:
        message: None if this replica has no such document.
        etag: what its deletion is conditional on; None if absent.
        now: the present by the store's clock; None if absent. An operator's laptop may ask, and its clock would decide how old
            a message may be that is sent again.
    """

    message: ParkedMessage | None
    etag: str | None
    now: datetime | None


@dataclass(frozen=True, slots=True)
class Written:
    """Applied. `token` includes this write."""

    token: str


@dataclass(frozen=True, slots=True)
class Stage(Effect[Written | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Create staged documents."""

    entity: EntityRef
    documents: tuple[StagedOutputs, ...]


@dataclass(frozen=True, slots=True)
class LoadStaged(Effect[FoundStaged | NoAnswer]):
    """Read staged documents, at or after `token`. Those that are gone are left out of the reply."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class DeleteStaged(Effect[None]):
    """Delete staged documents, best effort: whatever remains is clean-up's."""

    entity: EntityRef
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Park(Effect[Written | Literal[NoAnswer.UNKNOWN]]):
    """Upsert a parked message.

    Not a create: a message that comes back while its requeuing is still under way has to get a new ETag, or the deletion
    at the end of that requeuing would take the only copy there is.
    """

    entity: EntityRef
    message: ParkedMessage


@dataclass(frozen=True, slots=True)
class LoadParked(Effect[FoundParked | NoAnswer]):
    """Read the parked document of a message; at or after `token`, if one is given."""

    entity: EntityRef
    message: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Unpark(Effect[None]):
    """Put a note in the place of the parked document of a message, if that still has this ETag; best effort. One request.

    Attributes:
        entity: under which it is parked.
        message: key of the message.
        etag: of its document, as it was read.
        sent: key under which it was sent again; None if it was discarded.
        seconds: for which the store is to keep the note.
    """

    entity: EntityRef
    message: str
    etag: str
    sent: str | None = None
    seconds: int = NOTED_FOR

    @property
    def note(self) -> Unparked:
        """What stays."""
        return Unparked(self.entity.key, self.message, self.sent)
