"""The zoo of requests: what a client could be told that is not the committed answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.attempt import Before, Finished
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.library import LoadProcessed
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.protocols.outbox import answers as answering
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.steps.answers import answers_in
from exactlyonce.records.library import ProcessedRecord
from tests.model.careless import COMMIT, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.scenarios.requests import SMALL
from verification.twins.alterations import asks, comes_to, ending, unasked
from verification.twins.modules import around
from verification.world.scenario import AT, Scenario

WORLDS = {scenario.name.removeprefix("requests: "): scenario for scenario in SMALL}
ONE = WORLDS["lost replies"]
TWO = WORLDS["answers leave with their entries"]
BODIES = WORLDS["two bodies under one key"]
TOGETHER = WORLDS["two bodies in one commit"]
APART = WORLDS["a large answer leaves with the next commit"]
ANSWER, LOST, TWICE = "one_answer", "nothing_lost", "at_most_one_state_change"


def _answered_by_the_loser(reply: Any, _save: Any, _self: Any, work: Any, view: Any, draft: Any) -> Finished | None:
    if not isinstance(reply, Conflict):
        return None
    del work
    return Finished(view.memory, draft.processed, answers=answers_in(draft.entries))


def _recomputed(result: Any, _self: Any, work: Any, messages: Any, view: Any) -> Any:
    """What is known is answered as if it came now."""
    if not isinstance(result, Finished):
        return result
    fresh = {one.key: one.envelope for one in messages.messages if one.key not in result.processed}
    answers = (
        (
            key,
            work.handle(Before(view.body, AT, "", view.ledger.sequences), fresh[key]).answer
            if key in fresh
            else answer,
        )
        for key, answer in result.answers
    )
    return replace(result, answers=tuple(answers))


def _without_answers(records_of: Callable[..., Any]) -> Callable[..., Any]:
    def twin(*arguments: Any) -> tuple[Any, ...]:
        records = records_of(*arguments)
        return tuple(replace(one, answer=None) if isinstance(one, ProcessedRecord) else one for one in records)

    return twin


def _of_small_ones(records_of: Callable[..., Any]) -> Callable[..., Any]:
    def twin(*arguments: Any) -> tuple[Any, ...]:
        records = records_of(*arguments)
        return tuple(
            one for one in records if not (isinstance(one, ProcessedRecord) and one.answer and one.answer.is_large)
        )

    return twin


def _not_waited_for(looked: Any, _entity: Any, _arrived: Any, view: Any, _token: Any) -> Any:
    """A record that cannot be read is taken for one without an answer."""
    return looked if hasattr(looked, "ledger") else view


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "requests: answered before the outputs are published", (around(COMMIT, unasked(Publish, PUBLISHED)),), ONE, LOST
    ),
    Broken(
        "requests: a duplicate is answered before it is published", (Mutation("outbox: hits not published"),), ONE, LOST
    ),
    Broken("requests: a lost save is answered", (UNKNOWN_SAVE_TAKEN_FOR_DONE,), ONE),
    Broken("requests: the loser answers", (around(COMMIT, ending(SaveEntity, _answered_by_the_loser)),), BODIES),
    Broken("requests: a retry is answered anew", (around(Outbox._process, comes_to(_recomputed)),), TWO, ANSWER),
    Broken("requests: a record without its answer", (around(drafting.records_of, _without_answers),), TWO, ANSWER),
    Broken(
        "requests: a large answer leaves without its record",
        (around(drafting.records_of, _of_small_ones),),
        APART,
        TWICE,
    ),
    Broken(
        "requests: a record is read in any view",
        (
            around(answering.with_answers, asks(LoadProcessed, lambda load, *_: replace(load, token=None))),
            around(answering.with_answers, comes_to(_not_waited_for)),
        ),
        TWO,
        ANSWER,
    ),
    Broken(
        "requests: an entry without its answer",
        (
            around(
                drafting._entry, lambda entry: lambda *a, **b: (made := entry(*a, **b)) and replace(made, answer=None)
            ),
        ),
        ONE,
    ),
    Broken("requests: the records are not looked at", (Mutation("outbox: records not looked at"),), TWO, TWICE),
    Broken("requests: looked without the token", (Mutation("outbox: stale find accepted"),), TWO, TWICE),
)
