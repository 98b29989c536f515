"""What a crash leaves behind, found by looking at what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exactlyonce.attempt import key_of
from exactlyonce.records.channels import by_id
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Entry, Ledger
from exactlyonce.records.library import ChannelDocument, ParkedMessage, ProcessedRecord, StagedOutputs
from exactlyonce.values.ranges import holds
from verification.specification.pasts import ordered
from verification.specification.playing import Occasion, is_release, output_id
from verification.specification.settings import IN_TIME
from verification.specification.stored import Stored


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """One thing that should not stay.

    Attributes:
        kind: a key of `vocabulary.LEFTOVERS`.
        tx: transaction it belongs to.
        message: that it is about.
    """

    kind: str
    tx: str
    message: str


def leftovers(stored: Stored) -> frozenset[Leftover]:
    """Everything half done."""
    return frozenset(_leftovers(stored))


def _leftovers(stored: Stored) -> Iterator[Leftover]:
    ledger = stored.ledger
    if ledger is None:
        return  # All that is left waits until an operator restores the document.
    yield from _of_entries(ledger, stored)
    yield from _of_channels(ledger, stored)
    yield from _of_companions(ledger, stored)
    yield from _of_parked(stored)
    for blob in stored.blobs:
        if blob.author is not None and not (stored.entity and blob.name in stored.entity[-1].text):
            yield Leftover("blob, without a commit", blob.author.tx, blob.author.message)
    if ledger.deleted and not ledger.version and not ledger.receptions:
        yield Leftover("tombstone of nothing", "", "")


def _of_entries(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    entries = {entry.tx: entry for entry in ledger.entries}
    records = {record.tx: record for record in stored.library_documents(ProcessedRecord)}
    for record in {**records, **entries}.values():
        if kind := _unfinished(record, stored):
            yield Leftover(kind, record.tx, record.message)
        if record.tx in records and record.tx in entries:
            yield Leftover("record and entry", record.tx, record.message)
    for staged in stored.library_documents(StagedOutputs):
        if staged.tx not in ledger.transactions:
            kind = "staged, its entry left" if staged.tx in records else "staged, without an entry"
            yield Leftover(kind, staged.tx, staged.message)


def _of_channels(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    apart = [document.channel for document in stored.library_documents(ChannelDocument)]
    here = {channel.id for channel in ledger.channels}
    told = {entry.message for entry in ledger.entries} | stored.acknowledged
    for id in here & {channel.id for channel in apart}:
        yield Leftover("document and channel", "", id)
    for channel in by_id((*ledger.channels, *apart)).values():
        for first, last in channel.received:
            received = (key_of(ordered(number, source=channel.source)) for number in range(first, last + 1))
            yield from (Leftover("committed, not acknowledged", "", one) for one in received if one not in told)


def _of_parked(stored: Stored) -> Iterator[Leftover]:
    for parked in stored.library_documents(ParkedMessage):
        if parked.envelope.value["id"] in stored.published:
            yield Leftover("sent again, still parked", "", parked.message)
        elif parked.message not in stored.acknowledged:
            yield Leftover("parked, not acknowledged", "", parked.message)


def _of_companions(ledger: Ledger, stored: Stored) -> Iterator[Leftover]:
    for record in (*stored.companions_of(ColocatedRecord), *stored.companions_of(StreamEntry)):
        if kind := _unfinished(record, stored):
            yield Leftover(kind, record.tx, record.message)
    entries = {entry.message for entry in ledger.entries}
    for numbered in stored.companions_of(NumberedMessage):
        if numbered.message not in (stored.acknowledged | entries | {None}):
            kind = "committed, not acknowledged" if numbered.held is None else "held, not acknowledged"
            yield Leftover(kind, "", numbered.message)
        if numbered.held is not None and _is_releasable(ledger, numbered):
            yield Leftover("held, could be released", "", numbered.message)


def _is_releasable(ledger: Ledger, document: NumberedMessage) -> bool:
    """Whether nothing is missing before a held message, whose handler is not known to raise either."""
    return any(
        one.channel == document.channel
        and one.failing is None
        and all(holds(one.held, number) for number in range(one.next, document.number + 1))
        for one in ledger.receptions
    )


def _unfinished(record: Entry | ProcessedRecord | ColocatedRecord | StreamEntry, stored: Stored) -> str | None:
    arrived = {output.id for output in record.outputs} <= stored.published
    if isinstance(record, Entry | ColocatedRecord | StreamEntry) and record.owed is not None:
        return "published, not marked" if arrived else "committed, not published"
    if isinstance(record, StreamEntry) and not arrived:
        return "committed, not published"
    done = record.message in stored.acknowledged or is_release(record.message)
    return None if done else "committed, not acknowledged"


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
    committed = {one.message for one in before if one.kind.startswith(("committed", "published"))}
    staged = {one.tx for one in before if one.kind.startswith("staged")}
    # What is merely finished for an earlier attempt is progress, and staged outputs that were left over are so still. Where
    # there is one order for all sources, a message may have to wait for another source.
    return frozenset(
        one
        for one in leftovers(stored) - before
        if not (one.kind == "committed, not acknowledged" and one.message in committed)
        and not (one.kind.startswith("staged") and one.tx in staged)
        and not (one.kind == "held, could be released" and occasion.preset == IN_TIME)
    )


def is_finished(one: Leftover, stored: Stored) -> bool:
    """Whether it is gone, and not just lost sight of."""
    if one.kind == "committed, not published" and output_id(one.message) not in stored.published:
        return False
    if one.kind == "held, could be released" and one.message not in _released(stored):
        return False
    return one not in leftovers(stored)


def _released(stored: Stored) -> Iterator[str | None]:
    return (one.message for one in stored.companions_of(NumberedMessage) if one.held is None)
