"""The outbox protocol.

State and outputs are committed by one conditional save of the entity document. Outputs are published after the commit; messages
are acknowledged after publishing.

The ledger in the document knows the copies of messages. Of one with a number it keeps the number for ever, among those
received through the channel; its entry goes once its outputs are published. Of a call it keeps that its reply is awaited. Of a
foreign message it keeps the entry, for a window of transactions. What leaves the ledger is written in the library's partition,
after everything that it owes was published and before the commit that drops it: an entry becomes a processed record, a channel
a document. Outputs too large for the document are staged in that partition before the commit.

Nothing is ever undone. A conflict or an unknown outcome leads back to load, where the ledger shows which commit won; a write
that looks lost may still land, so clean-up deletes the staged outputs of lost attempts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from types import NoneType
from typing import Final, Literal

from exactlyonce.attempt import Again, Finished, Memory, Remembered, Settled, Unfinished, Work
from exactlyonce.effects.effect import Begin, NoAnswer, Step, Together
from exactlyonce.effects.entity import LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import DeleteProcessed, FindProcessed, Found, LoadProcessed
from exactlyonce.effects.requests import FoundRequests
from exactlyonce.errors import ConfigurationError
from exactlyonce.protocols.outbox.apart import delete_staged, delete_superseded, write_apart
from exactlyonce.protocols.outbox.draft import Draft, Limits, draft_commit, needs_more, next_ledger
from exactlyonce.protocols.outbox.due import release
from exactlyonce.protocols.outbox.forgotten import ended, of_forgotten_channels
from exactlyonce.protocols.outbox.judge import Arrived, Judged, arrived, judged, shows_nothing
from exactlyonce.protocols.outbox.look import look_apart, look_for_channels
from exactlyonce.protocols.outbox.opened import answers_kept, first_look, marked
from exactlyonce.protocols.outbox.owed import pay, publish_owed
from exactlyonce.protocols.steps.answers import answers_in, contents_in
from exactlyonce.protocols.steps.load import View, admitted, from_memory, load, remembering
from exactlyonce.protocols.steps.save import start_over, with_ledger
from exactlyonce.protocols.steps.settle import settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.calls import is_foreign
from exactlyonce.records.ledger import EntityView, Ledger, read_entity
from exactlyonce.values.declarations import require
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import AHEAD

GROUP_LIMIT: Final = 100
"""Most messages in one commit."""
TRUSTED: Final = 2
"""How often in a row the remembered document has to have been the newest before an attempt starts from it."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Settings of the outbox protocol. The presets may be exchanged freely on existing data.

    Attributes:
        window: how many transactions of foreign messages the entity document remembers before they leave for the library's
            partition; None for all, until they are older than the application's retention.
        inline_limit: how many bytes of one message's outputs may ride in the entity document; None for any number.
        channels: how many channels the entity document holds. Where one more begins, all that the commit does not touch leave
            together.
        foreign: "window" to take messages without a number, whose copies are known for the retention; "refuse" to refuse them.
        forget_after: age from which the clean-up job forgets channels, for entities with very many sources; None for never. A
            message that comes so late is parked, since it may be a copy.
    """

    window: int | None = 16
    inline_limit: int | None = 32 * 1024
    channels: int = 64
    foreign: Literal["window", "refuse"] = "window"
    forget_after: timedelta | None = None

    def __post_init__(self) -> None:
        for name in ("window", "inline_limit"):
            require(f"{name}= of an outbox", getattr(self, name), (int, NoneType), "a whole number, or None")
        require("channels= of an outbox", self.channels, int, "a whole number")
        require("forget_after= of an outbox", self.forget_after, (timedelta, NoneType), "a timedelta, or None")
        if self.window is not None and self.window < 1:
            raise ConfigurationError("The window of an outbox has to hold at least one transaction; None is for all.")
        if self.inline_limit is not None and self.inline_limit < 0:
            raise ConfigurationError("The inline_limit of an outbox cannot be negative; 0 stages all outputs.")
        if self.channels < 1:
            raise ConfigurationError("The document of an outbox has to hold at least one channel.")
        if self.foreign not in ("window", "refuse"):
            raise ConfigurationError(f'foreign of an outbox is "window" or "refuse", not {self.foreign!r}.')
        if self.forget_after is not None and self.forget_after < 2 * AHEAD:
            raise ConfigurationError(
                f"The forget_after of an outbox is at least {2 * AHEAD}: sources begin fresh channels at half that age, and "
                "their clocks may be wrong. None is for never."
            )

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
    def answers(self) -> bool:
        """Entries keep them. A request is a foreign message."""
        return self.foreign == "window"

    @property
    def unfinished(self) -> tuple[Unfinished, ...]:
        """Ledgers owe outputs."""
        return ("owing",)

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take. It commits at most as many foreign ones of them as the window holds."""
        return GROUP_LIMIT

    def forgets(self, envelope: Envelope) -> bool:
        """A foreign message is known by a record, which goes with age; a number, or the reply to a call, is known for ever."""
        return is_foreign(envelope)

    def _limits(self, work: Work) -> Limits:
        retention = work.retention if self.window is None else None
        return Limits(self.window, self.inline_limit, self.channels, retention, self.forget_after)

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 21 effects.

        Raises:
            StoredDataError: the document cannot be trusted.
            ConfigurationError: it belongs to another protocol.
        """
        messages = arrived(work.entity, work.messages, foreign=self.foreign == "window")
        if (saved := memory.saved) is not None and self._trusts(saved, messages):
            known = yield from look_for_channels(work.entity, messages, from_memory(work.entity, saved, memory))
            if not isinstance(known, Again):
                outcome = yield from self._process(work, messages, known)
                if outcome is not None:
                    return outcome
        view = yield from self._look(work.entity, messages, memory)
        if isinstance(view, Again):
            return view
        outcome = yield from self._process(work, messages, view)
        assert outcome is not None  # noqa: S101  # A loaded document always decides.
        return outcome

    def _trusts(self, saved: Remembered, messages: Arrived) -> bool:
        """Whether to start from the remembered document. Foreign messages and requests need a look; `embedded`, its time."""
        return saved.right >= TRUSTED and self._remembers and not (messages.foreign or messages.requests)

    @property
    def _remembers(self) -> bool:
        """Whether attempts may start from the remembered document at all, so that it is worth keeping."""
        return self.window is not None

    def _unmarked(self, view: View) -> Memory:
        """What to remember if nothing is committed. A document that was never processed has yet to be admitted."""
        return view.unmarked(always=self._remembers and view.ledger.version > 0)

    def _process(self, work: Work, messages: Arrived, view: View) -> Step[Finished | Again | None]:
        """Process messages as a view shows them; None where a remembered one does not decide. At most 15 effects.

        A remembered document may be hours old. So only positive facts are taken from it: what was received is received for
        ever, and what is owed was committed. A commit fails on its condition if the document has changed. Whatever else an
        attempt may end with, or has to write before its commit, is for a loaded document.
        """
        found = judged(messages, view)
        forgotten = of_forgotten_channels(found.fresh, view)
        if view.remembered and (found.failed or forgotten):
            return None
        # Finish duplicates. The attempt that committed them may have died before it published.
        remembered = yield from publish_owed(work.entity, found.copies, view)
        if isinstance(remembered, Again):
            return remembered
        view = view.knowing(remembered)
        known = (*answers_in((*found.copies, *view.records)), *answers_kept(messages, view))
        contents = contents_in(found.copies)
        found = found.without(forgotten)
        if not found.fresh:
            finished = Finished(self._unmarked(view), failed=found.failed, answers=known, contents=contents)
            outcome = yield from ended(work, view, finished, forgotten)
            return outcome
        # Begin, and handle the messages. Transaction ids are fresh in every attempt, so what a lost attempt wrote is never
        # taken for this one's. A message whose handler raises, or whose result does not fit, drops out alone.
        begun = yield from Begin(tuple(one.key for one in found.fresh))
        draft = draft_commit(self._limits(work), work, view, found.fresh, begun)
        if view.remembered and (
            draft.failed or draft.more or not draft.processed or needs_more(work.entity, view, draft)
        ):
            return None
        draft = draft._replace(failed=(*found.failed, *draft.failed), answers=known)
        if not draft.processed:
            finished = Finished(self._unmarked(view), failed=draft.failed, answers=known, contents=contents)
            outcome = yield from ended(work, view, finished, forgotten)
            return outcome
        outcome = yield from self._commit(work, view, draft)
        return replace(outcome, contents=contents) if isinstance(outcome, Finished) else outcome

    def _look(self, entity: EntityRef, messages: Arrived, memory: Memory) -> Step[View | Again]:
        """Load the entity, and find what the library's partition knows of the messages: again where the token demands it."""
        request = LoadEntity(entity, memory.entity_token)
        found: Found | NoAnswer = Found(frozenset(), None)
        opened: FoundRequests | NoAnswer | None = None
        if messages.requests and not messages.foreign:
            # Load the entity, and look for the documents of opened requests. The ledger's token shows if the view will do.
            loaded, opened = yield from Together(request, first_look(entity, messages, memory.library_token))
        elif self.window is None or not messages.foreign:
            # Load the entity. Its channels know every numbered message; and nothing leaves an unbounded window, so there is
            # hardly ever a record to look for.
            loaded = yield from request
        else:
            # Load the entity, and look for records of foreign messages. The ledger's session token shows whether this view of
            # the records was new enough.
            loaded, found = yield from Together(request, FindProcessed(entity, messages.foreign, memory.library_token))
        if isinstance(loaded, NoAnswer) or isinstance(found, NoAnswer) or isinstance(opened, NoAnswer):
            return Again(memory, "a read was not answered")
        seen = found.token or (opened and opened.token) or memory.library_token
        memory = replace(memory.compared(loaded.etag), library_token=seen)
        view = yield from admitted(entity, loaded, self, memory)
        if isinstance(view, Again):
            return view
        if shows_nothing(messages, view):
            return Again(view.memory, "the view is older than the call whose reply has come")
        view = yield from look_apart(entity, messages, view, found, opened)
        return view

    def _commit(self, work: Work, view: View, draft: Draft) -> Step[Finished | Again]:
        """Write what the commit relies on, commit, publish: in this order, and never back."""
        entity = work.entity
        # Finish what leaves. Records and documents of channels have no room for outputs: they mean that all was published.
        leaving = view.ledger.entries if draft.flush or draft.apart else ()
        remembered = yield from publish_owed(entity, leaving, view)
        if isinstance(remembered, Again):
            return remembered
        view = view.knowing(remembered)
        token = yield from write_apart(entity, view, draft)
        if isinstance(token, Again):
            return token
        ledger = next_ledger(self._limits(work), view, draft, token)
        document = draft.document(ledger)
        # Commit: save the entity if it is unchanged. The save also marks what this process published, and drops what leaves.
        # Nothing is undone if it fails: it may still land.
        saved = yield from SaveEntity(entity, document, view.etag)
        if not isinstance(saved, Saved):
            return start_over(view.memory, saved)
        committed = replace(view.memory, entity_token=saved.token, library_token=ledger.token, kept=None)
        paid = yield from pay(entity, draft, committed)
        if isinstance(paid, Again):
            return replace(paid, memory=replace(paid.memory, saved=None))
        yield from delete_superseded(entity, view, ledger)
        committed = replace(paid, published=paid.published | {entry.tx for entry in draft.entries})
        parts = EntityView(draft.body, ledger)
        memory = remembering(committed, parts, document, saved.etag, always=self._remembers)
        answers = (*draft.answers, *answers_in(draft.entries))
        if draft.more:
            reason = "there was no room for all messages in one commit"
            return Again(memory, reason, progressed=True, processed=draft.processed, answers=answers)
        return Finished(memory, draft.processed, draft.failed, answers=answers)

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Drop what this process published from what the entity owes, if no commit has done so yet. At most 3 effects."""
        saved = memory.saved
        if saved is None:
            # Load the entity. This process no longer has the document that it saved.
            loaded = yield from LoadEntity(entity, memory.entity_token)
            if isinstance(loaded, NoAnswer):
                return Again(memory, "the entity could not be read")
            if loaded.document is None or loaded.etag is None:
                return Finished(Memory())
            saved = Remembered(loaded.document, loaded.etag)
        parts = saved.parts or read_entity(entity, saved.document)
        ledger = parts.ledger
        if ledger is None or not memory.published & ledger.owing:
            return Finished(Memory())  # A later commit has marked it.
        after = marked(ledger, memory)
        # Mark: save the entity if it is unchanged. Neither the sweeper nor a duplicate has to publish the outputs again.
        reply = yield from SaveEntity(entity, with_ledger(saved.document, after), saved.etag)
        if not isinstance(reply, Saved):
            return start_over(memory, reply)
        yield from delete_staged(entity, ledger, after)
        document = with_ledger(saved.document, after)
        known = Remembered(document, reply.etag, saved.right, EntityView(parts.body, after))
        return Finished(Memory(reply.token, memory.library_token, saved=known))

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Release what is due; or else publish everything that the entity owes, then mark it. At most 16 effects.

        No fresh view is needed: what a stale one owes was committed, so publishing it again makes copies at most, and marking
        it fails on its condition. So does releasing what was released, or cancelled, since.

        Raises:
            StoredDataError: the document cannot be trusted.
        """
        entity = work.entity
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        failed = yield from release(self._limits(work), work, view, self._commit)
        if isinstance(failed, Again):
            return failed
        if view.document is None or not view.ledger.owing:
            return Finished(Memory(), stopped=failed)
        remembered = yield from publish_owed(entity, view.ledger.entries, view)
        if isinstance(remembered, Again):
            return remembered
        after = marked(view.ledger, remembered)
        # Mark: save the entity if it is unchanged. A commit in between has a newer ledger, which the next sweep reads.
        saved = yield from SaveEntity(entity, with_ledger(view.document, after), view.etag)
        if not isinstance(saved, Saved):
            return start_over(remembered, saved)
        yield from delete_staged(entity, view.ledger, after)
        return Finished(Memory(), stopped=failed)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message that the host gave up on: publish what it owes, or park it. At most 6 effects."""
        messages = arrived(work.entity, work.messages)
        settled = yield from settle(
            self, work, delivered, reason, memory, finish=lambda view: self._finished(work.entity, messages, view)
        )
        return settled

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether an entry or a record proves a message processed. At most 4 effects."""
        messages = arrived(entity, (envelope,))
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        found = yield from self._proof(entity, messages, view)
        return found if isinstance(found, Again) else found.done

    def _finished(self, entity: EntityRef, messages: Arrived, view: View) -> Step[Settled | Again | None]:
        """Finish a message that was processed; None if nothing proves that it was."""
        found = yield from self._proof(entity, messages, view)
        if isinstance(found, Again):
            return found
        if not found.done:
            return None
        # Finish a processed message. Only its outputs may be missing.
        remembered = yield from publish_owed(entity, found.copies, view)
        if isinstance(remembered, Again):
            return remembered
        return Settled("processed", replace(view, memory=remembered).unmarked())

    def _proof(self, entity: EntityRef, messages: Arrived, view: View) -> Step[Judged | Again]:
        """What entries, channels and records show of a message, in a view at the ledger's session token. At most one effect."""
        found = judged(messages, view)
        if not found.fresh:
            return found
        if messages.foreign:
            # Look for a record, at the ledger's session token. A view at that token has every record that the ledger relies on.
            records = yield from FindProcessed(entity, messages.foreign, view.ledger.token)
            if isinstance(records, NoAnswer):
                return Again(view.memory, "whether the message has a record could not be read")
            return judged(messages, replace(view, done=records.messages))
        looked = yield from look_apart(entity, messages, view, Found(frozenset(), None))
        return looked if isinstance(looked, Again) else judged(messages, looked)

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
