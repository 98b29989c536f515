"""The zoo of opened requests: what could lose one, or its answer, or leave its document behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.library import KeepAnswers, Written
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import judge as looking
from exactlyonce.protocols.outbox import protocol as owed
from tests.model.zoo import Broken
from verification.scenarios.opened import SMALL
from verification.twins.alterations import answers, replaced, unasked
from verification.twins.modules import around
from verification.world.scenario import Scenario

WORLDS = {scenario.name.removeprefix("opened: "): scenario for scenario in SMALL}
ONE = WORLDS["stale reads"]
KEPT = Written("0:-1#0")
ANSWER, LOST, GARBAGE, TWICE = "one_answer", "nothing_lost", "no_garbage", "at_most_one_state_change"


def _kept_all_the_same(reply: Any, *_: Any) -> Any:
    return reply if isinstance(reply, Written) else KEPT


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "opened: an older view of the document will do",
        (around(judging.is_read_too_early, replaced(lambda *_: False)),),
        ONE,
        ANSWER,
    ),
    Broken(
        "opened: looked in any view",
        (around(looking.first_look, lambda look: lambda *given: replace(look(*given), token=None)),),
        ONE,
        LOST,
    ),
    Broken("opened: the answer is not kept", (around(owed._keep_answers, unasked(KeepAnswers, KEPT)),), ONE, ANSWER),
    Broken(
        "opened: an unknown keep is taken for done",
        (around(owed._keep_answers, answers(KeepAnswers, _kept_all_the_same)),),
        ONE,
        ANSWER,
    ),
)

WORLDS_THAT_FALL: tuple[Broken[Scenario], ...] = (
    Broken(
        "opened: the document goes, like a message's token", (), ONE, LOST, chores=(("kept", lambda _there, _written: None),)
    ),
    Broken(
        "opened: the answer is written whether or not the request is there", (), ONE, GARBAGE,
        chores=(("kept", lambda _there, written: written),),
    ),
)  # fmt: skip
"""What is broken is around the strategy, which stays as it ships."""
