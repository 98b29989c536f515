"""Where settling and clean-up start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from devtools.modelcheck.specification.occasions import DAMAGED, FIRST, FOREIGN, NEW, SECOND, THIRD, crashed
from devtools.modelcheck.specification.playing import ABSENT, Occasion, Start, finish, marking, message, play, process
from devtools.modelcheck.specification.replies import AT, LIMIT
from devtools.modelcheck.specification.settings import COLOCATED, PRESETS, STRATEGIES
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce import Outbox
from exactlyonce.attempt import Memory, key_of
from exactlyonce.protocols.outbox.clean import clean_processed, clean_staged
from exactlyonce.protocols.outbox.settle import renew, requeue, settle, sweep
from exactlyonce.protocols.steps.give_back import give_back, send
from exactlyonce.records.library import ProcessedRecord, StagedOutputs
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope

NEVER_STAGED: Final = "t-never-staged"


def sweeps() -> Iterator[Occasion]:
    """Every occasion to sweep."""
    for preset, stored, delivered in _pasts():
        yield Occasion(preset, sweeping(), stored, delivered)


def settlements() -> Iterator[Occasion]:
    """Every occasion to settle a message that the host gave up on."""
    for preset, stored, delivered in _pasts():
        for one in dict.fromkeys((FIRST, NEW, *delivered)):
            others = tuple(other for other in delivered if other.id != one.id)
            yield Occasion(preset, settling(one), stored, others)


def requeuings() -> Iterator[Occasion]:
    """Every occasion to send a parked message again."""
    yield from _parked(Start(requeue, (ENTITY, key_of(NEW), "out", _a_minute, Memory())))


def renewals() -> Iterator[Occasion]:
    """Every occasion to make a parked message a new one."""
    yield from _parked(Start(renew, (ENTITY, key_of(NEW), _a_minute, Memory())))


def returnings() -> Iterator[Occasion]:
    """Every occasion to send a message to its queue once more, unless it is parked."""
    yield from _parked(Start(give_back, (ENTITY, key_of(NEW), _returned(), Memory())))


def first_returnings() -> Iterator[Occasion]:
    """Every occasion to do so without a look."""
    yield Occasion(next(iter(PRESETS)), Start(send, (_returned(), Memory())), Stored())


def _returned() -> Output:
    """The message as it is sent to its queue."""
    message = replace(NEW, time=AT)
    return Output(message.id, "in", message.to_json())


def _parked(start: Start) -> Iterator[Occasion]:
    """A start from where a message is not parked, and from where it is."""
    _, parked = play(settling(replace(NEW, time=AT)), Stored())
    for stored in (Stored(), parked):
        yield Occasion(next(iter(PRESETS)), start, stored)


def _a_minute(_: datetime) -> timedelta:
    """Age above which nothing is sent again."""
    return timedelta(seconds=LIMIT)


def cleanings_of_staged() -> Iterator[Occasion]:
    """Every occasion to delete staged outputs."""
    for preset, stored, delivered in _pasts():
        yield Occasion(preset, cleaning_staged(stored), stored, delivered)


def cleanings_of_processed() -> Iterator[Occasion]:
    """Every occasion to delete processed records."""
    for preset, stored, delivered in _pasts():
        yield Occasion(preset, cleaning_processed(stored), stored, delivered)


def sweeping() -> Start:
    """A sweep."""
    return Start(sweep, (ENTITY, Memory()))


def settling(one: Envelope) -> Start:
    """The settling of one message."""
    return Start(settle, (ENTITY, one, "the host gave up on it", ABSENT, Memory()))


def cleaning_staged(stored: Stored) -> Start:
    """A clean-up with everything staged as candidates."""
    staged = tuple(document.tx for document in stored.library_documents(StagedOutputs))
    return Start(clean_staged, (ENTITY, staged or (NEVER_STAGED,), ABSENT, Memory()))


def cleaning_processed(stored: Stored) -> Start:
    """A clean-up of all records."""
    records = stored.library_documents(ProcessedRecord)
    found = tuple((record.message, stored.library_etag(f"processed:{record.message}")) for record in records)
    return Start(clean_processed, (ENTITY, found))


def _pasts() -> Iterator[tuple[str, Stored, tuple[Envelope, ...]]]:
    """Pasts of an entity by every preset, and the messages that are still to be delivered."""
    for preset, strategy in PRESETS.items():
        yield preset, Stored(), ()
        yield preset, Stored((FOREIGN,)), ()
        for length in range(1, 4):
            memory, processed = process(strategy, Stored(), *(FIRST, SECOND, THIRD)[:length])
            yield preset, processed, ()
            yield preset, finish(marking(strategy, memory), processed)[1], ()
        for document in (FOREIGN, DAMAGED):
            yield preset, processed.with_entity(document), ()
        yield preset, process(STRATEGIES[COLOCATED], Stored(), FIRST)[1], ()
        yield from _crashes(preset, strategy)


def _crashes(preset: str, strategy: Outbox) -> Iterator[tuple[str, Stored, tuple[Envelope, ...]]]:
    for one in (FIRST, message("m1", "large")):
        for before in ("entity", "published"):
            for past in (Stored(), process(strategy, Stored(), SECOND)[1]):
                yield preset, crashed(strategy, past, one, before), (one,)
