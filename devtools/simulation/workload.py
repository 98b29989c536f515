"""The application that is simulated: business code as a user would write it, around the pure model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from devtools.simulation.model import Order, Tally, execute
from exactlyonce import Context, Destination, Entity, EntityKey, Envelope, Outbox, message
from exactlyonce.frozen_json import Json

TOLD: Final = "audience"
RELAYED: Final = "orders"
REQUEUED: Final = "orders-again"
"""An address of its own, so that what an operator sends again is not taken for what a handler sent."""
_SHELF: Final = 3  # Tallies that share a logical partition.


@message("simulation.order")
@dataclass
class Step:
    """A message to a tally; see `model.Order`."""

    name: str
    tally: str
    tells: int = 1
    relays: list[str] = field(default_factory=list)
    filler: int | str = 0
    closes: bool = False
    refused: bool = False
    because: str = ""


@message("simulation.told")
@dataclass
class Told:
    """What leaves the system."""

    name: str
    count: int
    before: str
    after: str
    closed: list[str]
    filler: str


@dataclass
class Count:
    """The state of a tally."""

    count: int = 0
    chain: str = ""
    recent: list[str] = field(default_factory=list)


destinations: Final = (Destination(TOLD, receives=(Told,)), Destination(RELAYED, receives=(Step,)))
tallies: Final = Entity("tally", state=Count, container="tallies", partition_key="/shelf", strategy=Outbox())


def key_of(step: Step) -> EntityKey:
    """Id and partition differ, and tallies share partitions."""
    return EntityKey(step.tally, f"shelf-{int(step.tally) // _SHELF}")


@tallies.handles(Step, key=key_of)
def follow(state: Count, step: Step, context: Context) -> Count:
    """Do what the model says."""
    if step.refused:
        context.send(TOLD, Told(f"{step.name}.0", state.count, "", "", [], ""))
        raise RuntimeError("this order cannot be followed")
    order = _order(step)
    after, outputs = execute(Tally(state.count, state.chain, tuple(state.recent)), order)
    for index, output in enumerate(outputs):
        if index < order.tells:
            context.send(TOLD, Told(**output))
        else:
            context.send(RELAYED, Step(**output))
    if after.count == 0:
        context.delete()
    return Count(after.count, after.chain, list(after.recent))


def envelope_of(order: Order) -> Envelope:
    """An order from outside. Ids repeat: only together with the source they name a message."""
    data: dict[str, Any] = {
        "name": order.name,
        "tally": order.tally,
        "tells": order.tells,
        "relays": list(order.relays),
        "filler": order.filler,
        "closes": order.closes,
        "refused": order.refused,
    }
    source, _, id = order.name.partition("-")
    return Envelope(source, id, "simulation.order", Json.of(data))


def _order(step: Step) -> Order:
    filler = step.filler if isinstance(step.filler, int) else 0  # A relayed one only carries padding.
    return Order(step.name, step.tally, step.tells, tuple(step.relays), filler, step.closes)
