"""Scenarios as data: what there is, and what may go wrong how often."""

from __future__ import annotations

from dataclasses import dataclass, field

from exactlyonce import Outbox


@dataclass(frozen=True, slots=True)
class Budget:
    """How often each fault may happen, over all workers.

    Attributes:
        crashes: of a worker, between any two effects, or before or after any.
        unknown: writes and sends without an answer; applied, not applied, or, for writes, applied at any later time.
        repeated: writes that were applied and are reported as a conflict, because the client library sent them twice.
        stale: reads of the entity that return an older version. Reads of the library's partition may be as old as their
            token allows, without a budget.
    """

    crashes: int = 0
    unknown: int = 0
    repeated: int = 0
    stale: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world to explore completely.

    Attributes:
        name: for reports.
        copies: for each message how often it is delivered.
        strategy: the outbox preset, or a broken twin of it.
        workers: processes that take deliveries.
        group: most messages that one attempt takes.
        budget: of faults.
        delayed: whether an unanswered write may take effect later.
        marking: whether idle workers mark what they published.
        tokens: whether processes remember session tokens between attempts. Without, every view that a token would allow is
            allowed, and others: so all that can go wrong with tokens can go wrong without.
        deletes: whether the last message deletes the entity.
        witnesses: what has to be seen somewhere, or the scenario shows less than it says.
    """

    name: str
    copies: tuple[int, ...]
    strategy: Outbox = field(default_factory=Outbox)
    workers: int = 2
    group: int = 1
    budget: Budget = field(default_factory=Budget)
    delayed: bool = True
    marking: bool = False
    tokens: bool = False
    deletes: bool = False
    witnesses: frozenset[str] = frozenset()
