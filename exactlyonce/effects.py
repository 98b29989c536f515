"""Every request a strategy may make of the outside world, each with the reply it gets.

A strategy is a generator that yields effects and is sent replies: `reply = yield from SaveEntity(...)`. Drivers perform them;
the model checker answers them in every possible way. Effects and replies are frozen and hashable. Adapters never raise into
a strategy: an outcome that is not known is the reply `UNKNOWN`, and a type checker makes the strategy face it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar

from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef
from exactlyonce.records import Output, ParkedMessage, ProcessedRecord, StagedOutputs

Reply = TypeVar("Reply", covariant=True)
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Effect(Generic[Reply]):
    """One request; `yield from` it to get the reply."""

    def __iter__(self) -> Generator[Effect[Any], Any, Reply]:
        reply: Reply = yield self
        return reply


Step = Generator[Effect[Any], Any, Result]
"""What a strategy is: effects out, replies in, a result at the end."""


class NoAnswer(Enum):
    """Replies that prove nothing."""

    UNKNOWN = "unknown"
    """A write that may have been applied, may still be, or may never be; a read that failed."""

    BEHIND = "behind"
    """A read whose replica had not reached the session token (404/1002). Never "absent"."""


UNKNOWN: Final = NoAnswer.UNKNOWN
BEHIND: Final = NoAnswer.BEHIND


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
class Found:
    """Which of the messages asked for have a processed record, in a view that is at `token`."""

    messages: frozenset[str]
    token: str | None


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """The processed records that exist, in a view at or after the token asked with."""

    records: tuple[ProcessedRecord, ...]


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
class Saved:
    """The entity was saved and has this ETag now."""

    etag: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The condition did not hold (404, 409 or 412): somebody else's write came first, **or one's own, sent twice**."""

    token: str | None


class Published(Enum):
    """Every output was accepted by its transport."""

    PUBLISHED = "published"


PUBLISHED: Final = Published.PUBLISHED


@dataclass(frozen=True, slots=True)
class Begun:
    """The present, by the store's time, and transaction ids that were never given out before.

    Attributes:
        at: the present.
        transactions: one for each message, in their order, and then as many more as were asked for. None for a message whose
            delivery was given back meanwhile: it comes again, or was given up, and an attempt that worked for it could commit
            what somebody else has decided about.
    """

    at: datetime
    transactions: tuple[str | None, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The transaction ids that there are."""
        return tuple(tx for tx in self.transactions if tx is not None)


@dataclass(frozen=True, slots=True)
class Begin(Effect[Begun]):
    """Ask for the time and for fresh transaction ids: the only clock and the only chance a strategy has.

    It comes after everything that an attempt reads. A message whose delivery is held then was given up by nobody before the
    entity was loaded, so whoever gives it up later fences off the attempt's commit.

    Attributes:
        messages: keys of the messages that are about to be handled, as they were delivered.
        more: how many transaction ids are wanted besides: for messages that the store holds, which nobody can give back.
    """

    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many transaction ids are asked for."""
        return len(self.messages) + self.more


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


@dataclass(frozen=True, slots=True)
class FindProcessed(Effect[Found | NoAnswer]):
    """Look for the processed records of these messages, at or after `token`, if one is given. One request."""

    entity: EntityRef
    messages: tuple[str, ...]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class LoadProcessed(Effect[FoundRecords | NoAnswer]):
    """Read the processed records of these messages, at or after `token`, if one is given. Absent ones are left out."""

    entity: EntityRef
    messages: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class HasRecords(Effect[bool | NoAnswer]):
    """Whether the entity has any processed record, in whatever view answers. Best effort."""

    entity: EntityRef


@dataclass(frozen=True, slots=True)
class WriteProcessed(Effect[Written | Literal[NoAnswer.UNKNOWN]]):
    """Upsert processed records, in as many batches as their number and size need, all answered."""

    entity: EntityRef
    records: tuple[ProcessedRecord, ...]


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
class DeleteProcessed(Effect[None]):
    """Delete processed records that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose partition they lie in.
        records: key of the message and ETag of each.
    """

    entity: EntityRef
    records: tuple[tuple[str, str], ...]


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
class DeleteParked(Effect[None]):
    """Delete the parked document of a message if it still has this ETag, best effort."""

    entity: EntityRef
    message: str
    etag: str


@dataclass(frozen=True, slots=True)
class Owed:
    """Whose the outputs are that were committed before, and since when they may be owed.

    Attributes:
        entity: that committed them.
        since: time of the oldest of their commits.
    """

    entity: EntityRef
    since: datetime


@dataclass(frozen=True, slots=True)
class Publish(Effect[Published | Literal[NoAnswer.UNKNOWN]]):
    """Hand outputs to their transports. UNKNOWN if any of them may not have arrived.

    What was committed so long ago that its receivers could not judge it any more is parked instead, which pays what is owed.

    Attributes:
        outputs: to be published.
        owed: if they were committed before; None for those that have just been.
    """

    outputs: tuple[Output, ...]
    owed: Owed | None = None


@dataclass(frozen=True, slots=True)
class Together(Effect[tuple[First, Second]], Generic[First, Second]):
    """Two requests side by side; the replies come together."""

    first: Effect[First]
    second: Effect[Second]
