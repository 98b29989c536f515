"""More of the zoo: what can go wrong with deliveries that come again, and with parked messages that are sent again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.effect import Begin
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import OpenNumbers, Unpark
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.steps import park as parking
from verification.mutants.named import Mutation, Part, twin_of_parts
from verification.scenarios.deliveries import SMALL
from verification.twins.alterations import answers, deferred
from verification.twins.modules import around
from verification.world.scenario import Scenario

WORLDS = {scenario.name: scenario for scenario in SMALL}
GIVEN_BACK = WORLDS["a delivery is given back"]
GROUP = WORLDS["a group gives a delivery back"]
COLOCATED = WORLDS["co-located: a group gives a delivery back"]
SENT_AGAIN = WORLDS["a parked message is sent again"]


@dataclass(frozen=True, slots=True)
class BrokenDelivery:
    """A broken world or chore, a scenario in which it shows, and the property that falls there."""

    name: str
    scenario: Scenario
    twin: Callable[[Scenario], Scenario]
    falls: str

    def scenario_with_twin(self) -> Scenario:
        return replace(self.twin(self.scenario), name=f"{self.scenario.name}, {self.name}")


def oblivious(scenario: Scenario) -> Scenario:
    return replace(scenario, oblivious=True)


def lenient(scenario: Scenario) -> Scenario:
    return replace(scenario, lenient=True)


def twin(*parts: Part) -> Callable[[Scenario], Scenario]:
    return lambda scenario: twin_of_parts(parts).within(scenario)


def named_all_the_same(begun: Any, *_: Any) -> Any:
    return replace(begun, transactions=tuple(tx or "own" for tx in begun.transactions))


HANDLING_ALL = twin(
    around(Outbox.attempt, answers(OpenNumbers, named_all_the_same)),
    around(Colocated.attempt, answers(Begin, named_all_the_same)),
)

UNPROCESSED = "parked_is_unprocessed"
BROKEN_DELIVERIES: tuple[BrokenDelivery, ...] = (
    *(
        BrokenDelivery("a driver that forgets what was given back", WORLDS[name], oblivious, UNPROCESSED)
        for name in WORLDS
        if "gives a delivery back" in name or name == GIVEN_BACK.name
    ),
    BrokenDelivery("a message without a transaction is handled", GIVEN_BACK, HANDLING_ALL, UNPROCESSED),
    BrokenDelivery("a message without a transaction is handled", COLOCATED, HANDLING_ALL, UNPROCESSED),
    *(
        BrokenDelivery("a batch that processes what it gave up", WORLDS[name], lenient, UNPROCESSED)
        for name in WORLDS
        if "batch" in name
    ),
    BrokenDelivery(
        "a requeue that deletes before it sends",
        SENT_AGAIN,
        twin(around(parking.requeue, deferred(Publish, PUBLISHED, until=Unpark))),
        "nothing_lost",
    ),
    BrokenDelivery(
        "a requeue that deletes though sending failed",
        SENT_AGAIN,
        twin(around(parking.requeue, answers(Publish, lambda *_: PUBLISHED))),
        "nothing_lost",
    ),
    BrokenDelivery(
        "a requeue that deletes what was parked anew",
        SENT_AGAIN,
        twin(Mutation("a requeue that deletes what was parked anew")),
        "nothing_lost",
    ),
)
