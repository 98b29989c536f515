"""The zoo of forgetting: what can go wrong where clean-up forgets channels, if one guard is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.effect import Begin, NoAnswer
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import DeleteChannels, FindChannels, FoundChannels
from exactlyonce.protocols.outbox import clean_channels as forgetting
from exactlyonce.protocols.outbox import forgotten, look
from tests.model.zoo import Broken
from verification.scenarios.numbers import EARLY_A, EARLY_B, EARLY_C, ONE_CHANNEL
from verification.twins.alterations import answers, instead, replaced
from verification.twins.modules import around
from verification.world.scenario import Budget, Scenario

FORGOTTEN: Scenario = Scenario(
    "forgetting two channels",
    (2, 1),
    ONE_CHANNEL,
    workers=1,
    places=((EARLY_A, 1), (EARLY_B, 1)),
    budget=Budget(crashes=1, forgettings=1),
)
GOING_ON: Scenario = replace(
    FORGOTTEN,
    name="forgetting while a channel goes on",
    copies=(2, 1, 1),
    places=((EARLY_A, 1), (EARLY_A, 2), (EARLY_B, 1)),
    budget=Budget(unknown=1, stale=1, forgettings=1),
)
GAP: Scenario = replace(
    FORGOTTEN,
    name="forgetting beside a channel with a gap",
    copies=(2, 1, 1),
    places=((EARLY_A, 2), (EARLY_B, 1), (EARLY_C, 1)),
    budget=Budget(crashes=1, forgettings=2),
)
GAP_THAT_CLOSES: Scenario = replace(
    FORGOTTEN,
    name="forgetting until a gap closes",
    copies=(2, 1, 1, 1),
    places=((EARLY_A, 1), (EARLY_A, 2), (EARLY_B, 1), (EARLY_C, 1)),
    budget=Budget(stale=1, forgettings=1),
)


def _deleting_before_the_save(save: Any, entity: Any, view: Any, plan: Any) -> Any:
    yield from DeleteChannels(entity, plan.documents)
    reply = yield from save
    return reply


def _of_this_turn(reply: Any, _find: Any, _entity: Any, _messages: Any, view: Any, *_: Any) -> Any:
    """All documents that were found, as if they were of the ledger's turn."""
    if isinstance(reply, NoAnswer):
        return reply
    turn = view.ledger.apart.turn
    return FoundChannels(tuple(replace(document, turn=turn) for document in reply.documents))


def _counted(begun: Any, _begin: Any, _entity: Any, view: Any, _plan: Any) -> Any:
    return replace(begun, transactions=(str(int(view.ledger.apart.turn or 0) + 1),))


def _unfenced(work: Any, view: Any, finished: Any, forgotten: Any) -> Any:
    del work, view, forgotten
    yield from ()
    return finished


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "forgetting: the mark is not compared",
        (around(forgotten.of_forgotten_channels, replaced(lambda _fresh, _view: ())),),
        FORGOTTEN,
        "at_most_one_state_change",
    ),
    Broken(
        "forgetting: documents are deleted before the mark is saved",
        (around(forgetting._forget, instead(SaveEntity, _deleting_before_the_save)),),
        FORGOTTEN,
        "at_most_one_state_change",
    ),
    Broken(
        "forgetting: refused without a fence",
        (around(forgotten.ended, replaced(_unfenced)),),
        GAP_THAT_CLOSES,
        "no_failure",
    ),
    Broken(
        "forgetting: documents of earlier turns count",
        (around(look.look_apart, answers(FindChannels, _of_this_turn)),),
        GOING_ON,
        "at_most_one_state_change",
    ),
    Broken(
        "forgetting: survivors are not written anew",
        (
            around(
                forgetting._planned,
                lambda shipped: lambda *known: (plan := shipped(*known)) and plan._replace(surviving=()),
            ),
        ),
        GAP,
        "no_failure",
    ),
    Broken(
        "forgetting: turns are counted",
        (around(forgetting._forget, answers(Begin, _counted)),),
        GAP,
        "no_failure",
    ),
)
