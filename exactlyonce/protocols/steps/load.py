"""Loading and saving an entity: the steps of every protocol around its commit.

A view may be stale. Absence in a view proves nothing without a fence, or a commit on the condition of the same view.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from exactlyonce.effects.attempt import Again, Memory, Remembered, Strategy
from exactlyonce.effects.companions import FoundCompanions, HasCompanions, LoadCompanions
from exactlyonce.effects.effect import Begin, NoAnswer, Step, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import KEPT, DeleteStaged, HasPages, Stage, WriteOnce
from exactlyonce.errors import ConfigurationError, LedgerRemoved
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import ColocatedRecord, Companion, StreamEntry
from exactlyonce.records.ledger import LEDGER, EntityView, Ledger, Page, entity_document, read_entity
from exactlyonce.records.library import RequestDocument, StagedOutputs
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import MILLISECOND, EntityRef, milliseconds
from exactlyonce.values.frozen_json import Json

# Answers and contents in committed documents.


Contents = tuple[tuple[str, str], ...]
"""Key and `Envelope.content` of each message."""
Answers = tuple[tuple[str, Answer], ...]
"""Key and committed answer of each request."""


def contents_in(committed: Iterable[ColocatedRecord]) -> Contents:
    """The contents of messages, from records."""
    return tuple((item.message, item.content) for item in committed if item.content is not None)


def answers_beside(companions: Iterable[Companion]) -> Answers:
    """The answers in companions."""
    records = (companion for companion in companions if isinstance(companion, ColocatedRecord | StreamEntry))
    return tuple((record.message, record.answer) for record in records if record.answer is not None)


# The stable time of outputs.


def since_of_outputs(since: int | None, at: datetime, send_limit: timedelta) -> int | None:
    """The stable time of a message's outputs, in milliseconds since 1970: the message's own; None for untimed outputs.

    A message may be handled again, as after a restore. Its outputs then have the same identities, so they need the same time.
    The outputs of an untimed message, or of one too old to send under its time, are untimed: receivers look for them by hash.

    Args:
        since: stable time of the message; None if untimed.
        send_limit: age above which nothing is sent under the message's time.
    """
    too_old = since is not None and milliseconds(at) - since > send_limit // MILLISECOND
    return None if too_old else since


# A session token of the present.


def fresh_token(entity: EntityRef, purpose: str) -> Step[str | None]:
    """The session token of a write made now in the library's partition of an entity; None if not known.

    At most 3 effects.

    Args:
        purpose: key in the written document, of no message.
    """
    # Begin. The next document needs an id.
    begun = yield from Begin(more=1)
    (tx,) = begun.given
    # Write a document for its session token. A view at the token shows everything written before.
    staged = yield from Stage(entity, (StagedOutputs(entity.key, purpose, tx, begun.at, ()),))
    if isinstance(staged, NoAnswer) or staged.token is None:
        return None
    # Delete the document. Only the token was wanted; if this fails, clean-up takes the document.
    yield from DeleteStaged(entity, (tx,))
    return staged.token


@dataclass(frozen=True, slots=True)
class View:
    """An entity as loaded.

    Attributes:
        document, etag, timestamp: as loaded; None, None and 0 if absent.
        body: the user's properties; None if absent or deleted.
        ledger: the ledger; empty if absent or adopted.
        memory: this process's memory, including the tokens of the reads.
        requests: documents of opened requests among the messages, in a view at or after the ledger's token.
        remembered: whether the view comes from this process's memory, without a load.
        adopted: whether the document never had a ledger.
        companions: requested companions with their ETags, where present. Their view may be of another age.
        pages: pages looked for, in a view at or after the ledger's token; None before any look.
    """

    document: Json | None
    etag: str | None
    timestamp: int
    body: Json | None
    ledger: Ledger
    memory: Memory
    requests: tuple[RequestDocument, ...] = ()
    remembered: bool = False
    adopted: bool = False
    companions: tuple[tuple[Companion, str], ...] = ()
    pages: tuple[Page, ...] | None = None

    def remembering(self) -> Memory:
        """The memory if nothing is committed."""
        return remembering(self.memory, EntityView(self.body, self.ledger), self.document, self.etag)

    def knowing(self, memory: Memory) -> View:
        """The view with a newer memory."""
        return self if memory is self.memory else replace(self, memory=memory)


def load(entity: EntityRef, strategy: Strategy, memory: Memory) -> Step[View | Again]:
    """Load an entity. At most 3 effects; the third only where a ledger seems to have been removed.

    Raises:
        StoredDataError: the document cannot be trusted.
        ConfigurationError: the entity belongs to another protocol.
    """
    # Load the entity. The view may be old: then a save fails, and an absence proves nothing without a fence.
    loaded = yield from LoadEntity(entity, memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(memory, "the entity could not be read")
    view = yield from admitted(entity, loaded, strategy, memory)
    return view


def load_with_companions(
    entity: EntityRef, ids: tuple[str, ...], strategy: Strategy, memory: Memory
) -> Step[View | Again]:
    """Load an entity and companions, side by side. At most 4 effects.

    The views may differ in age, and either may be stale. So the attempt has to commit by a batch that creates a companion for
    each message and saves the entity as loaded: the batch fails if either view missed the message.

    Raises:
        StoredDataError: a document cannot be trusted.
        ConfigurationError: the entity belongs to another protocol.
    """
    # Load the entity, and look for the messages' companions. Either view may be old: the batch collides with everything
    # missed.
    loaded, beside = yield from Together(
        LoadEntity(entity, memory.entity_token), LoadCompanions(entity, ids, memory.entity_token)
    )
    if isinstance(loaded, NoAnswer) or not isinstance(beside, FoundCompanions):
        return Again(memory, "a read was not answered")
    view = yield from admitted(entity, loaded, strategy, memory)
    return view if isinstance(view, Again) else replace(view, companions=beside.companions)


def admitted(entity: EntityRef, loaded: Loaded, strategy: Strategy, memory: Memory) -> Step[View | Again]:
    """The view of a loaded entity that belongs to this protocol, or to none yet. At most 2 effects.

    Raises:
        StoredDataError: the document cannot be trusted.
        ConfigurationError: the entity belongs to another protocol.
    """
    memory = replace(memory, entity_token=loaded.token)
    stored = read_entity(entity, loaded.document)
    require_own(entity, stored.ledger, strategy.name)
    if stored.ledger is None:
        adoptable = yield from _never_had_a_ledger(entity, loaded, strategy, memory)
        if not adoptable:
            return Again(memory, "whether the entity ever had a ledger is not certain")
    ledger = replace(stored.ledger or Ledger(), type=entity.type, entity=entity.key, protocol=strategy.name)
    adopted = stored.ledger is None
    return View(loaded.document, loaded.etag, loaded.timestamp, stored.body, ledger, memory, adopted=adopted)


def from_memory(entity: EntityRef, saved: Remembered, memory: Memory) -> View:
    """The view of an entity in this process's memory, admitted when loaded or saved."""
    stored = saved.parts or read_entity(entity, saved.document)
    return View(saved.document, saved.etag, 0, stored.body, stored.ledger or Ledger(), memory, remembered=True)


