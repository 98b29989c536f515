"""The outbox protocol.

State and outputs are committed by one conditional save of the entity document, whose ledger remembers the latest
transactions. Outputs are published after the commit; messages are acknowledged after publishing. An entry that leaves the
ledger becomes a processed record in the library's partition, written after its outputs were published and before the commit
that drops the entry. Outputs too large for the document are staged in that partition before the commit.

Nothing is ever undone. A conflict or an unknown outcome leads back to load, where the ledger tells whose commit won; a write
that looks lost may still land, so what a lost attempt staged is left to clean-up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from exactlyonce.attempt import Again, Finished, Memory, Remembered, Work, key_of
from exactlyonce.effects.blobs import KEPT, WriteOnce
from exactlyonce.effects.companions import HasCompanions
from exactlyonce.effects.effect import Begin, NoAnswer, Step, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FindProcessed,
    Found,
    HasRecords,
    LoadStaged,
    Stage,
    WriteProcessed,
)
from exactlyonce.effects.publish import PUBLISHED, Owed, Publish
from exactlyonce.errors import ConfigurationError, LedgerRemoved
from exactlyonce.protocols.outbox.draft import Draft, Limits, View, draft_commit, next_ledger, remembering
from exactlyonce.protocols.steps.ownership import require_own
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import LEDGER, Entry, Ledger, Protocol, entity_document, read_entity
from exactlyonce.records.library import processed_record
from exactlyonce.records.outputs import Output
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after

GROUP_LIMIT: Final = 100
"""Most messages in one commit where the window sets no lower limit."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Settings of the outbox protocol. The presets may be exchanged freely on existing data.

    Attributes:
        window: how many transactions the entity document remembers before they leave for the library's partition; None
            for all, until they are older than the application's retention.
        inline_limit: how many bytes of one message's outputs may ride in the entity document; None for any number.
    """

    window: int | None = 16
    inline_limit: int | None = 32 * 1024

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise ConfigurationError("The window of an outbox has to hold at least one transaction; None is for all.")
        if self.inline_limit is not None and self.inline_limit < 0:
            raise ConfigurationError("The inline_limit of an outbox cannot be negative; 0 stages all outputs.")

    @classmethod
    def transaction_id(cls) -> Outbox:
        """Outputs staged apart; the entity carries only the mark of its last transaction."""
        return cls(window=1, inline_limit=0)

    @classmethod
    def embedded(cls) -> Outbox:
        """Everything in the document, for the application's retention."""
        return cls(window=None, inline_limit=None)

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        return GROUP_LIMIT if self.window is None else self.window

    @property
    def forgets(self) -> bool:
        """Records go with age, and so do entries of a ledger that keeps all of them."""
        return True

    def _limits(self, work: Work) -> Limits:
        return Limits(self.window, self.inline_limit, work.retention if self.window is None else None)

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 14 effects.

        Raises:
            StoredDataError: the document cannot be trusted.
            ConfigurationError: it belongs to another protocol.
        """
        messages = {key_of(envelope): envelope for envelope in work.messages}
        view = yield from self._look(work.entity, tuple(messages), memory)
        if isinstance(view, Again):
            return view
        hits = tuple(entry for entry in view.ledger.entries if entry.message in messages)
        # Finish duplicates. The attempt that committed them may have died before it published.
        remembered = yield from publish_owed(work.entity, hits, view)
        if isinstance(remembered, Again):
            return remembered
        view = replace(view, memory=remembered)
        known = view.done | {entry.message for entry in hits}
        fresh = {key: envelope for key, envelope in messages.items() if key not in known}
        if not fresh:
            return Finished(view.unmarked())
        # Begin, and handle the messages. Transaction ids are fresh in every attempt, so what a lost attempt wrote is never
        # taken for this one's. A message whose handler raises, or whose result does not fit, drops out alone.
        begun = yield from Begin(tuple(fresh))
        draft = draft_commit(self._limits(work), work, view, fresh, begun)
        if not draft.entries:
            return Finished(view.unmarked(), failed=draft.failed)
        outcome = yield from self._commit(work, view, draft)
        return outcome

    def _look(self, entity: EntityRef, keys: tuple[str, ...], memory: Memory) -> Step[View | Again]:
        """Load the entity and find which messages have records: side by side, and again where the token demands it."""
        load = LoadEntity(entity, memory.entity_token)
        found: Found | NoAnswer
        if self.window is None:
            # Load the entity. Nothing leaves an unbounded ledger, so there is hardly ever a record to look for.
            loaded = yield from load
            found = Found(frozenset(), None)
        else:
            # Load the entity, and look for records. The ledger's session token shows whether this view of the records was
            # new enough.
            loaded, found = yield from Together(load, FindProcessed(entity, keys, memory.library_token))
        if isinstance(loaded, NoAnswer) or isinstance(found, NoAnswer):
            return Again(memory, "a read was not answered")
        memory = replace(memory, entity_token=loaded.token, library_token=found.token or memory.library_token)
        stored = read_entity(entity, loaded.document)
        require_own(entity, stored.ledger, "outbox")
        if stored.ledger is None:
            adoptable = yield from never_had_a_ledger(entity, loaded, "outbox")
            if not adoptable:
                return Again(memory, "whether the entity ever had a ledger is not certain")
        ledger = replace(stored.ledger or Ledger(), type=entity.type)
        known = {entry.message for entry in ledger.entries}
        unseen = tuple(key for key in keys if key not in known)
        if unseen and ledger.entries_left and not at_or_after(found.token, ledger.token):
            # Look for records again, at the ledger's session token. Records are written before the commit that drops their
            # entries, so a view at that token has all of them.
            found = yield from FindProcessed(entity, unseen, ledger.token)
            if isinstance(found, NoAnswer):
                return Again(
                    memory,
                    "no replica of the library's container is at the session token of the ledger (if this stays: was that "
                    "container, or the account, exchanged or restored?)",
                )
        # A record means done: it was written after publishing, so its message needs nothing more.
        return View(loaded.document, loaded.etag, loaded.timestamp, stored.body, ledger, found.messages, memory)

    def _commit(self, work: Work, view: View, draft: Draft) -> Step[Finished | Again]:
        """Write what the commit relies on, commit, publish: in this order, and never back."""
        entity = work.entity
        leaving = view.ledger.entries if draft.flush else ()
        # Finish leaving entries. Their records have no room for outputs, so nobody could publish them later.
        remembered = yield from publish_owed(entity, leaving, view)
        if isinstance(remembered, Again):
            return remembered
        view = replace(view, memory=remembered)
        token = yield from _write_apart(entity, leaving, view, draft)
        if isinstance(token, Again):
            return token
        ledger = next_ledger(self._limits(work), view, draft, token)
        document = draft.document(ledger)
        # Commit: save the entity if it is unchanged. The save also marks what this process published, and drops the leaving
        # entries. Nothing is undone if it fails: it may still land.
        saved = yield from SaveEntity(entity, document, view.etag)
        if not isinstance(saved, Saved):
            return start_over(view.memory, saved)
        memory = replace(view.memory, entity_token=saved.token, library_token=token)
        if draft.outputs:
            # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are
            # acknowledged, so that none is lost.
            published = yield from Publish(draft.outputs)
            if published is not PUBLISHED:
                return Again(memory, "the outputs could not be published")
        memory = replace(memory, published=memory.published | {entry.tx for entry in draft.entries})
        if garbage := tuple(entry.tx for entry in leaving if entry.staged):
            # Delete what leaving entries staged. It was published, and no entry names it any more.
            yield from DeleteStaged(entity, garbage)
        processed = tuple(entry.message for entry in draft.entries)
        return Finished(remembering(memory, ledger, document, saved.etag), processed, draft.failed)

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Drop what this process published from what the entity owes, if no commit has done so yet. At most 2 effects."""
        saved = memory.saved
        if saved is None:
            # Load the entity. This process no longer has the document that it saved.
            loaded = yield from LoadEntity(entity, memory.entity_token)
            if isinstance(loaded, NoAnswer):
                return Again(memory, "the entity could not be read")
            if loaded.document is None or loaded.etag is None:
                return Finished(Memory())
            saved = Remembered(loaded.document, loaded.etag)
        ledger = read_entity(entity, saved.document).ledger
        if ledger is None or not memory.published & ledger.owing:
            return Finished(Memory())  # A later commit has marked it.
        marked = with_ledger(saved.document, ledger.with_published(memory.published))
        # Mark: save the entity if it is unchanged. Neither the sweeper nor a duplicate has to publish the outputs again.
        reply = yield from SaveEntity(entity, marked, saved.etag)
        return Finished(Memory()) if isinstance(reply, Saved) else start_over(memory, reply)


