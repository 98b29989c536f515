"""The zoo of opened requests: what could carry one out twice, lose it, or leave its document behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.attempt import Again
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import Written
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.effects.requests import KeepAnswers, LoadRequests
from exactlyonce.protocols.outbox import opened, owed
from tests.model.zoo import Broken
from verification.scenarios.opened import SMALL
from verification.twins.alterations import answers, asks, deferred, replaced, unasked
from verification.twins.modules import around, constant
from verification.world.scenario import Chores, Scenario

WORLDS = {scenario.name.removeprefix("opened: "): scenario for scenario in SMALL}
ONE = WORLDS["stale reads"]
KEPT = Written("0:-1#0")
TWICE, LOST, GARBAGE = "at_most_one_state_change", "nothing_lost", "no_garbage"


def _in_any_view(load: LoadRequests, *_: Any) -> LoadRequests:
    return replace(load, token=None)


def _kept_all_the_same(reply: Any, *_: Any) -> Any:
    return reply if isinstance(reply, Written) else KEPT


def _kept_first(entity: Any, draft: Any, memory: Any) -> Step[Any]:
    kept = yield from opened.keep_answers(entity, draft.entries, memory)
    if draft.outputs and (yield from Publish(draft.outputs)) is not PUBLISHED:
        return Again(memory, "the outputs could not be published")
    return kept


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "opened: looked in any view",
        (
            around(opened.first_look, lambda shipped: lambda *given: _in_any_view(shipped(*given))),
            around(opened.look_for_requests, asks(LoadRequests, _in_any_view)),
        ),
        ONE,
        LOST,
    ),
    Broken(
        "opened: looked without the ledger's token", (constant(opened, "at_or_after", lambda *_: True),), ONE, TWICE
    ),
    Broken(
        "opened: kept after the entry has left",
        (around(Outbox.sweep, deferred(KeepAnswers, KEPT, SaveEntity)),),
        ONE,
        TWICE,
    ),
    Broken("opened: the answer is not kept", (around(opened.keep_answers, unasked(KeepAnswers, KEPT)),), ONE, TWICE),
    Broken(
        "opened: an unknown keep is taken for done",
        (around(opened.keep_answers, answers(KeepAnswers, _kept_all_the_same)),),
        ONE,
        TWICE,
    ),
    Broken(
        "opened: the ledger does not get the token of the keep",
        (around(opened.relied_on, replaced(lambda _ledger, _memory, token: token)),),
        ONE,
        TWICE,
    ),
    Broken("opened: kept before it is published", (around(owed.pay, replaced(_kept_first)),), ONE, LOST),
)

WORLDS_THAT_FALL: tuple[Broken[Scenario], ...] = (
    Broken("opened: under the caller's id", (), replace(ONE, reopened=True), TWICE),
    Broken(
        "opened: the document goes, like a message's token",
        (),
        replace(ONE, chores=Chores(kept=lambda _there, _written: None)),
        LOST,
    ),
    Broken(
        "opened: the answer is written whether or not the request is there",
        (),
        replace(ONE, chores=Chores(kept=lambda _there, written: written)),
        GARBAGE,
    ),
)
"""What is broken is around the strategy, which stays as it ships."""