def require_own(entity: EntityRef, ledger: Ledger | None, protocol: str) -> None:
    """Refuse an entity of another protocol.

    Args:
        ledger: ledger of the document. None and an empty ledger, as of an absent entity, belong to no protocol.
        protocol: protocol configured for the entity type.

    Raises:
        ConfigurationError: the entity belongs to another protocol; nothing was changed.
    """
    if ledger is not None and ledger.protocol != protocol and ledger != Ledger():
        raise ConfigurationError(
            f"Entity {entity} was processed by the protocol {ledger.protocol!r}; its type is configured for {protocol!r}, "
            "which would not recognize duplicates. Nothing was changed. Go back to the former strategy; or give the new "
            "strategy a container of its own, and let messages carry the state over."
        )


def remembering(memory: Memory, parts: EntityView, document: Json | None, etag: str | None) -> Memory:
    """Memory for the next attempt, which may start from this document.

    Args:
        parts, document, etag: of the entity as loaded or saved.
    """
    if document is None or etag is None:
        return replace(memory, saved=None)
    right = 0 if memory.saved is None else memory.saved.right
    return replace(memory, saved=Remembered(document, etag, right, parts))


def _never_had_a_ledger(entity: EntityRef, loaded: Loaded, strategy: Strategy, memory: Memory) -> Step[bool]:
    """Whether a document without a ledger may be adopted. If records exist, the ledger was removed by hand, or this view is
    stale.
    """
    recorded: bool | NoAnswer
    if not strategy.companions:
        # Ask whether the entity has pages. If so, its ledger was removed, or the view is older than the ledger.
        recorded = yield from HasPages(entity, memory.library_token)
    else:
        # Ask whether the entity has companions. If so, its ledger was removed, or the view is older than the ledger.
        recorded = yield from HasCompanions(entity)
    if recorded is True and loaded.document is not None:
        # Fence: save the document as it was loaded. If the save succeeds, the view was current, and the ledger was removed.
        # If not, the view proves nothing.
        fence = yield from SaveEntity(entity, loaded.document, loaded.etag)
        if isinstance(fence, Saved):
            raise LedgerRemoved(
                f"Entity {entity} was processed before, but its property {LEDGER!r} is gone. Late duplicates would be applied "
                "again, so nothing was changed. Restore the property from a backup; or, if no copy of an old message can "
                "still arrive, delete the library's documents of this entity."
            )
    return recorded is False


