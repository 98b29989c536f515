"""More of the zoo: what can go wrong in one partition when time passes if one guard is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce.attempt import Again, Work, never
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.errors import TooOldToJudge
from exactlyonce.protocols.stream import protocol as version_stream
from tests.model.broken_memory import LOST, TWICE, DeletedAtOnce, JudgedAtOnce
from tests.model.zoo import Broken
from verification.scenarios.companions_ages import SMALL
from verification.scenarios.outbox_ages import changing
from verification.twins.alterations import called, comes_to, unasked
from verification.twins.modules import Patch, around
from verification.world.scenario import Scenario

WORLDS = {scenario.name: scenario for scenario in SMALL}
RECORDS = WORLDS["co-located: records go with age"]
RECORDS_IN_ANY_VIEW = WORLDS["co-located: records go with age, any view"]
OWED = WORLDS["co-located: what is owed grows too old"]
ENTRIES = WORLDS["stream: entries go with age"]
ENTRIES_IN_ANY_VIEW = WORLDS["stream: entries go with age, any view"]
WAY_BACK = WORLDS["stream: a way back goes with age"]
EVENTS = WORLDS["stream: events go with age"]
AGAIN = WORLDS["stream: what is computed again is too old"]
GONE, JUDGED = "raised DamagedDocument", "no_failure"


def never_refused(work: Work, *rest: Any) -> tuple[Any, ...]:
    """No duplicate is refused, whatever is gone."""
    return (replace(work, refusal=never), *rest)


def refused_together(failed: Any, _work: Work, messages: dict[str, Any], *_: Any) -> Any:
    """With one duplicate that is too old all messages of the attempt are refused."""
    errors = (
        () if isinstance(failed, Again) else tuple(error for _, error in failed if isinstance(error, TooOldToJudge))
    )
    return tuple((message, errors[0]) for message in messages) if errors else failed


def asked_first(handled_again: Callable[..., Step[Any]]) -> Callable[..., Step[Any]]:
    """The time is asked for before the entries are read."""

    def twin(*arguments: Any) -> Step[Any]:
        begun = yield from Begin()
        result = yield from unasked(Begin, begun)(handled_again)(*arguments)
        return result

    return twin


def aged(
    name: str,
    scenario: Scenario,
    falls: str,
    steps: int | None = None,
    ages: tuple[tuple[str, Any], ...] = (),
    *,
    patches: tuple[Patch, ...] = (),
) -> Broken[Scenario]:
    """A twin of the clock, or of what ships where a clock moves."""
    return Broken(name, patches, scenario, falls, steps, ages=ages)


REFUSES_NONE = (around(version_stream.handled_again, called(never_refused)),)
REFUSES_ALL = (around(version_stream.handled_again, comes_to(refused_together)),)
ASKED_FIRST = (around(version_stream.handled_again, asked_first),)

BROKEN_AGES_OF_COMPANIONS: tuple[Broken[Scenario], ...] = (
    aged("nobody judges, and records go", RECORDS, TWICE, 15, (("judges", False),)),
    aged("nobody judges, and entries go", ENTRIES, TWICE, 15, (("judges", False),)),
    aged("records go by a shorter retention than the judge's", RECORDS, TWICE, 14, (("cleaned", 3),)),
    aged("entries go by a shorter retention than the judge's", ENTRIES, TWICE, 14, (("cleaned", 3),)),
    aged("the present is behind where a sender is a day ahead", ENTRIES, TWICE, 15, (("behind", 1),)),
    aged("a batch lives as long as a record", RECORDS_IN_ANY_VIEW, TWICE, 15, (("prompt", False),)),
    aged("a batch lives as long as an entry", ENTRIES_IN_ANY_VIEW, TWICE, 14, (("prompt", False),)),
    aged(
        "a shorter retention is deleted by at once",
        WORLDS["co-located: a retention is shortened"],
        TWICE,
        15,
        (("lifetimes", changing(DeletedAtOnce, 2, 4).lifetimes),),
    ),
    aged(
        "a longer retention is judged by at once",
        WORLDS["co-located: a retention is lengthened"],
        TWICE,
        15,
        (("lifetimes", changing(JudgedAtOnce, 4, 2).lifetimes),),
    ),
    aged("what is too old is swept all the same", OWED, LOST, 8, (("limits", False),)),
    aged("what is computed again is published at any age", AGAIN, LOST, 10, (("limits", False),)),
    aged("no duplicate is refused where its way back is gone", WAY_BACK, GONE, 15, patches=REFUSES_NONE),
    aged("no duplicate is refused where events are gone", EVENTS, GONE, 19, patches=REFUSES_NONE),
    aged("a duplicate takes its group along", WAY_BACK, JUDGED, 17, patches=REFUSES_ALL),
    aged("the time is asked for before the entries", WAY_BACK, GONE, 15, patches=ASKED_FIRST),
)
