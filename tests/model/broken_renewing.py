"""More of the zoo: what can go wrong when a parked message is sent as a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from exactlyonce.effects.library import FoundParked, Unpark
from exactlyonce.protocols.steps import park as parking
from exactlyonce.values.envelope import Envelope, renewed_id
from verification.explorers.renewal import BEFORE, RenewingScenario
from verification.scenarios.renewals import SMALL
from verification.twins.alterations import called, replaced
from verification.twins.modules import Patch, around, constant
from verification.twins.twin import within
from verification.world.scenario import AT, TICK

WORLDS = {scenario.name: scenario for scenario in SMALL}
CRASH = WORLDS["a parked message is renewed, a crash"]
PUT_BACK = WORLDS["a parked message is renewed, and put back"]
IDENTITY, TIME, LOST = "at_most_one_identity", "one_time", "nothing_lost"


@dataclass(frozen=True, slots=True)
class BrokenRenewing:
    """A broken way to renew, the property that falls, and after how many steps."""

    name: str
    falls: str
    steps: int
    patches: tuple[Patch, ...]
    world: RenewingScenario = CRASH

    def scenario_with_twin(self) -> RenewingScenario:
        return replace(within(self.world, self.patches), name=self.name)


def of_the_request(_parked: datetime, now: datetime, _limit: timedelta) -> datetime:
    """The time of a new message is that of the request."""
    return now


def the_latest(parked: datetime, now: datetime, limit: timedelta) -> datetime:
    """The last one of the times of which the first would do."""
    return parked + (now - parked) // limit * limit


def of_the_parked(entity: str, message: str, _time: datetime) -> str:
    """The id of a new message hangs on when the old one was parked alone."""
    return renewed_id(entity, message, AT)


def at_once_too_old(entity: Any, message: Any, limit: Any, memory: Any) -> tuple[Any, ...]:
    """Whatever was renewed is too old at once."""

    def first_of_all(envelope: Envelope) -> Any:
        return limit(envelope) if envelope.time == AT + BEFORE * TICK else lambda _now: timedelta(-1)

    return entity, message, first_of_all, memory


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


_AT_THE_REQUEST = around(parking._first_taken, replaced(of_the_request))
_BY_PARKED = constant(parking, "renewed_id", of_the_parked)
BROKEN_RENEWING: tuple[BrokenRenewing, ...] = (
    BrokenRenewing(
        "renewed whenever it is asked for",
        IDENTITY,
        10,
        (around(parking.renew, called(at_once_too_old)), _AT_THE_REQUEST),
    ),
    BrokenRenewing("the time is that of the request", IDENTITY, 11, (_AT_THE_REQUEST,), PUT_BACK),
    BrokenRenewing(
        "the time is that of the request, and the id is not", TIME, 11, (_AT_THE_REQUEST, _BY_PARKED), PUT_BACK
    ),
    BrokenRenewing(
        "the latest time, where the first would do",
        IDENTITY,
        11,
        (around(parking._first_taken, replaced(the_latest)),),
        PUT_BACK,
    ),
    BrokenRenewing("renewed once more under the id it had", TIME, 11, (_BY_PARKED,)),
    BrokenRenewing("deleted before it is sent", LOST, 4, (around(parking.requeue, deleted_first),)),
)
