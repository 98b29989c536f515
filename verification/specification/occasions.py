"""How generators are started, on every past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from exactlyonce.attempt import Handle, Memory
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.steps.clean_blobs import clean_blobs
from exactlyonce.protocols.steps.give_back import give_back, send
from exactlyonce.protocols.steps.park import SendLimit, discard, put_aside, renew, requeue
from exactlyonce.protocols.stream.replay import Missing, replay, versions_of
from exactlyonce.records.blobs import ListedBlob
from exactlyonce.records.companions import StreamEntry
from exactlyonce.records.ledger import Page
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import Envelope, key_of
from verification.specification.pasts import (
    ASKED,
    EARLY,
    FIRST,
    LATE,
    NEW,
    ONE,
    crowded,
    messages_for,
    of_kind,
    ordered,
    pasts,
    tending,
)
from verification.specification.playing import (
    ABSENT,
    CHANNEL,
    Occasion,
    Start,
    attempt,
    changes,
    message,
    next_release,
    play,
    work,
)
from verification.specification.replies import AT, LIMIT
from verification.specification.settings import (
    COLOCATED,
    IN_TIME,
    OUTBOX,
    RESEQUENCERS,
    STRATEGIES,
    STREAM,
    WAITING,
)
from verification.specification.stored import ENTITY, PAGE, Stored, ledger_of

ALL: Final = (OUTBOX, COLOCATED, STREAM, WAITING)
REASON: Final = "the host gave up on it"
RETURNED: Final = replace(NEW, time=AT)


def attempts(*presets: str) -> Iterator[Occasion]:
    """Process messages, alone and in groups, of every kind, in processes that remember and that do not."""
    for preset in presets:
        strategy = STRATEGIES[preset]
        first, second, third, new = messages_for(preset)
        kinds = tuple((of_kind(new, kind),) for kind in ("quiet", "blob", "fails"))
        groups = ((first, new), (second, third))
        for memory, stored in pasts(preset):
            alone = ((first,), (third,), (new,), (new, new), *(() if stored.entity else kinds))
            for group in (*alone, *(groups if strategy.group_limit > 1 else ())):
                yield Occasion(preset, attempt(strategy, Memory(), *group), stored, group)
            yield Occasion(preset, attempt(strategy, memory, new), stored, (new,))


def outbox_attempts() -> Iterator[Occasion]:
    """Process messages with an outbox: also timed ones, requests, and those that keep messages; in processes that remember."""
    yield from attempts(OUTBOX)
    strategy = STRATEGIES[OUTBOX]
    keeping, failing = of_kind(NEW, "kept"), of_kind(NEW, "fails")
    for memory, stored in pasts(OUTBOX):
        for one in (EARLY, LATE, ASKED):
            yield Occasion(OUTBOX, attempt(strategy, Memory(), one), stored, (one,))
        for one in (FIRST, LATE, keeping, failing) if memory.saved is not None else ():
            yield Occasion(OUTBOX, attempt(strategy, memory, one), stored, (one,))
    yield Occasion(OUTBOX, attempt(strategy, Memory(), keeping), Stored(), (keeping,))


def stream_attempts() -> Iterator[Occasion]:
    """Process messages with a stream; also requests, and when the handler has changed since."""
    yield from attempts(STREAM)
    asked = attempt(STRATEGIES[STREAM], Memory(), ASKED)
    yield from (Occasion(STREAM, asked, stored, (ASKED,)) for stored in (Stored(), *changes(asked, Stored())))
    for _, stored in pasts(STREAM):
        if any(entry.message == key_of(FIRST) for entry in stored.companions_of(StreamEntry)):
            changed = attempt(STRATEGIES[STREAM], Memory(), FIRST, handler=next_release)
            yield Occasion(STREAM, changed, stored, (FIRST,))


def receptions() -> Iterator[Occasion]:
    """Receive messages; also those that have no place or another's, and more than one batch can release."""
    yield from attempts(WAITING, IN_TIME)
    kinds = tuple(ordered(1, kind) for kind in ("quiet", "blob", "fails"))
    strange = (ordered(1, id="impostor"), message("unnumbered"), ordered(2, source="app"))
    for preset in (WAITING, IN_TIME):
        for _, stored in pasts(preset):
            for one in (*kinds, *strange):
                yield Occasion(preset, attempt(RESEQUENCERS[preset], Memory(), one), stored, (one,))
    yield Occasion(WAITING, attempt(RESEQUENCERS[WAITING], Memory(), ONE), crowded(), (ONE,))


