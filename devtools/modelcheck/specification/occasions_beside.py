"""Where the protocols start from that keep their records beside the entity and process messages as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from devtools.modelcheck.specification.occasions import DAMAGED, FIRST, FOREIGN, NEW, SECOND, THIRD, crashed
from devtools.modelcheck.specification.playing import (
    READ_MODEL,
    Occasion,
    Start,
    attempt,
    message,
    next_release,
    play,
    process,
    work,
)
from devtools.modelcheck.specification.settings import COLOCATED, PRESETS, STRATEGIES, STREAM, protocol_of
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce.attempt import Memory, key_of
from exactlyonce.effects.companions import DeleteBeside
from exactlyonce.protocols.colocated import sweep
from exactlyonce.protocols.steps.settle import settle_beside
from exactlyonce.protocols.stream.replay import Missing, replay, versions_of
from exactlyonce.records.companions import ColocatedRecord, entry_id
from exactlyonce.values.envelope import Envelope

COUNTED: Final = tuple(message(f"n{number}", "numbered") for number in range(1, 4))
"""Messages whose outputs are numbered."""


def colocated_attempts() -> Iterator[Occasion]:
    """Every occasion to process with records beside the entity."""
    yield from _attempts(COLOCATED)


def colocated_sweeps() -> Iterator[Occasion]:
    """Every occasion to sweep these records."""
    for stored in _pasts(COLOCATED):
        yield Occasion(COLOCATED, sweeping_beside(), stored)


def colocated_settlements() -> Iterator[Occasion]:
    """Every occasion to settle a message with these records."""
    yield from settlements(COLOCATED, _pasts(COLOCATED), (FIRST, NEW))


def stream_attempts() -> Iterator[Occasion]:
    """Every occasion to process with a stream."""
    yield from _attempts(STREAM)
    strategy = STRATEGIES[STREAM]
    for stored in _longer():
        for one in (FIRST, SECOND, THIRD):
            yield Occasion(STREAM, attempt(strategy, Memory(), one), stored, (one,))
    changed = attempt(strategy, Memory(), FIRST, handler=next_release)
    yield Occasion(STREAM, changed, process(strategy, Stored(), FIRST, SECOND)[1], (FIRST,))


def stream_settlements() -> Iterator[Occasion]:
    """Every occasion to settle a message with a stream."""
    yield from settlements(STREAM, (*_pasts(STREAM), *_longer()), (FIRST, NEW))
    changed = Start(settle_beside, ("stream", work(FIRST, handler=next_release), "the host gave up on it", Memory()))
    yield Occasion(STREAM, changed, process(STRATEGIES[STREAM], Stored(), FIRST)[1])


def searches() -> Iterator[Occasion]:
    """Every occasion to find the versions that sent something."""
    start = Start(versions_of, (ENTITY, Missing("out", READ_MODEL, 1, 2), Memory()))
    for stored in (*_pasts(STREAM), *_counted()):
        yield Occasion(STREAM, start, stored)
    *_, longest = _counted()
    yield Occasion(STREAM, start, _without(longest, *COUNTED[:2]))


def replays() -> Iterator[Occasion]:
    """Every occasion to send again."""
    for stored in (*_pasts(STREAM), *_longer(), *_counted()):
        for missing in (None, Missing("out", READ_MODEL, 2, 2)):
            yield Occasion(STREAM, replaying(missing), stored)
    changed = Start(replay, (work(handler=next_release), (1, 9), Memory()))
    yield Occasion(STREAM, changed, process(STRATEGIES[STREAM], Stored(), FIRST)[1])


def sweeping_beside() -> Start:
    """A sweep of records beside the entity."""
    return Start(sweep, (ENTITY, Memory()))


def replaying(missing: Missing | None = None, first: int = 1) -> Start:
    """Sending again all from a version on, or what is missing of it."""
    return Start(replay, (work(), (first, 9), Memory(), missing))


def settling_beside(preset: str, one: Envelope) -> Start:
    """The settling of one message."""
    return Start(settle_beside, (protocol_of(STRATEGIES[preset]), work(one), "the host gave up on it", Memory()))


def settlements(
    preset: str, pasts: Iterator[Stored] | tuple[Stored, ...], given: tuple[Envelope, ...]
) -> Iterator[Occasion]:
    """Every occasion to settle one of these messages."""
    for stored in pasts:
        for one in given:
            yield Occasion(preset, settling_beside(preset, one), stored)


def spoilt(processed: Stored) -> Iterator[Stored]:
    """Entities whose documents are not what they should be: without a ledger, damaged, of another protocol."""
    for document in (FOREIGN, DAMAGED):
        yield processed.with_entity(document)
    yield process(PRESETS["Outbox()"], Stored(), SECOND)[1]


def _attempts(preset: str) -> Iterator[Occasion]:
    strategy = STRATEGIES[preset]
    for one in (message("new", kind) for kind in ("quiet", "blob", "fails")):
        yield Occasion(preset, attempt(strategy, Memory(), one), Stored(), (one,))
    yield Occasion(preset, attempt(strategy, Memory(), NEW, NEW), Stored(), (NEW,))
    for stored in _pasts(preset):
        for messages in ((NEW,), (FIRST,), (FIRST, NEW)):
            yield Occasion(preset, attempt(strategy, Memory(), *messages), stored, messages)


def _pasts(preset: str) -> Iterator[Stored]:
    """Entities that no message reached, some did, and an attempt left half done."""
    strategy = STRATEGIES[preset]
    yield Stored()
    yield Stored((FOREIGN,))
    _, processed = process(strategy, Stored(), FIRST)
    yield processed
    yield process(strategy, processed, SECOND)[1]
    yield from spoilt(processed)
    for before in (Stored(), process(strategy, Stored(), SECOND)[1]):
        yield crashed(strategy, before, FIRST, "published")
        if preset == COLOCATED:
            yield play(attempt(strategy, Memory(), FIRST), before, _is_dropped)[1]


def _is_dropped(stored: Stored) -> bool:
    """Whether the record of the first message owes nothing."""
    records = stored.companions_of(ColocatedRecord)
    return any(record.message == key_of(FIRST) and record.owed is None for record in records)


def _longer() -> Iterator[Stored]:
    """Streams over more than one whole state, and such that lost an entry."""
    _, stored = process(STRATEGIES[STREAM], Stored(), FIRST, SECOND, THIRD)
    yield stored
    for one in (FIRST, SECOND):
        yield _without(stored, one)


def _without(stored: Stored, *messages: Envelope) -> Stored:
    """A stream that has lost the entries of some messages."""
    ids = [entry_id(ENTITY, key_of(one)) for one in messages]
    return stored.apply(DeleteBeside(ENTITY, tuple((id, stored.companions()[id][1]) for id in ids)))[1]


def _counted() -> Iterator[Stored]:
    for length in (1, 3):
        yield process(STRATEGIES[STREAM], Stored(), *COUNTED[:length])[1]
