"""More of the zoo: what can go wrong with messages that go back to their queues if one guard is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from devtools.modelcheck.catalogue_returning import SMALL
from devtools.modelcheck.returning import Host, ReturningScenario
from devtools.modelcheck.twins import Change, broken_chores, broken_host

WORLDS = {scenario.name: scenario for scenario in SMALL}
CRASH = WORLDS["returned beside a crash"]
LOST_REPLIES = WORLDS["returned, lost replies"]
LAST = WORLDS["returned for the last time"]
BATCH = WORLDS["returned with a batch"]
BATCH_LOST_REPLIES = WORLDS["returned with a batch, lost replies"]
POISON = WORLDS["returned from a poison queue"]
TOO_OLD = WORLDS["returned until too old"]
UNPROCESSED, LOST, ENDS = "parked_is_unprocessed", "nothing_lost", "termination"

UNSEEN = "unseen = first or (given.runs_out and isinstance(error, TryAgainLater))"
LOOKS = '    if found.message is not None:\n        return Returned("parked", memory)\n'
PUT_ASIDE = '        if given.settling == "again":\n            reason ='
ACCEPTED = "    if published is not PUBLISHED:\n        return Again("


@dataclass(frozen=True, slots=True)
class BrokenReturning:
    """A broken host or requeuing, a scenario in which it shows, the property that falls there, and in how many steps."""

    name: str
    scenario: ReturningScenario
    falls: str
    steps: int
    changes: tuple[Change, ...] = ()
    requeues: bool = False

    def scenario_with_twin(self) -> ReturningScenario:
        if self.requeues:
            return replace(self.scenario, name=self.name, chores=broken_chores(self.name, *self.changes))
        host = broken_host(self.name, *self.changes) if self.changes else Host(takes_away=False)
        return replace(self.scenario, name=self.name, host=host)


BROKEN_RETURNING: tuple[BrokenReturning, ...] = (
    BrokenReturning("returned without a look", BATCH, UNPROCESSED, 16, (Change(LOOKS, ""),)),
    BrokenReturning(
        "a look in a view of any age",
        BATCH,
        UNPROCESSED,
        16,
        (Change("LoadParked(entity, message, staged.token)", "LoadParked(entity, message, None)"),),
    ),
    BrokenReturning(
        "what was just parked without an answer is returned unseen",
        LOST_REPLIES,
        UNPROCESSED,
        11,
        (Change(" and not progress.parks", ""),),
    ),
    BrokenReturning(
        "what was settled before is returned unseen",
        BATCH,
        UNPROCESSED,
        13,
        (
            Change(
                '        unseen = given.settling == "first"\n        if rounds',
                "        unseen = True\n        if rounds",
            ),
        ),
    ),
    BrokenReturning(
        "what was settled before is returned unseen while the store is away",
        BATCH_LOST_REPLIES,
        UNPROCESSED,
        11,
        (Change(UNSEEN, "unseen = True"),),
    ),
    BrokenReturning(
        "what was settled before is parked",
        LAST,
        UNPROCESSED,
        13,
        (Change(PUT_ASIDE, PUT_ASIDE.replace('given.settling == "again"', "not given.came.id")),),
    ),
    BrokenReturning(
        "acknowledged before it is sent",
        LOST_REPLIES,
        LOST,
        5,
        (Change(ACCEPTED, ACCEPTED.replace("published is not PUBLISHED", "not published")),),
    ),
    BrokenReturning(
        "one round too many",
        LAST,
        ENDS,
        5,
        (Change("if so_far < UNEXPLAINED_ROUNDS", "if so_far <= UNEXPLAINED_ROUNDS"),),
    ),
    BrokenReturning(
        "returned beyond the send limit",
        TOO_OLD,
        LOST,
        7,
        (Change("now - came.time > self.lifetimes().send_limit(now)", "False"),),
    ),
    BrokenReturning(
        "requeued at any age",
        WORLDS["parked until too old"],
        LOST,
        10,
        (Change("if limit is not None and (refusal :=", "if limit is not None and not found.now and (refusal :="),),
        requeues=True,
    ),
)

PARKED_FOR_EVER = BrokenReturning("nobody takes away what is parked of it", POISON, "", 0)