# Saving an entity. A successful fence, the save of an unchanged document, proves two things at once: the view was current,
# and every commit under way will fail, since its condition is an older version.


def fence(entity: EntityRef, view: View, absent: Json) -> Step[Memory | Again]:
    """Save the entity unchanged, on the condition of the view; return the new memory. One effect.

    A document without a ledger stays without: the new ETag is enough for a fence, and the first processed message decides
    about adoption. An absent entity becomes a tombstone, since without a document a create under way would have no condition
    to fail on.

    Args:
        absent: id and partition key properties, saved if there is no document.
    """
    document = view.document
    if document is None:
        document = entity_document(absent, replace(view.ledger, deleted=True))
    # Fence: save the entity unchanged, or a tombstone if it is absent. If the save succeeds, the view was current, and every
    # commit still under way will fail.
    saved = yield from SaveEntity(entity, document, view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    return replace(view.memory, entity_token=saved.token, saved=None)


def start_over(memory: Memory, reply: Conflict | NoAnswer) -> Again:
    """The end of an attempt whose save was not acknowledged: load again. The conflict's token covers the winning write, even an
    earlier send of this one.
    """
    if isinstance(reply, NoAnswer):
        return Again(replace(memory, saved=None), "whether the entity was saved is not known")
    token = reply.token or memory.entity_token
    return Again(replace(memory, saved=None, entity_token=token), "the entity was changed meanwhile, or saved twice")


def with_ledger(document: Json, ledger: Ledger) -> Json:
    """The document with another ledger."""
    properties = document.value
    del properties[LEDGER]
    return entity_document(Json.of(properties), ledger)


def write_blobs(blobs: tuple[Blob, ...], memory: Memory) -> Step[Again | None]:
    """Write blobs before the commit that relies on them; None once written. At most one effect."""
    if blobs:
        # Write blobs. Before the commit, so that every committed address has its blob. Names are fresh: an existing blob was
        # written by an earlier send of this request.
        kept = yield from WriteOnce(blobs)
        if kept is not KEPT:
            return Again(memory, "whether the blobs were written is not known")
    return None