def publish_owed(entity: EntityRef, entries: tuple[Entry, ...], view: View) -> Step[Memory | Again]:
    """Publish what these entries owe and this process does not know to be published."""
    owing = tuple(entry for entry in entries if entry.owed is not None and entry.tx not in view.memory.published)
    outputs: tuple[Output, ...] = tuple(
        output for entry in owing if isinstance(entry.owed, tuple) for output in entry.owed
    )
    if staged := tuple(entry.tx for entry in owing if entry.owed == "staged"):
        # Read the staged outputs. Missing ones were published: they are deleted only after the commit that dropped their
        # entry, or behind a fence, so only a stale load leads here.
        found = yield from LoadStaged(entity, staged, view.ledger.token)
        if isinstance(found, NoAnswer):
            return Again(view.memory, "staged outputs could not be read")
        outputs += tuple(output for document in found.documents for output in document.outputs)
    if outputs:
        # Publish what entries owe. Copies do no harm: their ids are the same.
        published = yield from Publish(outputs, Owed(entity, min(entry.at for entry in owing)))
        if published is not PUBLISHED:
            return Again(view.memory, "owed outputs could not be published")
    return replace(view.memory, published=view.memory.published | {entry.tx for entry in owing})


def _write_apart(entity: EntityRef, leaving: tuple[Entry, ...], view: View, draft: Draft) -> Step[str | Again | None]:
    """Write what lies elsewhere before the commit that relies on it; return the token of the library's partition for it."""
    token = view.ledger.token
    if leaving:
        # Write the records of leaving entries. Before the commit that drops them, so that an entry or a record always knows
        # the message.
        recorded = yield from WriteProcessed(entity, tuple(processed_record(entity, entry) for entry in leaving))
        if isinstance(recorded, NoAnswer):
            return Again(view.memory, "whether the processed records were written is not known")
        token = recorded.token
    if draft.staged:
        # Stage large outputs. Before the commit, so that a committed entry can always be published. A conflict is this
        # attempt's own earlier send, since transaction ids are fresh; its token counts like any other.
        staged = yield from Stage(entity, draft.staged)
        if isinstance(staged, NoAnswer) or staged.token is None:
            return Again(view.memory, "whether the outputs were staged is not known")
        token = staged.token
    kept = yield from write_blobs(draft.blobs, view.memory)
    return kept or token


