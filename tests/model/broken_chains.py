"""The zoo of chains: numbers that are not given out by the commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.publish import Publish
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import owed
from exactlyonce.records.outputs import Output
from tests.model.zoo import Broken
from verification.scenarios.chains import chain
from verification.twins.alterations import asks
from verification.twins.modules import around
from verification.world.scenario import Budget, Scenario

CRASH: Scenario = chain("a chain", (1, 1), workers=1, budget=Budget(crashes=1))


def _numbered_now(publish: Publish, _entity: Any, _entries: Any, view: Any) -> Publish:
    """What is owed, with the number that was given out last."""
    last = view.ledger.sequences[0].last if view.ledger.sequences else 1
    return replace(publish, outputs=tuple(_with_number(one, last) for one in publish.outputs))


def _with_number(output: Output, number: int) -> Output:
    return output if output.place is None else replace(output, place=replace(output.place, number=number))


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "chain: what is owed is numbered when it is published",
        (around(owed.publish_owed, asks(Publish, _numbered_now)),),
        CRASH,
        "no_failure",
    ),
    Broken(
        "chain: the numbers given out are not committed",
        (around(drafting.next_ledger, lambda shipped: lambda *known: replace(shipped(*known), sequences=())),),
        CRASH,
        "no_failure",
    ),
)
