"""More of the zoo: what can go wrong with messages that go back to their queues if one guard is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked
from exactlyonce.hosting.deliveries import settlement as giving_up
from exactlyonce.hosting.deliveries import settlement as returning_host
from exactlyonce.hosting.deliveries.settlement import PoisonMessage, Settler
from exactlyonce.protocols.steps import give_back as returning
from exactlyonce.protocols.steps import park as parking
from verification.explorers.settlement import Host, ReturningScenario
from verification.scenarios.returns import SMALL
from verification.twins.alterations import answers, asks, called, replaced
from verification.twins.host import HOST
from verification.twins.modules import Patch, around, constant, modules_of
from verification.twins.twin import within

WORLDS = {scenario.name: scenario for scenario in SMALL}
CRASH = WORLDS["returned, a crash"]
LOST_REPLIES = WORLDS["returned, lost replies"]
LAST = WORLDS["returned for the last time"]
BATCH = WORLDS["returned with a batch"]
BATCH_LOST_REPLIES = WORLDS["returned with a batch, lost replies"]
POISON = WORLDS["returned from a poison queue"]
TOO_OLD = WORLDS["returned until too old"]
UNPROCESSED, LOST, ENDS = "parked_is_unprocessed", "nothing_lost", "termination"


def host(*patches: Patch) -> Host:
    """What decides about messages that were given up, with patches."""
    shipped = Host()
    made = modules_of("host", {giving_up.__name__, returning_host.__name__}, patches=patches, others=HOST)
    decides = made.get(giving_up.__name__, giving_up)
    returns = made.get(returning_host.__name__, returning_host)
    return replace(shipped, giving_up=decides.Settler, given_up=decides.PoisonMessage, returning=returns.Returner)


def unseen(returned: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Nothing is looked at before a message is returned."""

    async def twin(self: Any, *known: Any, unseen: bool) -> Any:
        del unseen
        return await returned(self, *known, unseen=True)

    return twin


def not_known(self: Any, given: PoisonMessage, *rest: Any) -> tuple[Any, ...]:
    """A message that was settled before is decided about as if nobody knew."""
    return self, replace(given, settlement="unknown") if given.settlement == "repeated" else given, *rest


def settled_before(self: Any, given: PoisonMessage) -> tuple[Any, ...]:
    """How often it is returned goes by what was known."""
    return self, replace(given, settlement="repeated") if given.settlement == "unknown" else given


def of_any_age(*_: object) -> bool:
    """A message is returned however old it is."""
    return False


@dataclass(frozen=True, slots=True)
class BrokenReturning:
    """A broken host or requeuing, a scenario in which it shows, the property that falls there, and in how many steps."""

    name: str
    scenario: ReturningScenario
    falls: str
    steps: int
    patches: tuple[Patch, ...] = ()
    requeues: bool = False

    def scenario_with_twin(self) -> ReturningScenario:
        if self.requeues:
            return replace(within(self.scenario, self.patches), name=self.name)
        twin = host(*self.patches) if self.patches else Host(takes_away=False)
        return replace(self.scenario, name=self.name, host=twin)


BROKEN_RETURNING: tuple[BrokenReturning, ...] = (
    BrokenReturning(
        "returned without a look",
        BATCH,
        UNPROCESSED,
        14,
        (
            around(
                returning.give_back,
                answers(
                    LoadParked,
                    lambda found, *_: replace(found, message=None) if isinstance(found, FoundParked) else found,
                ),
            ),
        ),
    ),
    BrokenReturning(
        "a look in a view of any age",
        BATCH,
        UNPROCESSED,
        14,
        (around(returning.give_back, asks(LoadParked, lambda load, *_: replace(load, token=None))),),
    ),
    BrokenReturning(
        "what was just parked without an answer is returned unseen",
        LOST_REPLIES,
        UNPROCESSED,
        10,
        (around(giving_up._noting, replaced(lambda step, _progress: step)),),
    ),
    BrokenReturning(
        "what was settled before is returned unseen",
        BATCH,
        UNPROCESSED,
        11,
        (around(Settler._returned, unseen),),
    ),
    BrokenReturning(
        "what was settled before is returned unseen while the store is away",
        BATCH_LOST_REPLIES,
        UNPROCESSED,
        10,
        (around(Settler._decided_or_returned, called(lambda self, given: (self, replace(given, runs_out=True)))),),
    ),
    BrokenReturning(
        "what was settled before is parked",
        LAST,
        UNPROCESSED,
        11,
        (around(Settler._decided, called(not_known)), around(Settler._unexplained, called(settled_before))),
    ),
    BrokenReturning(
        "acknowledged before it is sent",
        LOST_REPLIES,
        LOST,
        4,
        (around(returning.send, answers(Publish, lambda *_: PUBLISHED)),),
    ),
    BrokenReturning(
        "one round too many",
        LAST,
        ENDS,
        4,
        (constant(returning_host, "UNEXPLAINED_ROUNDS", returning_host.UNEXPLAINED_ROUNDS + 1),),
    ),
    BrokenReturning(
        "returned beyond the send limit",
        TOO_OLD,
        LOST,
        7,
        (around(Settler._is_too_old, replaced(of_any_age)),),
    ),
    BrokenReturning(
        "requeued at any age",
        WORLDS["parked until too old"],
        LOST,
        9,
        (around(parking.requeue, called(lambda *known: (*known[:3], lambda _: None, known[4]))),),
        requeues=True,
    ),
)

PARKED_FOR_EVER = BrokenReturning("nobody takes away what is parked of it", POISON, "", 0)
