"""Where attempts of the outbox start from: entities with every kind of past, messages of every kind.

The pasts are made by the strategies too; some by another preset, since presets may be exchanged on
existing data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from devtools.modelcheck.specification.playing import (
    Occasion,
    attempt,
    marking,
    message,
    play,
    process,
)
from devtools.modelcheck.specification.settings import COLOCATED, PRESETS, STRATEGIES, WIDEST
from devtools.modelcheck.specification.stored import Stored
from exactlyonce import Outbox
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

FIRST, SECOND, THIRD, NEW = (message(id) for id in ("m1", "m2", "m3", "new"))
FOREIGN = Json.of({"id": "a", "handled": 7})
DAMAGED = Json.of({"id": "a", LEDGER: {"schema": 1}})


def attempts() -> Iterator[Occasion]:
    """Every occasion to process."""
    presets = tuple(PRESETS.items())
    for number, (preset, strategy) in enumerate(presets):
        yield from _first(preset, strategy)
        _, other = presets[number - 1]
        for maker, lengths in ((strategy, (1, 2, 3)), (other, (3,))):
            yield from _later(preset, strategy, maker, lengths)
            yield from _after_crashes(preset, strategy, maker)


def markings() -> Iterator[Occasion]:
    """Every occasion to mark."""
    for preset, strategy in PRESETS.items():
        remembered, one = process(strategy, Stored(), FIRST)
        _, two = process(strategy, one, SECOND)
        for stored in (one, two):
            yield Occasion(preset, marking(strategy, remembered), stored)
        for stored in (Stored(), one, two, Stored((FOREIGN,)), one.with_entity(DAMAGED)):
            yield Occasion(preset, marking(strategy, replace(remembered, saved=None)), stored)


def crashed(strategy: Strategy, stored: Stored, one: Envelope, before: str) -> Stored:
    """What is stored if an attempt dies right before it changes this part of it."""
    return play(
        attempt(strategy, Memory(), one), stored, lambda after: getattr(after, before) != getattr(stored, before)
    )[1]


def _first(preset: str, strategy: Outbox) -> Iterator[Occasion]:
    """Entities that no message reached."""
    kinds = ("quiet", "large", "blob", "fails")
    for one in (NEW, *(message("new", kind) for kind in kinds)):
        yield Occasion(preset, attempt(strategy, Memory(), one), Stored(), (one,))
    yield Occasion(preset, attempt(strategy, Memory(), NEW, NEW), Stored(), (NEW,))
    yield Occasion(preset, attempt(strategy, Memory(), NEW), Stored((FOREIGN,)), (NEW,))
    if strategy.group_limit > 1:
        yield Occasion(preset, attempt(strategy, Memory(), FIRST, NEW), Stored(), (FIRST, NEW))


def _later(preset: str, strategy: Outbox, maker: Outbox, lengths: tuple[int, ...]) -> Iterator[Occasion]:
    """Entities with a past that ended well: of one, two or three messages, so that entries left or are about to."""
    past = (FIRST, SECOND, THIRD)
    for length in lengths:
        memory, stored = process(maker, Stored(), *past[:length])
        for one in (NEW, past[0], past[length - 1]):
            yield Occasion(preset, attempt(strategy, Memory(), one), stored, (one,))
        yield Occasion(preset, attempt(strategy, memory, NEW), stored, (NEW,))
        if strategy.group_limit > 1:
            for one in (past[0], past[length - 1]):
                yield Occasion(preset, attempt(strategy, Memory(), one, NEW), stored, (one, NEW))
    others = process(STRATEGIES[COLOCATED], Stored(), FIRST)[1]
    for spoilt in (stored.with_entity(FOREIGN), stored.with_entity(DAMAGED), others):
        for one in (FIRST, NEW):
            yield Occasion(preset, attempt(strategy, Memory(), one), spoilt, (one,))


def _after_crashes(preset: str, strategy: Outbox, maker: Outbox) -> Iterator[Occasion]:
    """Entities that an attempt left right before it published."""
    for one in (FIRST, message("m1", "large")):
        busy = crashed(maker, process(maker, Stored(), SECOND, THIRD)[1], one, "published")
        stored = crashed(maker, Stored(), one, "published")
        for before in (stored, busy):
            yield Occasion(preset, attempt(strategy, Memory(), one), before, (one,))
            if strategy.group_limit > 1:
                yield Occasion(preset, attempt(strategy, Memory(), one, NEW), before, (one, NEW))
        for number in range(WIDEST):
            yield Occasion(preset, attempt(strategy, Memory(), NEW), stored, (one, NEW))
            _, stored = process(maker, stored, message(f"later-{number}"))
