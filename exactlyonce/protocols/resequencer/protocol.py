"""The resequencer: a read model that handles the messages of each source in the order of sending.

Every ordered output has a number per source, destination and read model. A message out of order is held in the read model's
partition. Every arrival releases the messages that follow without a gap; a copy is dropped. The read model's ledger holds its
position in each sequence, so one condition guards everything: state, numbers and held messages change in one batch ("CQRS:
Out of Sequence Messages and Read Models", Oliver).

A message is acknowledged once nothing more can be released. If it were acknowledged after a part, a crash would leave the
rest held for ever. A handler that raises stops its sequence: the message is held, the messages before are committed, and
every later arrival tries again. Outputs of handlers are owed until published, as in the outbox.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Literal

from exactlyonce.effects.attempt import Again, Finished, Memory, Settled, Unfinished, Work
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved, SaveEntity
from exactlyonce.effects.library import CloseNumbers, OpenNumbers
from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.protocols.outbox.protocol import paid_of, publish_owed
from exactlyonce.protocols.resequencer.gaps import Rebuild, ask_again, is_overdue, skip
from exactlyonce.protocols.resequencer.release import Documents, Release, held_and_gone
from exactlyonce.protocols.steps.clean import clean_by_ledger, committed_by_companions
from exactlyonce.protocols.steps.load import View, fence, load, start_over, with_ledger, write_blobs
from exactlyonce.protocols.steps.park import companions_know, settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.companions import NumberedMessage, numbered_id
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import place_of
from exactlyonce.values.declarations import require
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class Resequencer:
    """Settings of the resequencer.

    Attributes:
        gap_timeout: age of a gap above which `on_gap` applies.
        on_gap: "wait"; "skip", recorded in the document of the number; or `Rebuild`. `once.tend` and the sweeper look for
            gaps.
        order: "source" handles the messages of each source in its order. "time" also merges all sources into one order, by
            time and source: a message waits until every source of the read model has sent a later message. A message that
            still comes too late is handled, and its document says so.
        max_wait: longest wait for silent sources.

    Raises:
        ConfigurationError: a setting has another value, or a time is negative.
    """

    gap_timeout: timedelta = timedelta(minutes=10)
    on_gap: Literal["wait", "skip"] | Rebuild = "wait"
    order: Literal["source", "time"] = "source"
    max_wait: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        if self.on_gap not in ("wait", "skip") and not isinstance(self.on_gap, Rebuild):
            raise ConfigurationError(
                f'on_gap of a resequencer is "wait", "skip" or a Rebuild(...), not {self.on_gap!r}.'
            )
        if self.order not in ("source", "time"):
            raise ConfigurationError(f'order of a resequencer is "source" or "time", not {self.order!r}.')
        for name in ("gap_timeout", "max_wait"):
            require(f"{name}= of a resequencer", getattr(self, name), timedelta, "a timedelta")
        if min(self.gap_timeout, self.max_wait) < timedelta(0):
            raise ConfigurationError("gap_timeout and max_wait of a resequencer cannot be negative.")

    name: ClassVar[str] = "resequencer"
    companions: ClassVar[bool] = True
    """Documents of numbers lie in the entity's partition."""
    answers: ClassVar[bool] = False
    """A read model takes numbered messages only."""
    unfinished: ClassVar[tuple[Unfinished, ...]] = ("outbox", "holding")
    """Ledgers owe outputs, and hold messages."""
    group_limit: ClassVar[int] = 49
    """Most messages of one attempt: half of a batch, so that as many held messages can be released."""

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """False: the position in each channel stays for ever, so lower numbers are recognized, however late."""
        return False

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Take messages for one read model, and release in order; without messages, only release. At most 10 effects."""
        entity = work.entity
        view = yield from load(entity, self, memory)
        if isinstance(view, Again):
            return view
        paid = yield from _pay(entity, view)
        if isinstance(paid, Again):
            return paid
        outcome = yield from _received(work, paid, self.max_wait if self.order == "time" else None)
        return outcome

    def tend(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Treat overdue gaps as configured, then release in order: for a timer, or an operator. At most 14 effects.

        Args:
            work: the read model and its handler, without messages.

        Raises:
            StoredDataError: a document cannot be trusted.
            ConfigurationError: the entity is no resequenced read model.
        """
        view = yield from load(work.entity, self, memory)
        if isinstance(view, Again):
            return view
        # Ask for the time. A gap is overdue once it is older than `gap_timeout`; a wrong clock skips too early, but releases
        # nothing out of order.
        begun = yield from Begin()
        overdue = tuple(
            reception for reception in view.ledger.receptions if is_overdue(reception, begun.at, self.gap_timeout)
        )
        outcome: Again | None = None
        if overdue and self.on_gap == "skip":
            outcome = yield from skip(work, view, overdue, begun.at)
        elif overdue and isinstance(self.on_gap, Rebuild):
            outcome = yield from ask_again(work.entity, self.on_gap, view, overdue)
        if outcome is not None:
            return outcome
        released = yield from self.attempt(replace(work, messages=()), view.memory)
        return released

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Tend the read model, then drop paid entries from its outbox. At most 20 effects."""
        tended = yield from self.tend(work, memory)
        if isinstance(tended, Again):
            return tended
        view = yield from load(work.entity, self, tended.memory)
        if isinstance(view, Again):
            return view
        if view.document is None or not view.ledger.outbox:
            return replace(tended, memory=Memory())
        paid = yield from _pay(work.entity, view)
        if isinstance(paid, Again):
            return paid
        ledger = replace(view.ledger, outbox=())
        # Drop what is paid: save the read model if it is unchanged. A commit in between has a newer ledger, for the next
        # sweep to read.
        saved = yield from SaveEntity(work.entity, with_ledger(view.document, ledger), view.etag)
        return replace(tended, memory=Memory()) if isinstance(saved, Saved) else start_over(paid.memory, saved)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message given up by the host: finish a message taken by the read model, or park the message. At most 8
        effects.
        """
        (envelope,) = work.messages
        ids = _ids(work.entity, envelope)
        return settle(
            self, work, delivered, reason, memory, finish=lambda view: _finished(work.entity, envelope, view), ids=ids
        )

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether an entry or the document of its number proves a message processed. At most 4 effects."""
        return companions_know(self, entity, envelope, _ids(entity, envelope), memory)

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """The attempts that the document of their message's number proves committed, or may prove. At most one effect."""
        del ledger
        return committed_by_companions(entity, {author: author.told for author in authors}, memory)

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete old documents of numbers that the ledger no longer needs. At most 5 effects."""
        return clean_by_ledger(self, entity, candidates, memory)


def _received(work: Work, view: View, max_wait: timedelta | None) -> Step[Finished | Again]:
    """Take the messages, and release in order."""
    release = Release(work, view, max_wait)
    documents = yield from _known(work.entity, release, view, work.absent)
    if isinstance(documents, Again):
        return documents
    # Open numbers, and release, hold or drop the messages. The next number is handled, and every held number that follows
    # without a gap; a later one is held, an earlier one dropped. A handler that raises stops its sequence.
    opened = yield from OpenNumbers(work.entity, view.ledger.version, release.keys, more=len(documents))
    if isinstance(opened, NoAnswer):
        return Again(view.memory, "whether the store has the book of this process is not known")
    release.release(documents, opened)
    memory = view.memory
    if release.changes:
        committed = yield from _commit(work.entity, release, view)
        if isinstance(committed, Again):
            return committed
        memory = committed
    # Close the numbers. Their outputs were sent, or the numbers were not used.
    yield from CloseNumbers(opened.given)
    if release.more:
        return Again(memory, "more can be released", progressed=release.changes)
    return Finished(memory, tuple(release.processed), tuple(release.failed.items()), tuple(release.stopped.items()))


def _known(entity: EntityRef, release: Release, view: View, absent: Json) -> Step[Documents | Again]:
    """Read the documents of relevant numbers, in a view at least as new as the read model. At most 2 effects; the second only
    where a held message seems to be gone.

    Raises:
        DamagedDocument: a held message is gone, and a fence holds: all messages behind would wait for ever.
    """
    ids = {numbered_id(entity, *position): position for position in release.wanted}
    if not ids:
        return {}
    # Read the documents of numbers that may be copies, or can be released. A view at the read model's session token shows
    # every message held by the ledger.
    loaded = yield from LoadCompanions(entity, tuple(ids), view.memory.entity_token)
    if not isinstance(loaded, FoundCompanions):
        return Again(view.memory, "held messages could not be read")
    documents = {
        (item.channel, item.number): (item, etag)
        for item, etag in loaded.companions
        if isinstance(item, NumberedMessage)
    }
    if release.is_behind(documents):
        return Again(view.memory, "the read model was seen in an older view than its held messages")
    missing = release.missing(ids.values(), documents)
    if missing is None:
        return documents
    # Prove that a held message is gone. In an old view, a message may only seem gone: released since, and its document
    # cleaned up.
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    raise held_and_gone(entity, missing)


def _commit(entity: EntityRef, release: Release, view: View) -> Step[Memory | Again]:
    """Commit, then publish. At most 3 effects."""
    kept = yield from write_blobs(tuple(release.blobs), view.memory)
    if kept is not None:
        return kept
    document = release.document
    # Commit: save the read model and write the documents of numbers, in one batch. Without the condition, a message could be
    # held just after its predecessor was handled, and would not be released.
    saved = yield from SaveBatch(entity, document, view.etag, tuple(release.create), tuple(release.replace))
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    memory = replace(view.memory, entity_token=saved.token)
    if release.outputs:
        # Publish the outputs. After the commit, so that only committed outputs are sent. The ledger owes them until the next
        # commit, unless a book proves them sent.
        published = yield from Publish(tuple(release.outputs))
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
    return memory


def _ids(entity: EntityRef, envelope: Envelope) -> tuple[str, ...]:
    """Id of the document of a message's number. A message without a number was never taken."""
    try:
        place = place_of(envelope, entity, "")
    except InvalidMessage:
        return ()
    return (numbered_id(entity, place.channel, place.number),)


