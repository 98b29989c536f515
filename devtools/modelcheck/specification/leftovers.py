"""What a crash leaves behind, and who finishes it: both found by looking at what is stored, and by going on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from devtools.modelcheck.specification.chores import cleaning_staged, sweeping
from devtools.modelcheck.specification.playing import (
    WIDEST,
    Occasion,
    Start,
    finish,
    marking,
    message,
    output_id,
    play,
    process,
)
from devtools.modelcheck.specification.stored import Stored
from exactlyonce import Outbox
from exactlyonce.envelope import Envelope
from exactlyonce.handling.attempts import key_of
from exactlyonce.records import Entry, ParkedMessage, ProcessedRecord, StagedOutputs
from exactlyonce.strategies.settling import Settled, requeue, settle


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """One thing that should not stay.

    Attributes:
        kind: a key of `words.LEFTOVERS`.
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
        return  # Whatever is left is for whoever restores the document.
    yield from _of_entries({entry.tx: entry for entry in ledger.entries}, stored)
    yield from _of_parked(stored)
    if ledger.deleted and not ledger.version:
        yield Leftover("tombstone of nothing", "", "")


def _of_entries(entries: Mapping[str, Entry], stored: Stored) -> Iterator[Leftover]:
    records = {record.tx: record for record in stored.library_documents(ProcessedRecord)}
    for told in {**records, **entries}.values():
        if kind := _unfinished(told, stored):
            yield Leftover(kind, told.tx, told.message)
        if told.tx in records and told.tx in entries:
            yield Leftover("record beside its entry", told.tx, told.message)
    for staged in stored.library_documents(StagedOutputs):
        if staged.tx not in entries:
            kind = "staged, its entry left" if staged.tx in records else "staged, without an entry"
            yield Leftover(kind, staged.tx, staged.message)


def _of_parked(stored: Stored) -> Iterator[Leftover]:
    for parked in stored.library_documents(ParkedMessage):
        if parked.envelope.value["id"] in stored.published:
            yield Leftover("sent again, still parked", "", parked.message)
        elif parked.message not in stored.acknowledged:
            yield Leftover("parked, not acknowledged", "", parked.message)


def _unfinished(told: Entry | ProcessedRecord, stored: Stored) -> str | None:
    if isinstance(told, Entry) and told.owed is not None:
        arrived = {output.id for output in told.outputs} <= stored.published
        return "published, not marked" if arrived else "committed, not published"
    return None if told.message in stored.acknowledged else "committed, not acknowledged"


def left_by(crash: tuple[Occasion, Stored]) -> frozenset[Leftover]:
    """What a crash left that was not there when the attempt began."""
    occasion, stored = crash
    if occasion.stored.ledger is None:
        return frozenset()
    entries = {entry.tx for entry in occasion.stored.ledger.entries}
    before = leftovers(occasion.stored)
    staged = {one.tx for one in before if one.kind.startswith("staged")}
    # What is merely finished for an earlier attempt is progress, and staged outputs that were left over are so still.
    return frozenset(
        one
        for one in leftovers(stored) - before
        if not (one.kind == "committed, not acknowledged" and one.tx in entries)
        and not (one.kind.startswith("staged") and one.tx in staged)
    )


Finisher = Callable[[Occasion, Stored], Stored]


def redeliver(occasion: Occasion, stored: Stored) -> Stored:
    """Whatever was not acknowledged is delivered again, and processed."""
    for one in occasion.delivered:
        if key_of(one) not in stored.acknowledged:
            stored = _deliver(occasion, stored, one)
    return stored


def one_more(occasion: Occasion, stored: Stored) -> Stored:
    """Another message on the entity."""
    return _deliver(occasion, stored, message("next"))


def many_more(occasion: Occasion, stored: Stored) -> Stored:
    """Other messages on the entity, until every entry of before has left."""
    for number in range(WIDEST + 1):
        stored = _deliver(occasion, stored, message(f"next-{number}"))
    return stored


def swept(occasion: Occasion, stored: Stored) -> Stored:
    """The sweeper comes along."""
    del occasion
    return finish(sweeping(), stored)[1]


def cleaned(occasion: Occasion, stored: Stored) -> Stored:
    """Clean-up comes along, when everything staged is old."""
    del occasion
    return play(cleaning_staged(stored), stored)[1]


def repeated(occasion: Occasion, stored: Stored) -> Stored:
    """The same again, by whoever asked for it the first time: the settler or the operator."""
    if occasion.start.function not in (settle, requeue):
        return stored
    result, stored = play(occasion.start, stored)
    settled = isinstance(result, Settled)
    keys = {key_of(one) for one in occasion.start.arguments if isinstance(one, Envelope)}
    return replace(stored, acknowledged=stored.acknowledged | keys) if settled else stored


def _deliver(occasion: Occasion, stored: Stored, one: Envelope) -> Stored:
    """Process one message and fall quiet, in a process that knows nothing."""
    memory, stored = process(occasion.strategy, stored, one)
    return finish(marking(occasion.strategy, memory), stored)[1]


NOTHING: Final = Start(Outbox.attempt, ())
"""In place of a start that does not matter."""
FINISHERS: Final[dict[str, Finisher]] = {
    "redelivery": redeliver,
    "next message": one_more,
    "more messages": many_more,
    "sweeper": swept,
    "clean-up": cleaned,
    "the same again": repeated,
}


def is_finished(one: Leftover, stored: Stored) -> bool:
    """Whether it is gone, and not just lost sight of."""
    lost = one.kind == "committed, not published" and output_id(one.message) not in stored.published
    return not lost and one not in leftovers(stored)


def _redelivered(left: Iterable[Leftover], occasion: Occasion, stored: Stored) -> Iterator[Leftover]:
    """What is about messages that will be delivered again."""
    keys = {key_of(one) for one in occasion.delivered} - stored.acknowledged
    return (one for one in left if one.message in keys)


Finishes = dict[str, dict[str, dict[str, bool]]]
"""For each kind of leftover, each finisher and each preset: whether it was gone afterwards in every case seen."""


def who_finishes(crashes: Iterable[tuple[Occasion, Stored]]) -> Finishes:
    """Go on from every crash, with each finisher in turn."""
    found: Finishes = {}
    played: dict[tuple[str, Occasion, Stored], Stored] = {}
    for occasion, stored in crashes:
        left = left_by((occasion, stored))
        for name, finisher in FINISHERS.items() if left else ():
            # Where it makes no difference how the attempt that crashed was started, one stands for all.
            start = occasion.start if finisher is repeated else NOTHING
            key = (name, replace(occasion, start=start, stored=stored), stored)
            if key not in played:
                played[key] = finisher(key[1], stored)
            judged = _redelivered(left, occasion, stored) if finisher is redeliver else left
            for one in judged:
                presets = found.setdefault(one.kind, {}).setdefault(name, {})
                presets[occasion.preset] = presets.get(occasion.preset, True) and is_finished(one, played[key])
    return found
