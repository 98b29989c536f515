"""What an attempt is given, and what comes of it: the contract between strategies, drivers and the checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from exactlyonce.effects import Step
from exactlyonce.envelope import Envelope
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef, message_key
from exactlyonce.records import Output


@dataclass(frozen=True, slots=True)
class Handled:
    """What a handler made of one message.

    Attributes:
        body: the entity document without the library's property; only id and key if the entity was deleted.
        outputs: the messages to publish once it is committed.
        deleted: the document becomes a tombstone.
    """

    body: Json
    outputs: tuple[Output, ...] = ()
    deleted: bool = False


Handle = Callable[[Json | None, Envelope, datetime], Handled]
"""Body (None if absent), message and time of the attempt to result; raises `ExactlyOnceError`. Pure."""


@dataclass(frozen=True, slots=True)
class Work:
    """Messages for one entity, to be committed together; and how to handle one."""

    entity: EntityRef
    messages: tuple[Envelope, ...]
    handle: Handle


@dataclass(frozen=True, slots=True)
class Remembered:
    """The entity document as this process last saved it, so that marking needs no read."""

    document: Json
    etag: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process knows of an entity from its own attempts. Losing it costs requests, never the guarantee.

    Attributes:
        entity_token: session token for the entity document.
        library_token: session token for the entity's partition in the library container.
        published: transactions whose outputs this process published, though the document may not say so yet.
        saved: the document, while it says that some of `published` still owe.
    """

    entity_token: str | None = None
    library_token: str | None = None
    published: frozenset[str] = frozenset()
    saved: Remembered | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """Every message of the attempt may be acknowledged, but for those that failed.

    Attributes:
        memory: for the next attempt on this entity in this process.
        processed: keys of the messages committed now.
        failed: key and error of each message that cannot be committed; none of them changed anything.
    """

    memory: Memory
    processed: tuple[str, ...] = ()
    failed: tuple[tuple[str, ExactlyOnceError], ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt proved nothing about its messages. Start over from load, or give the deliveries back.

    Attributes:
        memory: for the next attempt; its tokens are those of the replies.
        reason: for logs, as the end of "trying again: …".
    """

    memory: Memory
    reason: str


class Strategy(Protocol):
    """A protocol that makes state changes and outputs happen exactly once."""

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        ...

    @property
    def retention(self) -> timedelta | None:
        """Age at which the strategy itself forgets messages; None for never."""
        ...

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process the messages of `work`. Bounded: it never loops over effects; trying again is the driver's."""
        ...

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Record that what this process published is published, where no commit has done so yet."""
        ...


def key_of(envelope: Envelope) -> str:
    """The key of a message, as records name it."""
    return message_key(envelope.source, envelope.id)
