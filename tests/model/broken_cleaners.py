"""More of the zoo: what can go wrong with the clean-up of companions if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from exactlyonce.attempt import Again, Finished
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.protocols.steps import clean as cleaning
from tests.model.broken_companions import COLOCATED, ONE, STALE, TWO, BrokenCompanions, scenario
from tests.model.broken_resequencers import FIRST, FIRST_TWICE, READ_MODEL, SECOND, SECOND_TWICE
from tests.model.broken_streams import STREAM
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import asks, replaced
from verification.twins.modules import Patch, around


def judged(kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Whether companions of a kind may go is judged by other facts."""

    def wrapper(may_go: Callable[..., bool]) -> Callable[..., bool]:
        return lambda of, **facts: may_go(of, **(change(facts) if of == kind else facts))

    return around(cleaning.may_go, wrapper)


def last_entry(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Which entry is the last that may go is judged by other facts."""
    return around(cleaning.last_entry, lambda shipped: lambda newest, **facts: shipped(newest, **change(facts)))


def as_listed(entity: Any, candidates: Any, _ledger: Any, memory: Any) -> Step[Any]:
    found = yield from LoadCompanions(entity, tuple(id for id, _ in candidates))
    if isinstance(found, NoAnswer):
        return Again(memory, "the candidates for clean-up could not be read")
    yield from DeleteCompanions(entity, candidates)
    return Finished(memory)


CHANGED_SINCE = Mutation("clean-up that takes for old what was written since")
HELD_TOO = judged("numbered", lambda facts: {**facts, "unfinished": False})
ALL_NUMBERS = judged("numbered", lambda facts: {**facts, "last": facts["place"]})
WHATEVER_THE_ETAG = around(
    cleaning.clean_companions,
    asks(DeleteCompanions, lambda item, *_: replace(item, companions=tuple((id, "*") for id, _ in item.companions))),
)

EVENT_SOURCED = replace(scenario(STREAM, ONE, TWO, forgotten=1), sourced=True)
AT_WORK = replace(scenario(READ_MODEL, FIRST, SECOND_TWICE, forgotten=1), workers=3)

BROKEN_CLEANERS: tuple[BrokenCompanions, ...] = (
    Broken(
        "clean-up that deletes a record that owes",
        (judged("processed", lambda facts: {**facts, "unfinished": False}),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1),
        "at_most_one_state_change",
    ),
    Broken(
        "clean-up that takes the list at its word",
        (around(cleaning.clean_companions, replaced(as_listed)),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1),
        "at_most_one_state_change",
    ),
    Broken(
        "clean-up that takes a record for old that was written since",
        (CHANGED_SINCE,),
        scenario(COLOCATED, TWO, forgotten=1),
        "at_most_one_state_change",
    ),
    Broken(
        "clean-up that cuts an interval of events in the middle",
        (last_entry(lambda facts: {**facts, "event_sourced": False}),),
        EVENT_SOURCED,
        "raised DamagedDocument",
    ),
    Broken(
        "clean-up that takes a stream it does not see for one of ways back",
        (last_entry(lambda facts: {**facts, "snapshot_every": facts["snapshot_every"] or 1}),),
        replace(scenario(STREAM, ONE, TWO, forgotten=1, stale=STALE), sourced=True),
        "raised DamagedDocument",
    ),
    Broken(
        "clean-up that deletes held messages",
        (HELD_TOO, ALL_NUMBERS),
        scenario(READ_MODEL, FIRST, SECOND, forgotten=1),
        "nothing_lost: number 2 of web1 is said to be held",
    ),
)

HARMLESS_CLEANERS: Final[tuple[tuple[BrokenCompanions, str], ...]] = (
    (
        Broken(
            "clean-up that deletes whatever the ETag",
            (WHATEVER_THE_ETAG,),
            scenario(COLOCATED, TWO, crashes=1, unknown=1, forgotten=1),
        ),
        "What is finished with the ETag of the list stays so. The condition is for what comes after the retention.",
    ),
    (
        Broken("clean-up that takes a message for old that was released just now", (CHANGED_SINCE,), AT_WORK),
        "The fence of an attempt in an old view, which holds the message, finds that the read model has moved on.",
    ),
    (
        Broken(
            "clean-up that leaves what is held to the numbers",
            (HELD_TOO,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
        ),
        "What is held is not below the next number.",
    ),
    (
        Broken(
            "clean-up that leaves the numbers to what is held",
            (ALL_NUMBERS,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
        ),
        "What is not held is below the next number.",
    ),
)
"""Variant and reason."""
