"""More of the zoo: what can go wrong with sweeper, settler and clean-up if one guard is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, SaveEntity
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.steps import load as loading
from tests.model.careless import SAVED, taken_for
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.scenarios.kept import SMALL
from verification.twins.alterations import answers, comes_to, deferred, unasked
from verification.twins.modules import around
from verification.world.scenario import Budget, Scenario

SWEPT = Scenario("swept", (1, 1), budget=Budget(crashes=1, unknown=1, sweeps=1))
GIVEN_UP = Scenario("given up", (1,), budget=Budget(crashes=1, unknown=1, stale=1, poisoned=1))
CLEANED = next(item for item in SMALL if item.name == "kept: cleaned up meanwhile")


def fenced_at_any_rate(fenced: Any, _entity: Any, view: Any, _absent: Any) -> Any:
    del fenced
    return replace(view.memory, saved=None)


BROKEN_CHORES: tuple[Broken[Scenario], ...] = (
    Broken(
        "a sweeper that drops and does not publish",
        (around(Outbox.sweep, unasked(Publish, PUBLISHED)),),
        SWEPT,
        "nothing_lost",
    ),
    Broken("a sweeper without If-Match", (Mutation("a sweeper without If-Match"),), SWEPT, "serial_execution"),
    Broken(
        "a sweeper that drops though publishing failed",
        (around(Outbox.sweep, answers(Publish, lambda *_: PUBLISHED)),),
        SWEPT,
        "nothing_lost",
    ),
    Broken("a settler without a fence", (Mutation("a settler without a fence"),), GIVEN_UP, "parked_is_unprocessed"),
    Broken(
        "a settler that takes an unknown fence for one",
        (around(loading.fence, comes_to(fenced_at_any_rate)),),
        GIVEN_UP,
        "parked_is_unprocessed",
    ),
    Broken(
        "a settler that does not publish what its message owes",
        (Mutation("a settler that does not publish what its message owes"),),
        replace(GIVEN_UP, budget=Budget(crashes=1, poisoned=1)),
        "nothing_lost",
    ),
    Broken(
        "a settler that looks for no page",
        (Mutation("a settler that looks for no page"),),
        replace(GIVEN_UP, copies=(1, 1), room=0, strategy=None, budget=Budget(crashes=1, sweeps=1, poisoned=1)),
        "parked_is_unprocessed",
    ),
)

NEVER_RELEASED: tuple[Broken[Scenario], ...] = (
    Broken("clean-up without a fence", (Mutation("clean-up without a fence"),), CLEANED),
    Broken(
        "clean-up with the fence after the deletion",
        (around(retention.clean_staged, deferred(SaveEntity, SAVED, until=DeleteStaged)),),
        CLEANED,
    ),
    Broken(
        "clean-up that takes an unknown fence for one",
        (around(retention.clean_staged, answers(SaveEntity, taken_for(SAVED, Conflict, NoAnswer))),),
        CLEANED,
    ),
    Broken(
        "clean-up without a fence where the entity is absent",
        (around(retention.clean_staged, unasked(SaveEntity, SAVED, lambda save, *_: save.etag is None)),),
        CLEANED,
    ),
    Broken("clean-up of what is kept", (Mutation("clean-up of what is kept"),), CLEANED),
)
"""Nothing falls, for nothing wrong is sent; but a message stays kept for ever."""
