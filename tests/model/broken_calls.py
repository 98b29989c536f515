"""The zoo of calls: what could make an entity handle a reply twice, or never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.entity import SaveEntity
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import judge
from tests.model.careless import COMMIT, CONFLICT_TAKEN_FOR_A_COPY, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.scenarios.calls import FIRST, SMALL
from verification.twins.alterations import asks, called, replaced
from verification.twins.modules import around
from verification.world.scenario import Scenario

WORLDS = {scenario.name.removeprefix("calls: "): scenario for scenario in SMALL}
LOST, TWICE, REFUSED = "nothing_lost", "at_most_one_state_change", "no_failure"


def _only_its_own(work: Any, view: Any, draft: Any, *rest: Any) -> tuple[Any, ...]:
    """The ledger of a commit is made of the calls that it makes."""
    made = tuple(call for call in draft.calls if call not in view.ledger.calls)
    return (work, view, draft._replace(calls=made), *rest)


def _without_its_calls(added: Any) -> Any:
    return lambda draft, entity, arrival, handled, commit, *, calls: added(
        draft, entity, arrival, handled, commit, calls=tuple(call for call in calls if call not in handled.calls)
    )


NOT_REMOVED = around(judge.answered, replaced(lambda calls, _arrival: calls))
NEVER_BEHIND = around(judge.is_behind, replaced(lambda _arrival, _view: False))

TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "calls: a call is forgotten before its reply is handled",
        (around(drafting.next_ledger, called(_only_its_own)),),
        WORLDS["another message comes between"],
        REFUSED,
    ),
    Broken(
        "calls: the commit that calls does not write the call",
        (around(drafting._added, _without_its_calls),),
        WORLDS["lost replies"],
        REFUSED,
    ),
    Broken("calls: a handled reply is still awaited", (NOT_REMOVED,), WORLDS["another message comes between"], TWICE),
    Broken(
        "calls: a reply answers all calls",
        (around(judge.answered, replaced(lambda calls, arrival: () if arrival.reply else calls)),),
        WORLDS["two calls, answered in one commit"],
        REFUSED,
    ),
    Broken("calls: an old view shows a copy", (NEVER_BEHIND,), WORLDS["stale reads"], REFUSED),
    Broken(
        "calls: an old view shows a copy, in a group",
        (NEVER_BEHIND,),
        WORLDS["in groups with another message"],
        REFUSED,
    ),
    Broken("calls: an old view settles a reply", (NEVER_BEHIND,), WORLDS["given up"], REFUSED),
    Broken(
        "calls: what the copy of a reply owes is not published",
        (around(judge.judged, lambda shipped: lambda *known: replace(shipped(*known), copies=())),),
        WORLDS["lost replies"],
        LOST,
    ),
    Broken(
        "calls: saved without a condition",
        (around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag="*"))),),
        WORLDS["stale reads"],
        LOST,
    ),
    Broken("calls: a conflict is taken for a copy", (CONFLICT_TAKEN_FOR_A_COPY,), WORLDS["stale reads"], LOST),
    Broken(
        "calls: a lost save is taken for done",
        (UNKNOWN_SAVE_TAKEN_FOR_DONE,),
        WORLDS["lost replies"],
        "no_ghost_output",
    ),
)

AWAITED_FOR_EVER: Broken[Scenario] = Broken(
    "awaited for ever",
    (NOT_REMOVED,),
    Scenario("calls: one reply", (1, 0), WORLDS["lost replies"].strategy, workers=1, replies=(None, FIRST)),
)
"""Nothing falls, for no copy comes; but the work is never finished."""
