"""What a crash leaves behind, found by looking at what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import OUTBOX, Ledger, Mark, Page, split
from exactlyonce.records.library import ParkedMessage, RequestDocument, StagedOutputs
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.records.sequences import holds
from exactlyonce.values.envelope import message_hash
from verification.specification.playing import Occasion
from verification.specification.settings import IN_TIME
from verification.specification.stored import ENTITY, Stored


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """One thing that should not stay.

    Attributes:
        kind: a key of `vocabulary.LEFTOVERS`.
        tx: transaction it belongs to, or what else names it.
        message: key of the message that it is about; its hash where a mark or an entry of an outbox says it.
        outputs: ids of the outputs that it owes.
    """

    kind: str
    tx: str
    message: str
    outputs: tuple[str, ...] = ()


def leftovers(stored: Stored) -> frozenset[Leftover]:
    """Everything half done."""
    return frozenset(_leftovers(stored))


def _leftovers(stored: Stored) -> Iterator[Leftover]:
    ledger = stored.ledger
    if ledger is None:
        return  # All that is left waits until an operator restores the document.
    yield from _of_entries(ledger, stored)
    yield from _of_marks(ledger, stored)
    yield from _of_companions(ledger, stored)
    yield from _of_parked(stored)
    for blob in stored.blobs:
        if blob.author is not None and not (stored.entity and blob.name in stored.entity[-1].text):
            yield Leftover("blob, without a commit", blob.author.tx, blob.author.message)
    if ledger.deleted and not ledger.version and not ledger.receptions:
        yield Leftover("tombstone of nothing", "", "")


def _of_entries(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    """What the ledger's outbox owes, and messages that are staged and not kept."""
    for entry in ledger.outbox:
        if kind := _owing(entry, ledger, stored):
            outputs = _outputs(entry, ledger) if kind == "committed, not published" else ()
            yield Leftover(kind, entry.tx, entry.cause, outputs)
    for staged in stored.library_documents(StagedOutputs):
        if staged.tx not in ledger.transactions:
            yield Leftover("staged, not kept", staged.tx, staged.message)


def _owing(entry: OutboxEntry, ledger: Ledger, stored: Stored) -> str | None:
    """What is half done of an entry of the outbox; None if a book pays it."""
    if not stored.published.issuperset(_outputs(entry, ledger)) or _is_unanswered(entry, stored):
        return "committed, not published"
    return None if entry.tx in stored.paid else "published, not proved"


def _outputs(entry: OutboxEntry, ledger: Ledger) -> tuple[str, ...]:
    return tuple(output.id for output in entry.owed_outputs(ENTITY, ledger.to, ledger.sequences))


def _told(ledger: Ledger, stored: Stored) -> set[str]:
    """Hashes of messages that will not be delivered again, or of which an entry says what is half done."""
    owing = {entry.cause for entry in ledger.outbox if _owing(entry, ledger, stored)}
    return {message_hash(key) for key in stored.acknowledged} | owing


def _is_unanswered(entry: OutboxEntry, stored: Stored) -> bool:
    """Whether an entry owes an answer to a request that its caller has not closed."""
    asked = (one for one in stored.library_documents(RequestDocument) if one.request == entry.request)
    return any(one.answer is None for one in asked)


def _of_marks(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    """Messages that were processed and will be delivered again, and pages that a commit was to follow."""
    told = _told(ledger, stored)
    texts = split(ledger.marks)
    for page in stored.library_documents(Page):
        if page.number <= ledger.cut:
            texts += split(page.marks)
        elif ledger.protocol == OUTBOX:
            yield Leftover("page, without a commit", str(page.number), page.marks)
    for mark in map(Mark.read, texts):
        if mark.kind != "l" and mark.hash not in told:  # Nobody delivers a release.
            yield Leftover("committed, not acknowledged", "", mark.hash)


def _of_parked(stored: Stored) -> Iterator[Leftover]:
    for parked in stored.library_documents(ParkedMessage):
        if parked.envelope.value["id"] in stored.published:
            yield Leftover("sent again, still parked", "", parked.message)
        elif parked.message not in stored.acknowledged:
            yield Leftover("parked, not acknowledged", "", parked.message)


def _of_companions(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    for record in (*stored.companions_of(ColocatedRecord), *stored.companions_of(StreamEntry)):
        outputs = tuple(output.id for output in record.outputs)
        if kind := _unfinished(record, stored):
            yield Leftover(kind, record.tx, record.message, outputs if kind == "committed, not published" else ())
    told = _told(ledger, stored)
    for numbered in stored.companions_of(NumberedMessage):
        key = numbered.message
        if key is not None and message_hash(key) not in told:
            kind = "committed, not acknowledged" if numbered.held is None else "held, not acknowledged"
            yield Leftover(kind, "", message_hash(key))  # As entries of the outbox name it.
        if numbered.held is not None and _is_releasable(ledger, numbered):
            yield Leftover("held, could be released", "", key or "")


def _is_releasable(ledger: Ledger, document: NumberedMessage) -> bool:
    """Whether nothing is missing before a held message, whose handler is not known to raise either."""
    return any(
        one.channel == document.channel
        and one.failing is None
        and all(holds(one.held, number) for number in range(one.next, document.number + 1))
        for one in ledger.receptions
    )


def _unfinished(record: ColocatedRecord | StreamEntry, stored: Stored) -> str | None:
    arrived = {output.id for output in record.outputs} <= stored.published
    if record.owed is not None:
        return "published, still owed" if arrived else "committed, not published"
    if isinstance(record, StreamEntry) and not arrived:
        return "committed, not published"
    return None if record.message in stored.acknowledged else "committed, not acknowledged"


def can_be_finished(occasion: Occasion) -> bool:
    """Whether anybody can: not where the ledger is gone, nor where the strategy is another than the entity's."""
    ledger, protocol = occasion.stored.ledger, occasion.strategy.name
    return ledger is not None and (ledger == Ledger() or ledger.protocol == protocol)


def left_by(crash: tuple[Occasion, Stored]) -> frozenset[Leftover]:
    """What a crash left that was not there when the attempt began."""
    occasion, stored = crash
    if not can_be_finished(occasion):
        return frozenset()
    before = leftovers(occasion.stored)
    begun = {one.message for one in before if one.kind.startswith(("committed", "published", "held"))}
    # What is merely carried on for an earlier attempt is progress. Where there is one order for all sources, a message may have
    # to wait for another source.
    return frozenset(
        one
        for one in leftovers(stored) - before
        if not (one.kind == "committed, not acknowledged" and one.message in begun)
        and not (one.kind == "held, could be released" and occasion.preset == IN_TIME)
    )


def is_finished(one: Leftover, stored: Stored) -> bool:
    """Whether it is gone, and not just lost sight of."""
    if not stored.published.issuperset(one.outputs):
        return False
    if one.kind == "held, could be released" and one.message not in _released(stored):
        return False
    return one not in leftovers(stored)


def _released(stored: Stored) -> Iterator[str | None]:
    return (one.message for one in stored.companions_of(NumberedMessage) if one.held is None)
