"""More of the zoo: what can go wrong when time passes if one guard is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import forgotten
from exactlyonce.records.ledger import Entry
from exactlyonce.values.lifetimes import Retention
from verification.mutants.twin import Twin
from verification.scenarios.outbox_ages import SMALL, changing, trimming
from verification.twins.modules import Patch, around
from verification.world.scenario import Scenario

WORLDS = {scenario.name: scenario for scenario in SMALL}
AHEAD = WORLDS["records go with age, a sender's clock a day ahead"]
BEHIND = WORLDS["records go with age, the present half a day behind"]
ENTRIES = WORLDS["entries go with age"]
OWING = WORLDS["entries that owe stay"]
OVERDUE = WORLDS["what is owed grows too old"]
BEGUN = WORLDS["a channel is new, and began long ago"]
TWICE, LOST = "at_most_one_state_change", "nothing_lost"


class DeletedAtOnce(Retention):
    """One by which records are deleted though somebody may still judge by what it was."""

    def kept(self, now: datetime) -> timedelta:
        return self.current


class JudgedAtOnce(Retention):
    """One by which messages are judged though their records may still be deleted by the former one."""

    def judged(self, now: datetime) -> timedelta:
        return self.current


@dataclass(frozen=True, slots=True)
class BrokenAges:
    """A broken world or protocol, a scenario in which it shows, the property that falls there, and after how many steps."""

    name: str
    scenario: Scenario
    falls: str
    steps: int | None = None
    ages: tuple[tuple[str, Any], ...] = ()
    patches: tuple[Patch, ...] = ()

    def scenario_with_twin(self) -> Scenario:
        shipped = self.scenario
        assert shipped.ages is not None
        twin = replace(shipped, name=self.name, ages=replace(shipped.ages, **dict(self.ages)))
        return Twin({}, self.patches).within(twin)


def trimmed_though_staged(trimmed: Callable[..., tuple[Entry, ...]]) -> Callable[..., tuple[Entry, ...]]:
    """An entry that owes staged outputs is trimmed like one that owes nothing."""

    def twin(entries: tuple[Entry, ...], *now: Any) -> tuple[Entry, ...]:
        owed = {entry.tx: entry.owed for entry in entries}
        taken = tuple(replace(entry, owed=None) if entry.owed == "staged" else entry for entry in entries)
        return tuple(replace(entry, owed=owed[entry.tx]) for entry in trimmed(taken, *now))

    return twin


def at_half_the_age(required: Callable[..., None]) -> Callable[..., None]:
    """The first message of a channel is refused though it could not have been forgotten."""
    return lambda channel, forget_after, *rest: required(channel, forget_after / 2, *rest)


BROKEN_AGES: tuple[BrokenAges, ...] = (
    BrokenAges("nobody judges, and records go", AHEAD, TWICE, ages=(("judges", False),)),
    BrokenAges("nobody judges, and entries go", ENTRIES, TWICE, ages=(("judges", False),)),
    BrokenAges("the present is behind where a sender is a day ahead", AHEAD, TWICE, ages=(("behind", 1),)),
    BrokenAges("the present is a day and a half behind", BEHIND, TWICE, ages=(("behind", 3),)),
    BrokenAges("clean-up goes by a shorter retention than the judge", AHEAD, TWICE, ages=(("cleaned", 3),)),
    BrokenAges(
        "ledgers are trimmed by a shorter retention than the judge's",
        ENTRIES,
        TWICE,
        ages=(("trimmed", 2), ("times", (2, 5, 5))),
    ),
    BrokenAges(
        "trimming drops an entry that owes staged outputs",
        OWING,
        LOST,
        patches=(around(drafting._trimmed, trimmed_though_staged),),
    ),
    BrokenAges(
        "a shorter retention is deleted by at once",
        WORLDS["a retention is shortened"],
        TWICE,
        ages=(("lifetimes", changing(DeletedAtOnce, 2, 4).lifetimes),),
    ),
    BrokenAges(
        "a longer retention is judged by at once",
        WORLDS["a retention is lengthened"],
        TWICE,
        ages=(("lifetimes", changing(JudgedAtOnce, 4, 2).lifetimes),),
    ),
    BrokenAges(
        "a shorter retention is trimmed by at once",
        WORLDS["entries go while a retention is shortened"],
        TWICE,
        ages=(("lifetimes", trimming(DeletedAtOnce, 2, 4).lifetimes),),
    ),
    BrokenAges(
        "a longer retention is judged by at once, and entries have gone",
        WORLDS["entries go while a retention is lengthened"],
        TWICE,
        ages=(("lifetimes", trimming(JudgedAtOnce, 4, 2).lifetimes),),
    ),
    BrokenAges("what is too old is published all the same", OVERDUE, LOST, ages=(("limits", False),)),
    BrokenAges(
        "a channel is refused before it could be forgotten",
        BEGUN,
        "no_failure",
        patches=(around(forgotten.require_time, at_half_the_age),),
    ),
)
