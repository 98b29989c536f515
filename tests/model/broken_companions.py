"""More of the zoo: what can go wrong with the protocols of one partition if one guard is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.companions import ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.steps import batch as batching
from tests.model.careless import SAVED, taken_for
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import answers, asks, deferred, first, unasked
from verification.twins.modules import around
from verification.world.scenario import UNLIMITED, Budget, Message, Scenario, scenario_of

BrokenCompanions = Broken[Scenario]


def scenario(base: Scenario, *messages: Message, **budget: int) -> Scenario:
    """The scenario with other messages and another budget."""
    return scenario_of(base.name, messages, base.strategy, budget=Budget(**budget), apart=True)


ONE, TWO = Message(), Message(2)
KEEPS = Message(2, "keeps")
STALE = UNLIMITED

COLOCATED = scenario_of("co-located", (), Colocated())
COMMIT = Colocated._commit


def upserted(save: SaveBatch, *_: Any) -> SaveBatch:
    """The batch, writing over whatever is there."""
    return replace(
        save, create=(), replace=tuple((item, "*") for item in (*save.create, *(old for old, _ in save.replace)))
    )


BROKEN_COLOCATED: tuple[BrokenCompanions, ...] = (
    Broken(
        "published before the commit",
        (
            around(
                COMMIT, first(lambda _self, _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None)
            ),
        ),
        scenario(COLOCATED, ONE),
        "no_ghost_output",
    ),
    Broken(
        "a record created by an upsert",
        (around(COMMIT, asks(SaveBatch, upserted)),),
        scenario(COLOCATED, TWO, stale=1),
        "at_most_one_state_change",
    ),
    Broken(
        "saved without a condition",
        (Mutation("co-located: saved without a condition"),),
        scenario(COLOCATED, ONE, ONE),
        "serial_execution",
    ),
    Broken(
        "outputs dropped before they are published",
        (around(COMMIT, deferred(Publish, PUBLISHED, until=ReplaceCompanions)),),
        scenario(COLOCATED, ONE, crashes=1),
        "nothing_lost",
    ),
    Broken(
        "owed outputs dropped before they are published",
        (around(batching.publish_records, deferred(Publish, PUBLISHED, until=ReplaceCompanions)),),
        scenario(COLOCATED, ONE, crashes=2),
        "nothing_lost",
    ),
    Broken(
        "unknown publish taken as done",
        (Mutation("co-located: unknown publish taken as done"),),
        scenario(COLOCATED, ONE, unknown=1),
        "nothing_lost",
    ),
    Broken(
        "conflict taken as one's own success",
        (around(COMMIT, answers(SaveBatch, taken_for(SAVED, Conflict, NoAnswer))),),
        scenario(COLOCATED, ONE, ONE),
        "no_ghost_output",
    ),
    Broken(
        "a sweeper that drops without publishing",
        (around(batching.sweep_records, unasked(Publish, PUBLISHED)),),
        scenario(COLOCATED, ONE, crashes=1, sweeps=1),
        "nothing_lost",
    ),
)
