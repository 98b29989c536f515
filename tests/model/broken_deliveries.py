"""More of the zoo: what can go wrong with deliveries that come again, and with parked messages that are sent again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from devtools.modelcheck.beside.scenarios import BesideScenario
from devtools.modelcheck.catalogue_deliveries import SMALL
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.twins import Change, broken_beside, broken_chores, broken_outbox

WORLDS = {scenario.name: scenario for scenario in SMALL}
GIVEN_BACK = WORLDS["a delivery is given back"]
GROUP = WORLDS["a group gives a delivery back"]
BESIDE = WORLDS["co-located: a group gives a delivery back"]
SENT_AGAIN = WORLDS["a parked message is sent again"]

HANDLED = Change(
    "        if tx is None:  # Its delivery was given back.\n            continue\n", '        tx = tx or "own"\n'
)
SENT = "    published = yield from Publish((Output(envelope.id, destination, envelope.to_json()),))\n"
DELETED = "    yield from DeleteParked(entity, message, found.etag)\n"


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


def handling_all(scenario: Scenario) -> Scenario:
    shipped = scenario.strategy
    if isinstance(scenario, BesideScenario):
        return replace(scenario, strategy=broken_beside("handled all the same", "colocated", HANDLED).Colocated())
    twin = broken_outbox("handled all the same", HANDLED)
    return replace(scenario, strategy=twin(shipped.window, shipped.inline_limit))


def requeuing(name: str, *changes: Change) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, chores=broken_chores(name, *changes))


UNPROCESSED = "parked_is_unprocessed"
BROKEN_DELIVERIES: tuple[BrokenDelivery, ...] = (
    *(
        BrokenDelivery("a driver that forgets what was given back", WORLDS[name], oblivious, UNPROCESSED)
        for name in WORLDS
        if "gives a delivery back" in name or name == GIVEN_BACK.name
    ),
    BrokenDelivery("a message without a transaction is handled", GIVEN_BACK, handling_all, UNPROCESSED),
    BrokenDelivery("a message without a transaction is handled", BESIDE, handling_all, UNPROCESSED),
    *(
        BrokenDelivery("a batch that processes what it gave up", WORLDS[name], lenient, UNPROCESSED)
        for name in WORLDS
        if "batch" in name
    ),
    BrokenDelivery(
        "a requeue that deletes before it sends",
        SENT_AGAIN,
        requeuing("deletes first", Change(SENT, DELETED + SENT)),
        "nothing_lost",
    ),
    BrokenDelivery(
        "a requeue that deletes though sending failed",
        SENT_AGAIN,
        requeuing(
            "deletes at any rate",
            Change(
                "    if published is not PUBLISHED:\n"
                '        return Again(memory, "the message could not be sent")\n' + DELETED,
                DELETED + '    if published is not PUBLISHED:\n        return Again(memory, "not sent")\n',
            ),
        ),
        "nothing_lost",
    ),
    BrokenDelivery(
        "a requeue that deletes what was parked anew",
        SENT_AGAIN,
        requeuing("deletes all", Change(DELETED, DELETED.replace("found.etag", '"*"'))),
        "nothing_lost",
    ),
)
