"""The outbox protocol: one conditional save of the entity document commits state, marks and outputs.

Outputs are published after the commit; messages are acknowledged after publishing.

The ledger in the document remembers each message by a mark. The oldest marks leave together, in a page of the library's
partition, written before the commit that drops them. A timed message younger than all marks that left is looked for in the
ledger alone. A message older than the retention is refused, so marks and pages go with age.

Owed outputs stand in the ledger's outbox. No save marks them as sent: the book of the process is the proof, and the next
commit drops paid entries.

Nothing is ever undone. A conflict or an unknown outcome leads back to load, where the ledger shows which commit won.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final

from exactlyonce.effects.attempt import Again, Finished, Memory, Settled, Unfinished, Work
from exactlyonce.effects.effect import NoAnswer, Opened, Step, Together
from exactlyonce.effects.entity import PUBLISHED, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    CloseNumbers,
    DeletePages,
    FindBlobs,
    FindPaid,
    FoundRequests,
    HasPages,
    KeepAnswers,
    OpenNumbers,
    Stage,
    WritePage,
)
from exactlyonce.errors import LedgerRemoved
from exactlyonce.protocols.outbox.draft import Draft, draft_commit, leaving, next_ledger
from exactlyonce.protocols.outbox.due import release
from exactlyonce.protocols.outbox.judge import (
    BEHIND_LEDGER,
    Arrived,
    Failed,
    Judged,
    Proof,
    answers_of,
    arrived,
    contents_of,
    first_look,
    is_behind,
    is_read_too_early,
    judged,
    look_apart,
    lost_pages,
    proof_of,
    take_back,
    unanswered,
)
from exactlyonce.protocols.steps.load import (
    View,
    admitted,
    fence,
    from_memory,
    load,
    remembering,
    start_over,
    with_ledger,
    write_blobs,
)
from exactlyonce.protocols.steps.park import settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.ledger import OUTBOX, EntityView, Ledger, Page, is_reply
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import OutboxEntry, Output
from exactlyonce.values.envelope import EntityRef, Envelope, milliseconds
from exactlyonce.values.session_tokens import is_before

# Paying entries: outputs are published, answers are kept.


def paid_of(entity: EntityRef, ledger: Ledger, needed: tuple[OutboxEntry, ...]) -> FindPaid:
    """The request for the paid entries of a ledger; the reply has to be certain about `needed`."""
    owing = ledger.outbox
    attempts = tuple(entry.at for entry in owing)
    return FindPaid(
        entity, ledger.version, tuple(entry.tx for entry in owing), attempts, tuple(entry.tx for entry in needed)
    )


def pay(
    entity: EntityRef,
    outputs: tuple[Output, ...],
    entries: tuple[OutboxEntry, ...],
    numbers: tuple[str, ...],
    memory: Memory,
) -> Step[Memory | Again]:
    """Publish the outputs of a commit, keep the answers, close the numbers. At most 3 effects.

    Args:
        entity, outputs, entries: of the commit.
        numbers: all transactions opened by the attempt.
    """
    if outputs:
        # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are acknowledged,
        # so that none is lost.
        published = yield from Publish(outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
    kept = yield from _keep_answers(entity, entries, memory)
    if isinstance(kept, Again):
        return kept
    # Close the numbers. From now on the book proves them paid, and the next commit drops their entries.
    yield from CloseNumbers(numbers)
    return kept


def publish_owed(entity: EntityRef, entries: tuple[OutboxEntry, ...], view: View) -> Step[Memory | Again]:
    """Publish the outputs of entries, keep the answers, and note the payment. At most 3 effects."""
    if not entries:
        return view.memory
    outputs = tuple(
        output for entry in entries for output in entry.owed_outputs(entity, view.ledger.to, view.ledger.sequences)
    )
    if outputs:
        # Publish what entries owe. Copies do no harm: ids and times are the same.
        published = yield from Publish(outputs, entity)
        if published is not PUBLISHED:
            return Again(view.memory, "owed outputs could not be published")
    kept = yield from _keep_answers(entity, entries, view.memory)
    if isinstance(kept, Again):
        return kept
    # Note that the entries are paid, also those of other processes.
    yield from CloseNumbers(tuple(entry.tx for entry in entries))
    return kept


def _keep_answers(entity: EntityRef, entries: tuple[OutboxEntry, ...], memory: Memory) -> Step[Memory | Again]:
    """Keep the answers of entries in the documents of their requests. At most one effect."""
    documents = tuple(
        RequestDocument(entity.key, entry.request, entry.at, None, entry.answer)
        for entry in entries
        if entry.request is not None
    )
    if not documents:
        return memory
    # Keep the answers, each in the document of its request, if present. A document that is gone was closed by its caller:
    # written again, it would stay for ever.
    kept = yield from KeepAnswers(entity, documents)
    if isinstance(kept, NoAnswer):
        return Again(memory, "whether the answers were kept is not known")
    return replace(memory, library_token=kept.token)


GROUP_LIMIT: Final = 100
"""Most messages in one commit."""
TRUSTED: Final = 2
"""Count in a row of loads that confirmed the remembered document, before an attempt starts from it."""
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox protocol. It has no settings."""

    name: ClassVar[str] = OUTBOX
    companions: ClassVar[bool] = False
    """Pages lie in the library's container."""
    answers: ClassVar[bool] = True
    """Ledgers and pages hold the answers."""
    unfinished: ClassVar[tuple[Unfinished, ...]] = ("outbox",)
    """Outboxes owe outputs not paid by a book, and ledgers keep messages until due."""
    group_limit: ClassVar[int] = GROUP_LIMIT

    def forgets(self, envelope: Envelope) -> bool:
        """Whether marks and pages are the proof, since both go with age. A reply is known by its call, an opened request by its
        document.
        """
        return envelope.opened is None and not is_reply(envelope)

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 16 effects.

        Of a remembered document that does not decide, 6 more come first.
        """
        messages = arrived(work.entity, work.messages, work.senders)
        saved = memory.saved
        if saved is not None and saved.right >= TRUSTED and not messages.requests:
            outcome = yield from self._process(work, messages, from_memory(work.entity, saved, memory))
            if outcome is not None:
                return outcome
        view = yield from self._loaded(work, messages, memory)
        if isinstance(view, Again):
            return view
        outcome = yield from self._process(work, messages, view)
        assert outcome is not None  # noqa: S101  # A loaded document always decides.
        return outcome

    def _loaded(self, work: Work, messages: Arrived, memory: Memory) -> Step[View | Again]:
        """Load the entity, with the documents of opened requests; then look outside the ledger for messages without a mark."""
        entity = work.entity
        request = LoadEntity(entity, memory.entity_token)
        opened: FoundRequests | NoAnswer | None = None
        if messages.requests:
            # Load the entity, and look for the documents of opened requests. The ledger's token shows whether the view is new
            # enough.
            loaded, opened = yield from Together(request, first_look(entity, messages, memory.library_token))
        else:
            # Load the entity. The view may be old: then a commit fails, but everything shown was committed all the same.
            loaded = yield from request
        if isinstance(loaded, NoAnswer) or isinstance(opened, NoAnswer):
            return Again(memory, "a read was not answered")
        view = yield from admitted(entity, loaded, self, memory.compared(loaded.etag))
        if isinstance(view, Again):
            return view
        if view.ledger.version == 0 and not view.adopted:
            again = yield from _require_no_pages(work, view)
            if again is not None:
                return again
        if not messages.failed and messages.messages and all(is_behind(message, view) for message in messages.messages):
            return Again(view.memory, "the view is older than the call whose reply has come")
        view = yield from look_apart(entity, messages, view, opened)
        return view

    def _process(self, work: Work, messages: Arrived, view: View) -> Step[Finished | Again | None]:
        """Process messages as shown by a view; None where a remembered view does not decide.

        A remembered document may be hours old, so only positive facts count: a marked message was processed, and an owed
        output was committed. If the document has changed, a commit fails on its condition.
        """
        if view.remembered:
            looked = yield from look_apart(work.entity, messages, view)
            if isinstance(looked, Again):
                return None  # Its token may be one that no replica will ever reach, and that was exchanged since.
            view = looked
        verdict = judged(messages, view)
        if unknown := unanswered(verdict, view):
            verdict = replace(verdict, failed=(*verdict.failed, *unknown))
        if view.remembered and verdict.failed:
            return None
        if any(is_read_too_early(copy_, view) for copy_ in verdict.copies):
            return Again(view.memory, "the document of a request was read in a view older than its answer")
        paying = yield from _copies_paid(work.entity, verdict, view)
        if isinstance(paying, Again):
            return paying
        memory, paid = paying
        view = view.knowing(memory)
        if not verdict.fresh:
            return _known(verdict, view)
        outcome = yield from self._handle(work, verdict, view, paid)
        return outcome

    def _handle(self, work: Work, verdict: Judged, view: View, paid: frozenset[str]) -> Step[Finished | Again | None]:
        """Handle unprocessed messages, and commit; None where a remembered view does not decide."""
        messages = verdict.fresh
        # Open numbers, and handle the messages. Numbers are fresh in every attempt, so writes of a lost attempt are never
        # taken for this one's. A message whose handler raises, or whose result does not fit, drops out alone.
        opened = yield from OpenNumbers(work.entity, view.ledger.version, tuple(message.key for message in messages))
        if isinstance(opened, NoAnswer):
            return Again(view.memory, "whether the store has the book of this process is not known")
        draft = draft_commit(work, view, messages, opened, lost_pages(work, messages, view, opened.at), paid=paid)
        undecided = view.remembered and (draft.failed or draft.more or draft.crowded)
        if undecided or not draft.processed:
            # Close the numbers. No commit has them.
            yield from CloseNumbers(opened.given)
            if draft.crowded and not undecided:
                again = yield from _make_room(work.entity, view, paid)
                return again
            return None if undecided else _known(verdict, view, failed=draft.failed)
        outcome = yield from self._commit(work, view, draft, opened, paid)
        answers = (*answers_of(verdict.copies, view), *draft.replies(messages))
        if isinstance(outcome, Again):
            return replace(outcome, answers=answers) if outcome.progressed else outcome
        failed, contents = (*verdict.failed, *draft.failed), contents_of(verdict)
        return Finished(outcome.memory, outcome.processed, failed, answers=answers, contents=contents)

    def _commit(
        self, work: Work, view: View, draft: Draft, opened: Opened, paid: frozenset[str]
    ) -> Step[Finished | Again]:
        """Write the commit's prerequisites, commit, publish: in this order, and never back."""
        entity, page = work.entity, leaving(work.entity, view.ledger)
        token = yield from _written_before(work, view, draft, page)
        if isinstance(token, Again):
            return token
        ledger = next_ledger(work, view, draft, page, paid, token=token)
        document = draft.document(ledger)
        # Commit: save the entity if it is unchanged. The save also drops leaving marks and paid entries. A failed save is not
        # undone: it may still land.
        saved = yield from SaveEntity(entity, document, view.etag)
        if not isinstance(saved, Saved):
            return start_over(view.memory, saved)
        committed = replace(view.memory, entity_token=saved.token, library_token=ledger.token)
        memory = yield from pay(entity, draft.outputs, draft.outbox, opened.given, committed)
        if isinstance(memory, Again):
            return replace(memory, memory=replace(memory.memory, saved=None))
        memory = remembering(memory, EntityView(draft.body, ledger), document, saved.etag)
        if draft.more:
            reason = "there was no room for all messages in one commit"
            return Again(memory, reason, progressed=True, processed=draft.processed)
        return Finished(memory, draft.processed)

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Release due messages; if there are none, publish everything owed by the entity, and drop the paid entries.

        No fresh view is needed. Outputs shown by a stale view were committed, so publishing again makes copies at most, and
        the save fails on its condition. The same condition protects against releasing a message released or cancelled since.
        """
        entity = work.entity
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        owing = view.ledger.outbox
        # Learn what is paid. Books of others are read, since their processes may still be at work.
        paid = yield from paid_of(entity, view.ledger, owing)
        failed = yield from release(
            work, view, lambda work, view, draft, opened: self._commit(work, view, draft, opened, paid)
        )
        if isinstance(failed, Again):
            return failed
        if view.document is None or not owing:
            return Finished(Memory(), stopped=failed)
        paying = yield from publish_owed(entity, tuple(entry for entry in owing if entry.tx not in paid), view)
        if isinstance(paying, Again):
            return paying
        after = _swept(view.ledger, owing)
        # Drop what is paid: save the entity if it is unchanged. A commit in between has a newer ledger, for the next sweep to
        # read.
        saved = yield from SaveEntity(entity, with_ledger(view.document, after), view.etag)
        if not isinstance(saved, Saved):
            return start_over(paying, saved)
        return Finished(Memory(), stopped=failed)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message given up by the host: publish its outputs, or park the message."""
        messages = arrived(work.entity, work.messages, work.senders)
        return settle(
            self, work, delivered, reason, memory, finish=lambda view: self._finished(work.entity, messages, view)
        )

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether a mark proves a message processed. At most 3 effects."""
        proof = yield from self.proof(entity, envelope, memory)
        return proof if isinstance(proof, Again) else proof is not None

    def proof(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[Proof | Again | None]:
        """The proof that a message was processed, in the view that answers; None without proof. At most 3 effects."""
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        messages = arrived(entity, (envelope,), ())
        view = yield from look_apart(entity, messages, view)
        if isinstance(view, Again):
            return view
        return next((proof for message in messages.messages if (proof := proof_of(message, view))), None)

    def _finished(self, entity: EntityRef, messages: Arrived, view: View) -> Step[Settled | Again | None]:
        """Finish a processed message; None without proof of processing."""
        looked = yield from look_apart(entity, messages, view)
        if isinstance(looked, Again):
            return looked
        verdict = judged(messages, looked)
        if not verdict.copies:
            return None
        hashes = {copy_.hash for copy_ in verdict.copies}
        owing = tuple(entry for entry in looked.ledger.outbox if entry.cause in hashes)
        # Learn what is paid of the message. The delivery ends here, so it must be certain.
        paid = yield from paid_of(entity, looked.ledger, owing)
        # Finish a processed message. Only its outputs may be missing.
        memory = yield from publish_owed(entity, tuple(entry for entry in owing if entry.tx not in paid), looked)
        if isinstance(memory, Again):
            return memory
        return Settled("processed", memory)

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """The attempts whose transaction is named by a page; the caller knows the ledger's own. At most one effect."""
        if not authors:
            return frozenset()
        # Look for the transactions in pages. A page names the transactions of committed blobs, and was written before their
        # marks left.
        named = yield from FindBlobs(entity, tuple(author.tx for author in authors), ledger.token)
        if isinstance(named, NoAnswer):
            return Again(memory, "the pages of the entity could not be read")
        return frozenset(author for author in authors if author.tx in named)

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete pages older than the retention, as read. One effect, without reply.

        A message whose mark is in such a page is refused for its age. So it needs no look at the ledger and no fence.

        Args:
            candidates: number and ETag of each page.
        """
        if candidates:
            # Delete the pages, as they were read. No copy of their messages is judged any more.
            yield from DeletePages(entity, tuple((int(number), etag) for number, etag in candidates))
        return Finished(memory)


def _require_no_pages(work: Work, view: View) -> Step[Again | None]:
    """Check that an entity never processed in this view has no pages; None if so. At most 2 effects.

    A process without a commit on the entity has no session token, and a fresh one would cost each new entity a write. Without
    a token, a replica hides the pages only while lagging behind the oldest page. A tombstone keeps the last token.
    """
    token = view.ledger.token or view.memory.library_token
    # Ask whether the entity has pages. If so, its document was deleted, or this view is older than the document.
    has_pages = yield from HasPages(work.entity, token)
    if isinstance(has_pages, NoAnswer):
        return Again(view.memory, "whether the entity has pages could not be read")
    if not has_pages:
        return None
    view = replace(view, ledger=replace(view.ledger, token=token))
    fenced = yield from fence(work.entity, view, work.absent)
    if isinstance(fenced, Again):
        return fenced
    raise LedgerRemoved(
        f"Entity {work.entity} was processed before, but its document, or the ledger in it, is gone. Duplicates would be "
        "applied again, so no message is. Restore the document from a backup; or, if no copy of an old message can still "
        "arrive, delete the library's documents of this entity."
    )


def _written_before(work: Work, view: View, draft: Draft, page: Page | None) -> Step[str | Again | None]:
    """Write a commit's prerequisites; return the ledger's session token, which covers them. At most 7 effects."""
    token = view.ledger.token
    if page is not None:
        # Write the page of the marks that leave. Before the commit that drops them, so that the ledger or a page always knows
        # the message.
        written = yield from WritePage(work.entity, page, _seconds(work, page, draft.at))
        if written is OTHER:
            again = yield from take_back(work, view, page)
            return again
        if isinstance(written, NoAnswer):
            return Again(view.memory, "whether the page was written is not known")
        token = written.token
    if draft.staged:
        # Stage the messages to keep. Before the commit, so that a committed message can always be released. A conflict is
        # this attempt's own earlier send, since transaction ids are fresh; its token counts like any other.
        staged = yield from Stage(work.entity, draft.staged)
        if isinstance(staged, NoAnswer) or staged.token is None:
            return Again(view.memory, "whether the messages to keep were staged is not known")
        token = staged.token
    if token != view.ledger.token and is_before(token, view.ledger.token):
        return Again(view.memory, BEHIND_LEDGER)
    kept = yield from write_blobs(draft.blobs, view.memory)
    return token if kept is None else kept


def _known(verdict: Judged, view: View, *, failed: Failed = ()) -> Finished:
    """The end of an attempt without a commit. `failed`: fresh messages that cannot be committed."""
    return Finished(
        view.remembering() if view.ledger.version > 0 else view.memory,
        failed=(*verdict.failed, *failed),
        answers=answers_of(verdict.copies, view),
        contents=contents_of(verdict),
    )


def _copies_paid(entity: EntityRef, verdict: Judged, view: View) -> Step[tuple[Memory, frozenset[str]] | Again]:
    """Finish duplicates by publishing their outputs; return memory and paid transactions. At most 4 effects."""
    hashes = {copy_.hash for copy_ in verdict.copies}
    owing = tuple(entry for entry in view.ledger.outbox if entry.cause in hashes)
    # Learn what is paid. The book of this process proves its own transactions, other books theirs.
    paid = yield from paid_of(entity, view.ledger, owing)
    # Finish duplicates. The attempt that committed them may have died before publishing.
    copies = tuple(entry for entry in owing if entry.tx not in paid)
    memory = yield from publish_owed(entity, copies, view)
    return memory if isinstance(memory, Again) else (memory, paid | {entry.tx for entry in copies})


def _make_room(entity: EntityRef, view: View, paid: frozenset[str]) -> Step[Again]:
    """Publish everything owed by an outbox, so that the entries leave with the next commit. At most 3 effects."""
    owing = tuple(entry for entry in view.ledger.outbox if entry.tx not in paid)
    memory = yield from publish_owed(entity, owing, view)
    if isinstance(memory, Again):
        return memory
    return Again(memory, "owed outputs took the room, and were sent", progressed=True)


def _seconds(work: Work, page: Page, at: datetime) -> int:
    """Time for which the store keeps a page. Answers and blobs need proof for the retention after the cut."""
    newest = max(page.until, milliseconds(at)) if page.answers or page.blobs else page.until
    left = (newest - milliseconds(at)) // 1000 + int(work.page_lifetime.total_seconds())
    return max(left, _DAY)


def _swept(ledger: Ledger, paid: tuple[OutboxEntry, ...]) -> Ledger:
    """The ledger once entries are paid."""
    transactions = frozenset(entry.tx for entry in paid)
    return replace(ledger, outbox=tuple(entry for entry in ledger.outbox if entry.tx not in transactions))
