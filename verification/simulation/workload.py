"""The application that is simulated: business code as a user would write it, around the pure model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce import Context, Destination, Entity, EntityKey, Envelope, Outbox, Resequencer, message
from exactlyonce.handling.routes import Routes
from exactlyonce.values.envelope import milliseconds
from exactlyonce.values.frozen_json import Json
from verification.simulation.history import LAST, LAST_OF_A_BOARD, Order, Tally, execute

REPORTED: Final = "audience"
RELAYED: Final = "orders"
SHOWN: Final = "boards"
ASKED: Final = "requests"
"""Where boards ask for what they lack."""
REQUEUED: Final = "orders-again"
"""An address of its own, so that what an operator sends again is not taken for what a handler sent."""
DESTINATIONS: Final = (REPORTED, RELAYED, SHOWN, ASKED, REQUEUED)
MAX_BYTES: Final = 48 * 1024
"""Longest message that their queues take."""
_KEPT_FOR: Final = timedelta(minutes=20)
_SHELF: Final = 3  # Tallies that share a logical partition.
_BOARD: Final = "board-"


@message("simulation.order")
@dataclass
class Step:
    """A message to a tally; see `model.Order`."""

    name: str
    tally: str
    reports: int = 1
    relays: list[str] = field(default_factory=list)
    shows: list[str] = field(default_factory=list)
    filler: int | str = 0
    closes: bool = False
    looks: bool = False
    refused: bool = False
    kept: bool = False
    because: str = ""


@message("simulation.report")
@dataclass
class Report:
    """What leaves the system."""

    name: str
    count: int
    before: str
    after: str
    closed: list[str]
    filler: str


@message("simulation.became")
@dataclass
class Became:
    """The event of an event-sourced tally: its new state."""

    count: int
    chain: str
    recent: list[str]


@dataclass
class Count:
    """The state of a tally."""

    count: int = 0
    chain: str = ""
    recent: list[str] = field(default_factory=list)


def key_of(step: Step) -> EntityKey:
    """Id and partition differ, and tallies share partitions."""
    return EntityKey(step.tally, f"shelf-{int(step.tally.removeprefix(_BOARD)) // _SHELF}")


ROUTES: Final = Routes.to(
    (
        *map(Destination, (REPORTED, ASKED)),
        Destination(RELAYED, to="tally", entity_by=key_of),
        Destination(SHOWN, to="board", entity_by=key_of, ordered=True),
    ),
    dict.fromkeys(DESTINATIONS, MAX_BYTES),
)
"""Where messages go. What boards are shown has numbers."""


def board_named(number: int) -> str:
    return f"{_BOARD}{number}"


Broken = Callable[[str], bool]
"""Whether handlers, until they are fixed, raise for the message of this name."""


def tallies_of(broken: Broken, *, events: bool = False) -> Entity[Count]:
    """The tallies of an episode; `events` makes them event-sourced."""
    entity = Entity("tally", state=Count, container="tallies", partition_key="/shelf", strategy=Outbox())
    if events:
        entity.applies(Became)(lambda _, event: Count(event.count, event.chain, event.recent))
    return _following(entity, broken, LAST, events=events)


def boards(strategy: Resequencer, broken: Broken) -> Entity[Count]:
    """The read models of an episode; the strategy is how they hear."""
    entity = Entity("board", state=Count, container="boards", partition_key="/shelf", strategy=strategy)
    return _following(entity, broken, LAST_OF_A_BOARD)


def _following(entity: Entity[Count], broken: Broken, remembered: int, *, events: bool = False) -> Entity[Count]:
    @entity.handles(Step, key=key_of)
    def follow(state: Count, step: Step, context: Context) -> Any:
        if broken(step.name):
            raise RuntimeError("this handler is not fixed yet")
        after = _followed(state, step, context, remembered)
        if not events:
            return after
        return [] if after == state else [Became(after.count, after.chain, after.recent)]

    return entity


tallies: Final = tallies_of(lambda _: False)
"""The type of all tallies, for callers that only ask what they are."""


def _followed(state: Count, step: Step, context: Context, remembered: int) -> Count:
    if step.refused:
        context.send(REPORTED, Report(f"{step.name}.0", state.count, "", "", [], ""))
        raise RuntimeError("this order cannot be followed")
    order = _order(step)
    after, outputs = execute(Tally(state.count, state.chain, tuple(state.recent)), order, remembered)
    for index, output in enumerate(outputs):
        if index < order.reports:
            context.send(REPORTED, Report(**output))
        else:
            relayed = index < order.reports + len(order.relays)
            at = context.now + _KEPT_FOR if relayed and order.kept else None
            context.send(RELAYED if relayed else SHOWN, Step(**output), at=at)
    if after.count == 0:
        context.delete()
    return Count(after.count, after.chain, list(after.recent))


def envelope_of(order: Order, time: datetime) -> Envelope:
    """An order from outside. Ids repeat: only together with the source they name a message."""
    data = asdict(order)
    del data["asked"], data["place"]
    source, _, id = order.name.partition("-")
    return Envelope(source, id, "simulation.order", Json.of(data), time)


def timed(envelope: Envelope, number: int) -> Envelope:
    """A message whose sender promises its time: by an attribute, or by a UUID of version 7 as its id."""
    if number % 2 or envelope.time is None:
        return envelope.with_stable_time()
    time = f"{milliseconds(envelope.time):012x}"
    return replace(envelope, id=f"{time[:8]}-{time[8:]}-7000-8000-{number:012x}")


def _order(step: Step) -> Order:
    filler = step.filler if isinstance(step.filler, int) else 0  # A relayed one only carries padding.
    known = vars(step) | {"relays": tuple(step.relays), "shows": tuple(step.shows), "filler": filler}
    del known["because"]
    return Order(**known)
