"""The zoo of deliveries that come again, of messages that go back to their queues, and of parked messages sent as new ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from exactlyonce import Outbox
from exactlyonce.effects.effect import Begin
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked, OpenNumbers, Unpark
from exactlyonce.hosting.deliveries import settlement
from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS, PoisonMessage, Settler
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.steps import give_back as returning
from exactlyonce.protocols.steps import park as parking
from exactlyonce.values.envelope import Envelope, renewed_id
from tests.model.zoo import Broken
from verification.explorers.renewal import BEFORE, RenewingScenario
from verification.explorers.returns import Host, ReturningScenario
from verification.scenarios import deliveries, renewals, returns
from verification.twins.alterations import answers, asks, called, deferred, replaced
from verification.twins.host import HOST
from verification.twins.modules import Patch, around, constant, modules_of
from verification.world.scenario import AT, TICK, Scenario

DELIVERED = {scenario.name: scenario for scenario in deliveries.SMALL}
RETURNED = {scenario.name: scenario for scenario in returns.SMALL}
RENEWED = {scenario.name: scenario for scenario in renewals.SMALL}
UNPROCESSED, LOST, ENDS = "parked_is_unprocessed", "nothing_lost", "termination"
IDENTITY, TIME = "at_most_one_identity", "one_time"


def named_all_the_same(begun: Any, *_: Any) -> Any:
    return replace(begun, transactions=tuple(tx or "own" for tx in begun.transactions))


HANDLING_ALL = (
    around(Outbox.attempt, answers(OpenNumbers, named_all_the_same)),
    around(Colocated.attempt, answers(Begin, named_all_the_same)),
)
GIVEN_BACK = {
    "a delivery is given back": 9,
    "a group gives a delivery back": 11,
    "stream: a group gives a delivery back": 12,
    "co-located: a group gives a delivery back": 12,
    "resequencer: a group gives a delivery back": 10,
}
SENT_AGAIN = DELIVERED["a parked message is sent again"]
BROKEN_DELIVERIES: tuple[Broken[Scenario], ...] = (
    *(
        Broken(
            "a driver that forgets what was given back", (), DELIVERED[world], UNPROCESSED, steps,
            more={"oblivious": True},
        )
        for world, steps in GIVEN_BACK.items()
    ),
    *(
        Broken("a message without a transaction is handled", HANDLING_ALL, DELIVERED[world], UNPROCESSED, GIVEN_BACK[world])
        for world in ("a delivery is given back", "co-located: a group gives a delivery back")
    ),
    *(
        Broken("a batch that processes what it gave up", (), DELIVERED[world], UNPROCESSED, 7, more={"lenient": True})
        for world in ("a batch comes again, all faults", "a batch of two comes again")
    ),
    Broken(
        "a requeue that deletes before it sends",
        (around(parking.requeue, deferred(Publish, PUBLISHED, until=Unpark)),), SENT_AGAIN, LOST, 6,
    ),
    Broken(
        "a requeue that deletes though sending failed",
        (around(parking.requeue, answers(Publish, lambda *_: PUBLISHED)),), SENT_AGAIN, LOST, 7,
    ),
    Broken(
        "a requeue that deletes what was parked anew",
        (around(parking.requeue, asks(Unpark, lambda unpark, *_: replace(unpark, etag="*"))),), SENT_AGAIN, LOST, 11,
    ),
)  # fmt: skip


def host(*patches: Patch) -> dict[str, Host]:
    """What decides about messages that were given up, with patches."""
    made = modules_of("host", {settlement.__name__}, patches=patches, others=HOST).get(settlement.__name__, settlement)
    return {"host": Host(giving_up=made.Settler, given_up=made.PoisonMessage, returning=made.Returner)}


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


def nothing_there(found: Any, *_: Any) -> Any:
    return replace(found, message=None) if isinstance(found, FoundParked) else found


BROKEN_RETURNING: tuple[Broken[ReturningScenario], ...] = (
    Broken(
        "returned without a look", (), RETURNED["returned with a batch"], UNPROCESSED, 14,
        more=host(around(returning.give_back, answers(LoadParked, nothing_there))),
    ),
    Broken(
        "a look in a view of any age", (), RETURNED["returned with a batch"], UNPROCESSED, 14,
        more=host(around(returning.give_back, asks(LoadParked, lambda load, *_: replace(load, token=None)))),
    ),
    Broken(
        "what was just parked without an answer is returned unseen", (), RETURNED["returned, lost replies"],
        UNPROCESSED, 10, more=host(around(settlement._noting, replaced(lambda step, _progress: step))),
    ),
    Broken(
        "what was settled before is returned unseen", (), RETURNED["returned with a batch"], UNPROCESSED, 11,
        more=host(around(Settler._returned, unseen)),
    ),
    Broken(
        "what was settled before is returned unseen while the store is away", (),
        RETURNED["returned with a batch, lost replies"], UNPROCESSED, 10,
        more=host(
            around(Settler._decided_or_returned, called(lambda self, given: (self, replace(given, runs_out=True))))
        ),
    ),
    Broken(
        "what was settled before is parked", (), RETURNED["returned for the last time"], UNPROCESSED, 11,
        more=host(around(Settler._decided, called(not_known)), around(Settler._unexplained, called(settled_before))),
    ),
    Broken(
        "acknowledged before it is sent", (), RETURNED["returned, lost replies"], LOST, 4,
        more=host(around(returning.send, answers(Publish, lambda *_: PUBLISHED))),
    ),
    Broken(
        "one round too many", (), RETURNED["returned for the last time"], ENDS, 4,
        more=host(constant(settlement, "UNEXPLAINED_ROUNDS", UNEXPLAINED_ROUNDS + 1)),
    ),
    Broken(
        "returned beyond the send limit", (), RETURNED["returned until too old"], LOST, 7,
        more=host(around(Settler._is_too_old, replaced(lambda *_: False))),
    ),
    Broken(
        "requeued at any age",
        (around(parking.requeue, called(lambda *known: (*known[:3], lambda _: None, known[4]))),),
        RETURNED["parked until too old"], LOST, 9,
    ),
)  # fmt: skip
PARKED_FOR_EVER = Broken(
    "nobody takes away what is parked of it", (), RETURNED["returned from a poison queue"],
    more={"host": Host(takes_away=False)},
)  # fmt: skip


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

    def twin(*arguments: Any) -> Generator[Any, Any, Any]:
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


CRASH, PUT_BACK = RENEWED["a parked message is renewed, a crash"], RENEWED["a parked message is renewed, and put back"]
AT_THE_REQUEST = around(parking._first_taken, replaced(of_the_request))
BY_PARKED = constant(parking, "renewed_id", of_the_parked)
BROKEN_RENEWING: tuple[Broken[RenewingScenario], ...] = (
    Broken(
        "renewed whenever it is asked for", (around(parking.renew, called(at_once_too_old)), AT_THE_REQUEST), CRASH,
        IDENTITY, 10,
    ),
    Broken("the time is that of the request", (AT_THE_REQUEST,), PUT_BACK, IDENTITY, 11),
    Broken("the time is that of the request, and the id is not", (AT_THE_REQUEST, BY_PARKED), PUT_BACK, TIME, 11),
    Broken(
        "the latest time, where the first would do", (around(parking._first_taken, replaced(the_latest)),), PUT_BACK,
        IDENTITY, 11,
    ),
    Broken("renewed once more under the id it had", (BY_PARKED,), CRASH, TIME, 11),
    Broken("deleted before it is sent", (around(parking.requeue, deleted_first),), CRASH, LOST, 4),
)  # fmt: skip
