"""The outbox protocol.

State and outputs are committed by one conditional save of the entity document, whose ledger remembers the latest
transactions. Outputs are published after the commit; messages are acknowledged after publishing. An entry that leaves the
ledger becomes a processed record in the library's partition, written after its outputs were published and before the commit
that drops the entry. Outputs too large for the document are staged in that partition before the commit.

Nothing is ever undone. A conflict or an unknown outcome leads back to load, where the ledger shows which commit won; a write
that looks lost may still land, so clean-up deletes the staged outputs of lost attempts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from exactlyonce.attempt import Again, Finished, Memory, Remembered, Settled, Unfinished, Work, key_of
from exactlyonce.effects.effect import Begin, NoAnswer, Step, Together
from exactlyonce.effects.entity import LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    LoadProcessed,
    LoadStaged,
    Stage,
    WriteProcessed,
)
from exactlyonce.effects.publish import PUBLISHED, Owed, Publish
from exactlyonce.errors import ConfigurationError
from exactlyonce.protocols.outbox.draft import Draft, Limits, draft_commit, next_ledger
from exactlyonce.protocols.steps.load import View, admitted, load, remembering
from exactlyonce.protocols.steps.save import start_over, with_ledger, write_blobs
from exactlyonce.protocols.steps.settle import settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.ledger import Entry, Ledger, read_entity
from exactlyonce.records.library import processed_record
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
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
    def name(self) -> str:
        """As ledgers name it. The presets share it."""
        return "outbox"

    @property
    def companions(self) -> bool:
        """Records lie in the library's container."""
        return False

    @property
    def unfinished(self) -> tuple[Unfinished, ...]:
        """Ledgers owe outputs."""
        return ("owing",)

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
        request = LoadEntity(entity, memory.entity_token)
        found: Found | NoAnswer
        if self.window is None:
            # Load the entity. Nothing leaves an unbounded ledger, so there is hardly ever a record to look for.
            loaded = yield from request
            found = Found(frozenset(), None)
        else:
            # Load the entity, and look for records. The ledger's session token shows whether this view of the records was
            # new enough.
            loaded, found = yield from Together(request, FindProcessed(entity, keys, memory.library_token))
        if isinstance(loaded, NoAnswer) or isinstance(found, NoAnswer):
            return Again(memory, "a read was not answered")
        memory = replace(memory, library_token=found.token or memory.library_token)
        view = yield from admitted(entity, loaded, self, memory)
        if isinstance(view, Again):
            return view
        ledger = view.ledger
        known = {entry.message for entry in ledger.entries}
        unseen = tuple(key for key in keys if key not in known)
        if unseen and ledger.entries_left and not at_or_after(found.token, ledger.token):
            # Look for records again, at the ledger's session token. Records are written before the commit that drops their
            # entries, so a view at that token has all of them.
            found = yield from FindProcessed(entity, unseen, ledger.token)
            if isinstance(found, NoAnswer):
                return Again(
                    view.memory,
                    "no replica of the library's container is at the session token of the ledger (if this stays: was that "
                    "container, or the account, exchanged or restored?)",
                )
        # A record means done: it was written after publishing, so its message needs nothing more.
        return replace(view, done=found.messages)

    def _commit(self, work: Work, view: View, draft: Draft) -> Step[Finished | Again]:
        """Write what the commit relies on, commit, publish: in this order, and never back."""
        entity = work.entity
        leaving = view.ledger.entries if draft.flush else ()
        # Finish leaving entries. Their records have no room for outputs, so they could not be published later.
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

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Publish everything that the entity owes, then mark it. At most 4 effects where there is a ledger.

        No fresh view is needed: what a stale one owes was committed, so publishing it again makes copies at most, and marking
        it fails on its condition.

        Raises:
            StoredDataError: the document cannot be trusted.
        """
        entity = work.entity
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        if view.document is None or not view.ledger.owing:
            return Finished(Memory())
        remembered = yield from publish_owed(entity, view.ledger.entries, view)
        if isinstance(remembered, Again):
            return remembered
        marked = with_ledger(view.document, view.ledger.with_published(remembered.published))
        # Mark: save the entity if it is unchanged. A commit in between has a newer ledger, which the next sweep reads.
        saved = yield from SaveEntity(entity, marked, view.etag)
        return Finished(Memory()) if isinstance(saved, Saved) else start_over(remembered, saved)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message that the host gave up on: publish what it owes, or park it. At most 6 effects."""
        (envelope,) = work.messages
        message = key_of(envelope)
        settled = yield from settle(
            self, work, delivered, reason, memory, finish=lambda view: _known(work.entity, message, view)
        )
        return settled

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether an entry or a record proves a message processed. At most 4 effects."""
        message = key_of(envelope)
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        if any(entry.message == message for entry in view.ledger.entries):
            return True
        # Look for a record, at the ledger's session token.
        found = yield from FindProcessed(entity, (message,), view.ledger.token)
        if isinstance(found, NoAnswer):
            return Again(view.memory, "whether the message has a record could not be read")
        return message in found.messages

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """Those of the attempts whose transaction a record names. At most one effect."""
        if not authors:
            return frozenset()
        messages = tuple(dict.fromkeys(author.message for author in authors))
        # Read the records of the blobs' messages. A record with an attempt's transaction id proves its commit, and was
        # written before the entry left.
        found = yield from LoadProcessed(entity, messages, ledger.token)
        if isinstance(found, NoAnswer):
            return Again(memory, "the records of the messages could not be read")
        recorded = {record.tx for record in found.records}
        return frozenset(author for author in authors if author.tx in recorded)

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete processed records older than the retention, as they were read. One effect, which is not answered.

        A record whose message may no longer arrive has nothing left to prevent. It needs no look at the ledger and no fence:

        - A record owes nothing, since it is written after publishing.
        - An attempt that wrote records may have crashed before the commit that drops their entries, so a record may
          exist together with its entry. The attempt that drops the entry later writes the record anew, before that commit; so
          an entry never leaves without one.
        - If it is being written anew just now, its ETag has changed and it stays; if it is deleted first, writing creates it.

        Args:
            entity: whose records they are.
            candidates: key of the message and ETag of each, as they were read when their age was judged by the server's time of
                writing. That is never before the message's commit, so nothing looks older than it is.
        """
        if candidates:
            # Delete the records, as they were read. No copy of their messages can still arrive. A record that is being written
            # anew has another ETag, and stays.
            yield from DeleteProcessed(entity, candidates)
        return Finished(memory)


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


def _known(entity: EntityRef, message: str, view: View) -> Step[Settled | Again | None]:
    """Finish a message that was processed; None if neither an entry nor a record says so."""
    hits = tuple(entry for entry in view.ledger.entries if entry.message == message)
    if hits:
        # Finish a processed message. Only its outputs may be missing.
        remembered = yield from publish_owed(entity, hits, view)
        if isinstance(remembered, Again):
            return remembered
        return Settled("processed", replace(view, memory=remembered).unmarked())
    # Look for a record, at the ledger's session token. A view at that token has every record that the ledger relies on.
    found = yield from FindProcessed(entity, (message,), view.ledger.token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "whether the message has a record could not be read")
    # A record means done: it was written after publishing.
    return Settled("processed", view.memory) if message in found.messages else None