def tendings() -> Iterator[Occasion]:
    """Look after a read model."""
    return (Occasion(preset, tending(preset), stored) for preset in RESEQUENCERS for _, stored in pasts(preset))


def sweeps() -> Iterator[Occasion]:
    """Sweep an entity; also one that keeps messages, after others that it processed, and after a crash."""
    keeping = attempt(STRATEGIES[OUTBOX], Memory(), message("keeper", "kept"))
    for _, stored in pasts(OUTBOX):
        yield Occasion(OUTBOX, sweeping(OUTBOX), stored)
        ledger = ledger_of(stored.entity[-1] if stored.entity else None)
        if ledger is not None and ledger.protocol == STRATEGIES[OUTBOX].name:
            yield from (Occasion(OUTBOX, sweeping(OUTBOX), later) for later in changes(keeping, stored))


def sweeps_of_models() -> Iterator[Occasion]:
    """Sweep a read model."""
    return (Occasion(WAITING, sweeping(WAITING), stored) for _, stored in pasts(WAITING))


def sweeps_of_companions() -> Iterator[Occasion]:
    """Sweep co-located records."""
    return (Occasion(COLOCATED, sweeping(COLOCATED), stored) for _, stored in pasts(COLOCATED))


def settlements(*presets: str) -> Iterator[Occasion]:
    """Settle messages; also when the handler has changed since."""
    for preset in presets:
        first, second, _, new = messages_for(preset)
        for _, stored in pasts(preset):
            for one in (first, second, new, message("unnumbered")):
                for handler in (None, next_release) if preset == STREAM else (None,):
                    yield Occasion(preset, settling(preset, one, handler), stored)


def questions(*presets: str) -> Iterator[Occasion]:
    """Ask whether a message is known."""
    for preset in presets:
        strategy = STRATEGIES[preset]
        first, _, _, new = messages_for(preset)
        for _, stored in pasts(preset):
            for one in (first, new, message("unnumbered")):
                yield Occasion(preset, Start(type(strategy).knows, (strategy, ENTITY, one, Memory())), stored)


def settings_aside() -> Iterator[Occasion]:
    """Park a message about which nothing can be decided."""
    yield Occasion(OUTBOX, Start(put_aside, (ENTITY, NEW, REASON, Memory())), Stored())


def discards() -> Iterator[Occasion]:
    """Delete a parked message for good."""
    return _parked(Start(discard, (ENTITY, key_of(NEW), Memory())))


def requeuings() -> Iterator[Occasion]:
    """Send a parked message again."""
    return _parked(Start(requeue, (ENTITY, key_of(NEW), "out", _limit, Memory())))


def renewals() -> Iterator[Occasion]:
    """Make a parked message a new one."""
    return _parked(Start(renew, (ENTITY, key_of(NEW), _limit, Memory())))


def returnings() -> Iterator[Occasion]:
    """Send a message to its queue once more, unless it is parked."""
    return _parked(Start(give_back, (ENTITY, key_of(NEW), Output(NEW.id, "in", RETURNED.to_json()), Memory())))


def sendings() -> Iterator[Occasion]:
    """Do so without a look."""
    yield Occasion(OUTBOX, Start(send, (Output(NEW.id, "in", RETURNED.to_json()), Memory())), Stored())


