"""What an entity may have behind it when a generator starts: made by the strategies too, finished or left by a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Final

from exactlyonce import Resequencer
from exactlyonce.attempt import Before, Handled, Memory, Strategy
from exactlyonce.effects.companions import DeleteCompanions
from exactlyonce.effects.library import DeletePages
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.records.ledger import LEDGER, Page
from exactlyonce.records.sequences import Place
from exactlyonce.values.envelope import Envelope, milliseconds
from exactlyonce.values.frozen_json import Json
from verification.specification.playing import (
    Start,
    attempt,
    changes,
    finish,
    handle,
    message,
    process,
    work,
)
from verification.specification.replies import AT
from verification.specification.settings import (
    COLOCATED,
    OUTBOX,
    RESEQUENCERS,
    SKIPPING,
    STRATEGIES,
    STREAM,
    WAITING,
)
from verification.specification.stored import ENTITY, PAGE, Stored

Past = tuple[Memory, Stored]
"""What the process remembers that was at work last, and what is stored."""

SOURCE: Final = "web"
FOREIGN: Final = Json.of({"id": "a", "handled": 7})
DAMAGED: Final = Json.of({"id": "a", LEDGER: {"schema": 1, "version": 1}})
FIRST, SECOND, THIRD, NEW = (message(id) for id in ("m1", "m2", "m3", "new"))
EARLY, LATE = (message(id).with_stable_time(milliseconds(AT) + day * 86_400_000) for id, day in (("m0", -1), ("m9", 9)))
"""Timed messages, before all others and after them."""
ASKED: Final = replace(FIRST, asked="fingerprint")


def channel_of(source: str) -> str:
    """The id of the channel of a source."""
    return f"{source}1"


def ordered(number: int, *kinds: str, id: str = "", source: str = SOURCE) -> Envelope:
    """The message with a number in the channel of its source; kinds as of `message`."""
    place = Place(channel_of(source), ENTITY.source, number).extensions
    time = AT + timedelta(days=number)
    return Envelope(source, id or f"o{number}", "test", Json.of(list(kinds)), time, extensions=place)


ONE, TWO, THREE, FOUR = (ordered(number) for number in range(1, 5))
ELSEWHERE: Final = ordered(1, source="app")


def of_kind(envelope: Envelope, *kinds: str) -> Envelope:
    """The same message with other data; kinds as of `message`."""
    return replace(envelope, data=Json.of(list(kinds)))


def messages_for(preset: str) -> tuple[Envelope, Envelope, Envelope, Envelope]:
    """Three messages of the past, and a new one."""
    return (ONE, TWO, THREE, FOUR) if preset in RESEQUENCERS else (FIRST, SECOND, THIRD, NEW)


def pasts(preset: str) -> tuple[Past, ...]:
    """Every past of an entity with the strategy of this name."""
    return _cached(preset, type(STRATEGIES[preset]))


@cache
def _cached(preset: str, _: type[Strategy]) -> tuple[Past, ...]:
    return tuple(dict.fromkeys(_pasts(preset)))


def _pasts(preset: str) -> Iterator[Past]:
    yield Memory(), Stored()
    yield Memory(), Stored((FOREIGN,))
    for memory, stored in _made(preset):
        yield memory, stored
        if memory != Memory():
            yield from ((Memory(), stored.with_entity(document)) for document in (FOREIGN, DAMAGED))
    yield Memory(), process(STRATEGIES[STREAM if preset == COLOCATED else COLOCATED], Stored(), SECOND)[1]
    if preset in RESEQUENCERS:
        yield from ((Memory(), stored) for stored in _out_of_order())
    if preset == OUTBOX:
        yield from ((Memory(), stored) for stored in _paged())


def _made(maker: str) -> Iterator[Past]:
    """Messages that were processed; attempts that died, and what came after; and companions that are gone."""
    strategy = STRATEGIES[maker]
    *several, _ = messages_for(maker)
    memory, stored = Memory(), Stored()
    for number in range(1, len(several) + 1):
        memory, stored = process(strategy, Stored(), *several[:number])
        yield memory, stored
    busy = process(strategy, Stored(), *several[1:])[1]
    alone = ("", "blob", "kept" if maker == OUTBOX else "numbered")
    for before, kind in ((busy, ""), *((Stored(), kind) for kind in alone)):
        first = of_kind(several[0], kind)
        for died in changes(attempt(strategy, Memory(), first), before):
            yield Memory(), died
            yield Memory(), process(strategy, died, several[2])[1]
            memory, stored = process(strategy, died, first, several[2])
            yield memory, stored
    for id, (_, etag) in stored.companions().items():
        yield Memory(), stored.apply(DeleteCompanions(ENTITY, ((id, etag),)))[1]


def _paged() -> Iterator[Stored]:
    """Entities of an outbox with pages: that prove blobs, have an answer, are gone, or are of another history."""
    strategy = STRATEGIES[OUTBOX]
    _, stored = process(strategy, Stored(), FIRST, SECOND, THIRD)
    (page,) = stored.library_documents(Page)
    yield process(strategy, Stored(), of_kind(FIRST, "blob"), SECOND, THIRD)[1]
    yield process(strategy, Stored(), ASKED, NEW)[1]
    yield stored.apply(DeletePages(ENTITY, ((page.number, stored.library_etag(f"{PAGE}{page.number}")),)))[1]
    put_back = stored.with_entity(stored.entity[0])
    yield put_back
    yield process(strategy, put_back, LATE)[1]


def _out_of_order() -> Iterator[Stored]:
    """Read models with several gaps, a handler that raised, a number that was given up, or a held message that is gone."""
    strategy = RESEQUENCERS[WAITING]
    _, held = process(strategy, Stored(), TWO)
    yield held
    ((id, (_, etag)),) = held.companions().items()
    yield held.apply(DeleteCompanions(ENTITY, ((id, etag),)))[1]
    yield process(strategy, process(strategy, Stored(), ONE)[1], THREE)[1]
    yield process(strategy, Stored(), TWO, ordered(2, source="app"))[1]
    yield finish(attempt(strategy, Memory(), ONE, handler=_raised), Stored())[1]
    yield finish(tending(SKIPPING), held)[1]


def tending(preset: str) -> Start:
    """Looking after a read model."""
    return Start(Resequencer.tend, (RESEQUENCERS[preset], work(), Memory()))


def crowded() -> Stored:
    """A read model that holds more messages than one batch can release."""
    strategy, stored = RESEQUENCERS[WAITING], Stored()
    numbers = range(2, BATCH_DOCUMENTS + 2)
    for first in numbers[:: strategy.group_limit]:
        group = (ordered(number, "quiet") for number in numbers if first <= number < first + strategy.group_limit)
        stored = finish(attempt(strategy, Memory(), *group), stored)[1]
    return stored


def _raised(before: Before, envelope: Envelope) -> Handled:
    """The business code before its cause of failure is removed."""
    return handle(before, of_kind(envelope, "fails"))
