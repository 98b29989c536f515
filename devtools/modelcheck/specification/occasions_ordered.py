"""Where the resequencer starts from: read models with gaps, with messages that wait, and with handlers that raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from devtools.modelcheck.specification.occasions import FOREIGN, crashed
from devtools.modelcheck.specification.occasions_beside import (
    colocated_settlements,
    settlements,
    spoilt,
    stream_settlements,
)
from devtools.modelcheck.specification.playing import (
    Occasion,
    Start,
    attempt,
    finish,
    handle,
    marking,
    message,
    process,
    work,
)
from devtools.modelcheck.specification.replies import AT
from devtools.modelcheck.specification.settings import IN_TIME, RESEQUENCERS, SKIPPING, WAITING
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import DeleteBeside
from exactlyonce.protocols.resequencer.gaps import tend
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.records.companions import numbered_id
from exactlyonce.records.sequences import Order, order_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

SOURCE: Final = "web"


def ordered(number: int, *kinds: str, id: str = "", source: str = SOURCE) -> Envelope:
    """The message with a number in the sequence of its source; kinds as of `message`."""
    place = Order(ENTITY.id, number).extensions
    time = AT + timedelta(days=number)
    return Envelope(source, id or f"o{number}", "test", Json.of(list(kinds)), time, extensions=place)


ONE, TWO, THREE = (ordered(number) for number in range(1, 4))
IMPOSTOR: Final = ordered(1, id="impostor")
RAISING: Final = ordered(1, "fails")
WRITING: Final = ordered(1, "blob")


def receptions() -> Iterator[Occasion]:
    """Every occasion to receive messages."""
    for preset in (WAITING, IN_TIME):
        strategy = RESEQUENCERS[preset]
        for stored in (*_pasts(), *spoilt(process(strategy, Stored(), ONE)[1])):
            for messages in ((ONE,), (TWO,), (THREE,), (ONE, TWO), (TWO, THREE), (ONE, ONE)):
                yield Occasion(preset, attempt(strategy, Memory(), *messages), stored, messages)
        for one in (IMPOSTOR, RAISING, WRITING, message("unnumbered"), ordered(1, "quiet"), ordered(2, source="app")):
            for stored in (Stored(), process(strategy, Stored(), ONE)[1]):
                yield Occasion(preset, attempt(strategy, Memory(), one), stored, (one,))
    strategy = RESEQUENCERS[WAITING]
    yield Occasion(WAITING, attempt(strategy, Memory(), ONE), crowded(), (ONE,))
    # What is held and gone is damage; what was handled and gone, clean-up has taken.
    for one in (ONE, TWO):
        yield Occasion(
            WAITING, attempt(strategy, Memory(), one), _without(process(strategy, Stored(), one)[1], one), (one,)
        )


def markings_in_order() -> Iterator[Occasion]:
    """Every occasion to mark what a read model sent."""
    strategy = RESEQUENCERS[WAITING]
    memory, one = process(strategy, Stored(), ONE)
    without = replace(memory, saved=None)
    for stored in (one, process(strategy, one, TWO)[1]):
        yield Occasion(WAITING, marking(strategy, memory), stored)
        yield Occasion(WAITING, marking(strategy, without), stored)
    yield Occasion(WAITING, marking(strategy, without), Stored())


def tendings() -> Iterator[Occasion]:
    """Every occasion to look after a read model."""
    for preset in RESEQUENCERS:
        for stored in (*_pasts(), *spoilt(process(RESEQUENCERS[WAITING], Stored(), ONE)[1])):
            yield Occasion(preset, tending(preset), stored)


def all_settlements() -> Iterator[Occasion]:
    """Every occasion to settle a message with any of the protocols that keep their records beside the entity."""
    yield from colocated_settlements()
    yield from stream_settlements()
    pasts = (*_pasts(), *spoilt(process(RESEQUENCERS[WAITING], Stored(), ONE)[1]))
    yield from settlements(WAITING, pasts, (ONE, TWO, message("unnumbered")))


def tending(preset: str) -> Start:
    """Looking after a read model."""
    return Start(tend, (RESEQUENCERS[preset], work(), Memory()))


def crowded() -> Stored:
    """A read model that holds more messages than one batch can release."""
    strategy, stored = RESEQUENCERS[WAITING], Stored()
    numbers = range(2, BATCH_DOCUMENTS + 2)
    for first in numbers[:: strategy.group_limit]:
        group = (ordered(number, "quiet") for number in numbers if first <= number < first + strategy.group_limit)
        stored = finish(attempt(strategy, Memory(), *group), stored)[1]
    return stored


def _without(stored: Stored, envelope: Envelope) -> Stored:
    """A read model beside which the document of this message's number is gone."""
    gone = numbered_id(ENTITY, SOURCE, order_of(envelope, ""))
    return stored.apply(DeleteBeside(ENTITY, ((gone, stored.companions()[gone][1]),)))[1]


def _raised(before: Before, envelope: Envelope) -> Handled:
    """The business code before its cause of failure is mended."""
    return handle(before, Envelope(envelope.source, envelope.id, envelope.type, Json.of(["fails"])))


def _pasts() -> Iterator[Stored]:
    """Read models that nothing reached, that received all, that hold messages, and that an attempt left half done."""
    strategy = RESEQUENCERS[WAITING]
    yield Stored()
    yield Stored((FOREIGN,))
    _, one = process(strategy, Stored(), ONE)
    _, held = process(strategy, Stored(), TWO)
    yield one
    yield held
    yield process(strategy, one, TWO)[1]
    yield process(strategy, one, THREE)[1]
    yield process(strategy, Stored(), TWO, ordered(2, source="app"))[1]
    yield finish(attempt(strategy, Memory(), ONE, handler=_raised), Stored())[1]
    yield finish(tending(SKIPPING), held)[1]
    for before in (Stored(), held):
        yield crashed(strategy, before, ONE, "published")
