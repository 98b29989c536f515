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
    """An entity document as one replica has it; newer versions may exist.

    Attributes:
        document: without the store's own properties; None if absent on this replica.
        etag: condition of a save; None if absent.
        timestamp: `_ts`, seconds by the server's clock; 0 if absent.
        token: session token of the reply.
    """

    document: Json | None
    etag: str | None
    timestamp: int
    token: str | None


@dataclass(frozen=True, slots=True)
class Saved:
    """The entity was saved, and now has this ETag."""

    etag: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The condition did not hold (404, 409 or 412): another write came first, **or an earlier send of the same write**."""

    token: str | None


@dataclass(frozen=True, slots=True)
class LoadEntity(Effect[Loaded | NoAnswer]):
    """Read the entity document, at or after `token` if given."""

    entity: EntityRef
    token: str | None = None


@dataclass(frozen=True, slots=True)
class SaveEntity(Effect[Saved | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Replace the entity document if the ETag is still `etag`; with None, create the document if absent."""

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
    """Hand outputs to their transports. UNKNOWN if any output may not have arrived.

    An output older than the send limit is parked, not sent. Parking counts as publishing.

    Attributes:
        owed: the entity whose earlier commit owes the outputs; None for outputs just committed.
    """

    outputs: tuple[Output, ...]
    owed: EntityRef | None = None
