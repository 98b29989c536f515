"""Reading and saving the entity document."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class Loaded:
    """An entity document as one replica has it; it may be older than the newest version.

    Attributes:
        document: without the store's own properties; None if this replica has no such document.
        etag: what a save is conditional on; None if absent.
        timestamp: `_ts`, seconds by the server's clock; 0 if absent.
        token: session token of the reply.
    """

    document: Json | None
    etag: str | None
    timestamp: int
    token: str | None


@dataclass(frozen=True, slots=True)
class Saved:
    """The entity was saved and has this ETag now."""

    etag: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The condition did not hold (404, 409 or 412): somebody else's write came first, **or one's own, sent twice**."""

    token: str | None


@dataclass(frozen=True, slots=True)
class LoadEntity(Effect[Loaded | NoAnswer]):
    """Read the entity document; at or after `token`, if one is given."""

    entity: EntityRef
    token: str | None = None


@dataclass(frozen=True, slots=True)
class SaveEntity(Effect[Saved | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Replace the entity document if its ETag is still `etag`; create it if `etag` is None and it is absent."""

    entity: EntityRef
    document: Json
    etag: str | None


# Publishing outputs.


class Published(Enum):
    """Every output was accepted by its transport."""

    PUBLISHED = "published"


PUBLISHED: Final = Published.PUBLISHED


@dataclass(frozen=True, slots=True)
class Publish(Effect[Published | Literal[NoAnswer.UNKNOWN]]):
    """Hand outputs to their transports. UNKNOWN if any of them may not have arrived.

    What was committed so long ago that its receivers could not judge it any more is parked instead, which pays what is owed.

    Attributes:
        outputs: to be published.
        owed: the entity that committed them before; None for those that have just been committed.
    """

    outputs: tuple[Output, ...]
    owed: EntityRef | None = None