def _parked(start: Start) -> Iterator[Occasion]:
    """A start where a message is not parked, and where it is."""
    _, parked = play(settling(OUTBOX, RETURNED), Stored())
    return (Occasion(OUTBOX, start, stored) for stored in (Stored(), parked))


def searches() -> Iterator[Occasion]:
    """Find the versions that sent something."""
    start = Start(versions_of, (ENTITY, Missing(CHANNEL, 1, 1), Memory()))
    return (Occasion(STREAM, start, stored) for _, stored in pasts(STREAM))


def replays() -> Iterator[Occasion]:
    """Send again; also when the handler has changed since."""
    for _, stored in pasts(STREAM):
        for start in (replaying(), replaying(Missing(CHANNEL, 1, 1)), replaying(handler=next_release)):
            yield Occasion(STREAM, start, stored)


def cleanings_of_staged() -> Iterator[Occasion]:
    """Delete the documents of kept messages."""
    return (Occasion(OUTBOX, cleaning_staged(stored), stored) for _, stored in pasts(OUTBOX))


def cleanings_of_pages() -> Iterator[Occasion]:
    """Delete all pages, when all are old."""
    for _, stored in pasts(OUTBOX):
        pages = stored.library_documents(Page)
        found = tuple((str(page.number), stored.library_etag(f"{PAGE}{page.number}")) for page in pages)
        yield Occasion(OUTBOX, _cleaning(OUTBOX, found), stored)


def cleanings_of_blobs() -> Iterator[Occasion]:
    """Delete blobs."""
    for preset in ALL:
        for _, stored in pasts(preset):
            yield Occasion(preset, cleaning_blobs(preset, stored), stored)


def cleanings(*presets: str) -> Iterator[Occasion]:
    """Delete companions, when all are old."""
    for preset in presets:
        for _, stored in pasts(preset):
            candidates = tuple((id, etag) for id, (_, etag) in stored.companions().items())
            yield Occasion(preset, _cleaning(preset, candidates), stored)


def _cleaning(preset: str, candidates: tuple[tuple[str, str], ...]) -> Start:
    """The clean-up of a strategy."""
    strategy = STRATEGIES[preset]
    return Start(type(strategy).clean, (strategy, ENTITY, candidates, Memory()))


def sweeping(preset: str) -> Start:
    """A sweep."""
    strategy = STRATEGIES[preset]
    return Start(type(strategy).sweep, (strategy, work(), Memory()))


def settling(preset: str, one: Envelope, handler: Handle | None = None) -> Start:
    """The settling of one message."""
    asked, strategy = work(one, handler=handler) if handler else work(one), STRATEGIES[preset]
    return Start(type(strategy).settle, (strategy, asked, one, REASON, Memory()))


def replaying(missing: Missing | None = None, first: int = 1, handler: Handle | None = None) -> Start:
    """Sending again all from a version on, or what is missing of it."""
    asked = work(handler=handler) if handler else work()
    return Start(replay, (asked, (first, 9), Memory(), missing))


def cleaning_staged(stored: Stored) -> Start:
    """A clean-up with all documents of kept messages as candidates."""
    staged = tuple(document.tx for document in stored.library_documents(StagedOutputs))
    return Start(clean_staged, (ENTITY, staged or ("never staged",), ABSENT, Memory()))


def cleaning_blobs(preset: str, stored: Stored) -> Start:
    """A clean-up with all blobs as candidates, when all are old."""
    blobs = sorted(stored.blobs, key=lambda blob: blob.name)
    listed = tuple(ListedBlob(blob.name, blob.author, timedelta(days=1)) for blob in blobs)
    return Start(clean_blobs, (ENTITY, listed, ABSENT, Memory(), STRATEGIES[preset]))


def _limit(_: Envelope) -> SendLimit:
    """What gives the age above which a message is not sent again."""
    return _a_minute


def _a_minute(_: datetime) -> timedelta:
    return timedelta(seconds=LIMIT)
