"""Retention in one partition: what a clean-up job may list as old.

Where no clock moves, old is what was written longer ago than anything lasts: no copy of its message can still arrive, no write
of an attempt at it can still take effect. A document of a number may go while copies still arrive, but no worker
is at work that saw it held. What owes or is held may be of any age.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from exactlyonce.attempt import Memory
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from verification.world.companions_handler import ENTITY
from verification.world.scenario import TICK, Scenario
from verification.world.store import Entity, written_at

Companions = Mapping[str, tuple[Companion, str]]


def lists(partition: Entity, past: frozenset[str], *, busy: bool) -> Iterator[tuple[str, ...]]:
    """Every list of candidates that a job may come with: id and ETag of each, one after the other.

    Args:
        partition: as it is.
        past: keys of messages of which no copy may arrive any more, and no write take effect.
        busy: whether anybody is at work.
    """
    yield from _beginnings(partition.now, past)
    for id, (one, etag) in partition.now.items():
        record = isinstance(one, ColocatedRecord) and (one.owed is not None or one.message in past)
        if record or (isinstance(one, NumberedMessage) and (one.held is not None or not busy)):
            yield id, etag


def aged(partition: Entity, kept: timedelta, now: int) -> tuple[str, ...]:
    """The list of all that is old by a clock: id and ETag of each, oldest first.

    Args:
        partition: as it is.
        kept: age from which companions may go.
        now: the present, in ticks.
    """
    companions = sorted((written_at(etag), id, etag) for id, (_, etag) in partition.now.items())
    return tuple(part for (_, tick), id, etag in companions if (now - tick) * TICK >= kept for part in (id, etag))


def _beginnings(companions: Companions, past: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Every beginning of a stream that may be old: what came before something old is old as well."""
    stream = {
        item.version: (item.message, id, etag)
        for id, (item, etag) in companions.items()
        if isinstance(item, StreamEntry)
    }
    listed: tuple[str, ...] = ()
    for _, (message, id, etag) in sorted(stream.items()):
        if message not in past:
            return
        listed = (*listed, id, etag)
        yield listed


def job(scenario: Scenario, listed: tuple[str, ...], memory: Memory) -> Step[Any]:
    """Clean up, some time after the candidates were listed."""
    candidates = tuple(zip(listed[::2], listed[1::2], strict=True))
    yield from LoadCompanions(ENTITY, listed[::2])
    cleaned = yield from scenario.strategy.clean(ENTITY, candidates, memory)
    return cleaned
