"""The zoo of requests: what a client could be told that is not the committed answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.attempt import Finished
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, SaveEntity
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.records.ledger import by_hash
from tests.model.careless import COMMIT, OWED_NOT_PUBLISHED, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.scenarios.requests import SMALL
from verification.twins.alterations import ending, replaced, unasked
from verification.twins.modules import around
from verification.world.scenario import Scenario

WORLDS = {scenario.name.removeprefix("requests: "): scenario for scenario in SMALL}
ONE = WORLDS["lost replies"]
LEAVING = WORLDS["marks leave"]
BODIES = WORLDS["two bodies under one key"]
TOGETHER = WORLDS["two bodies in one commit"]
ANSWER, LOST, TWICE = "one_answer", "nothing_lost", "at_most_one_state_change"


def _answered_by_the_loser(
    reply: Any, _save: Any, _self: Any, _work: Any, view: Any, draft: Any, *_: Any
) -> Finished | None:
    if not isinstance(reply, Conflict):
        return None
    return Finished(view.memory, draft.processed)


def _of_marks_here(copies: Any, ledger: Any) -> tuple[Any, ...]:
    """Only of messages whose mark is in the ledger answers are looked for."""
    marks = by_hash(ledger.marks)
    return tuple(item for item in _LACKING(copies, ledger) if item.hash in marks)


_LACKING = judging._lacking_answers
PUBLISHED_UNASKED = around(outbox.pay, unasked(Publish, PUBLISHED))

TWINS: tuple[Broken[Scenario], ...] = (
    Broken("requests: answered before the outputs are published", (PUBLISHED_UNASKED,), ONE, LOST),
    Broken("requests: a duplicate is answered before it is published", (OWED_NOT_PUBLISHED,), ONE, LOST),
    Broken("requests: a lost save is answered", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), ONE, "no_ghost_output"),
    Broken("requests: the loser answers", (around(COMMIT, ending(SaveEntity, _answered_by_the_loser)),), BODIES, LOST),
    Broken("requests: pages are not looked at", (around(judging.may_have_left, replaced(lambda *_: False)),), LEAVING, TWICE),
    Broken(
        "requests: answers that have left are looked for where a mark is here",
        (around(judging._lacking_answers, replaced(_of_marks_here)),),
        LEAVING,
        "no_failure",
    ),
    Broken(
        "requests: a page without its answers",
        (around(drafting.leaving, lambda leaving: lambda *a: (made := leaving(*a)) and replace(made, answers=())),),
        LEAVING,
        "no_failure",
    ),
)  # fmt: skip
