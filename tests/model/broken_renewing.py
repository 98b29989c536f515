"""More of the zoo: what can go wrong when a parked message is sent as a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from exactlyonce.effects.library import FoundParked, LoadParked, Park, Unpark, Written
from exactlyonce.protocols.steps import park as parking
from verification.explorers.renewal import RenewingScenario
from verification.scenarios.renewals import SMALL
from verification.twins.alterations import answers, asks, called, unasked
from verification.twins.modules import Patch, around
from verification.twins.twin import within
from verification.world.scenario import AT

WORLDS = {scenario.name: scenario for scenario in SMALL}
CRASH = WORLDS["a parked message is renewed, a crash"]
IDENTITY, TIME, LOST = "at_most_one_identity", "one_time", "nothing_lost"


@dataclass(frozen=True, slots=True)
class BrokenRenewing:
    """A broken way to renew, the property that falls, and after how many steps."""

    name: str
    falls: str
    steps: int
    patches: tuple[Patch, ...]

    def scenario_with_twin(self) -> RenewingScenario:
        return replace(within(CRASH, self.patches), name=self.name)


def as_of_now(found: Any, *_: Any) -> Any:
    """What is parked is taken to have been renewed just now."""
    if not isinstance(found, FoundParked) or found.message is None:
        return found
    return replace(found, message=replace(found.message, renewed=found.now))


def as_of_now_again(found: Any, *more: Any) -> Any:
    """What was renewed is taken to have been renewed just now."""
    renewed = isinstance(found, FoundParked) and found.message is not None and found.message.renewed is not None
    return as_of_now(found, *more) if renewed else found


def at_once_too_old(entity: Any, message: Any, _limit: Any, memory: Any) -> tuple[Any, ...]:
    """Whatever was renewed is too old at once."""
    return entity, message, lambda _envelope: lambda _now: timedelta(-1), memory


def under_one_identity(park: Park, *_: Any) -> Park:
    """What is renewed once more keeps the identity that it was given first."""
    return replace(park, message=replace(park.message, at=AT))


def deleted_first(requeue: Any) -> Any:
    """What is parked goes before it is sent."""

    def twin(*arguments: Any) -> Any:
        step, reply, kept = requeue(*arguments), None, None
        while True:
            try:
                effect, reply = step.send(reply), None
            except StopIteration as end:
                return end.value
            if isinstance(effect, Unpark):
                continue
            if kept is not None:
                yield from Unpark(arguments[0], arguments[1], kept)
            reply = yield effect
            kept = reply.etag if isinstance(reply, FoundParked) else None

    return twin


BROKEN_RENEWING: tuple[BrokenRenewing, ...] = (
    BrokenRenewing("renewed whenever it is asked for", IDENTITY, 10, (around(parking.renew, called(at_once_too_old)),)),
    BrokenRenewing(
        "the time is that of sending",
        TIME,
        9,
        (
            around(parking.renew, answers(LoadParked, as_of_now_again)),
            around(parking.requeue, answers(LoadParked, as_of_now_again)),
        ),
    ),
    BrokenRenewing(
        "sent, and not written down before",
        TIME,
        8,
        (
            around(parking.renew, unasked(Park, Written("0:-1#1"))),
            around(parking.requeue, answers(LoadParked, as_of_now)),
        ),
    ),
    BrokenRenewing(
        "renewed once more under the identity it had",
        TIME,
        11,
        (around(parking.renew, asks(Park, under_one_identity)),),
    ),
    BrokenRenewing("deleted before it is sent", LOST, 4, (around(parking.requeue, deleted_first),)),
)