def write_blobs(blobs: tuple[Blob, ...], memory: Memory) -> Step[Again | None]:
    """Write blobs before the commit that relies on them; None if they are there. At most one effect."""
    if blobs:
        # Write blobs. Before the commit, so that every committed address has its blob. Names are fresh: one that exists was
        # written by an earlier send of this request.
        kept = yield from WriteOnce(blobs)
        if kept is not KEPT:
            return Again(memory, "whether the blobs were written is not known")
    return None


def never_had_a_ledger(entity: EntityRef, loaded: Loaded, protocol: Protocol) -> Step[bool]:
    """Whether a document without a ledger may be adopted. If records exist, somebody removed it, or this view is stale."""
    recorded: bool | NoAnswer
    if protocol == "outbox":
        # Ask whether the entity has records. If it has, its ledger was removed, or the view is older than the ledger.
        recorded = yield from HasRecords(entity)
    else:
        # Ask whether the entity has companions. If it has, its ledger was removed, or the view is older than the ledger.
        recorded = yield from HasCompanions(entity)
    if recorded is True and loaded.document is not None:
        # Fence: save the document as it was loaded. If it is saved, the view was current, and the ledger was removed. If
        # not, the view proves nothing.
        fence = yield from SaveEntity(entity, loaded.document, loaded.etag)
        if isinstance(fence, Saved):
            raise LedgerRemoved(
                f"Entity {entity} was processed before, but its property {LEDGER!r} is gone. Late duplicates would be applied "
                "again, so nothing was changed. Restore the property from a backup; or, if no copy of an old message can "
                "still arrive, delete the library's documents of this entity."
            )
    return recorded is False


def start_over(memory: Memory, reply: Conflict | NoAnswer) -> Again:
    """What a save that was not acknowledged leads to: load again. The conflict's token shows what won, oneself included."""
    if isinstance(reply, NoAnswer):
        return Again(replace(memory, saved=None), "whether the entity was saved is not known")
    token = reply.token or memory.entity_token
    return Again(replace(memory, saved=None, entity_token=token), "the entity was changed meanwhile, or saved twice")


def with_ledger(document: Json, ledger: Ledger) -> Json:
    """The document with this ledger in place of its own."""
    properties = document.value
    del properties[LEDGER]
    return entity_document(Json.of(properties), ledger)