def _finished(entity: EntityRef, envelope: Envelope, view: View) -> Step[Settled | Again | None]:
    """Publish the read model's owed outputs, if the message was taken; None without proof."""
    numbered = (item for item, _ in view.companions if isinstance(item, NumberedMessage))
    mine = tuple(item for item in numbered if item.message == key_of(envelope))
    if not mine:
        return None
    if any(_released_since(view, item) for item in mine):
        return Again(view.memory, "the read model was seen in an older view than its released message")
    # Finish what the read model released. A held message is safe without its delivery.
    paid = yield from _pay(entity, view)
    return paid if isinstance(paid, Again) else Settled("processed", paid.memory)


def _pay(entity: EntityRef, view: View) -> Step[View | Again]:
    """Publish outputs owed by the read model and not paid by a book. At most 3 effects."""
    owing = view.ledger.outbox
    # Learn what is paid. The next commit drops all entries, so it must be certain.
    paid = yield from paid_of(entity, view.ledger, owing)
    # Finish what was released before. The attempt that released may have died before publishing.
    memory = yield from publish_owed(entity, tuple(entry for entry in owing if entry.tx not in paid), view)
    return memory if isinstance(memory, Again) else view.knowing(memory)


def _released_since(view: View, document: NumberedMessage) -> bool:
    """Whether a message was released after this view of the read model, so that the view does not show its outputs."""
    reception = next((item for item in view.ledger.receptions if item.channel == document.channel), None)
    return document.held is None and (reception is None or reception.next <= document.number)
