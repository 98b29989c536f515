"""What the handlers of a simulation compute, as a pure function over plain values; the judge computes it anew.

A tally counts its messages, remembers the last ones, and chains a hash over all of them: whatever is lost, done twice or done
on another state than the committed one shows in the next state and in what is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

LAST: Final = 16
"""How many names a tally remembers: no fewer than one commit can hold, so that each write tells which messages it holds."""


@dataclass(frozen=True, slots=True)
class Tally:
    """A state; one that was deleted, or never was, equals an empty one."""

    count: int = 0
    chain: str = ""
    recent: tuple[str, ...] = ()


NOTHING: Final = Tally()


@dataclass(frozen=True, slots=True)
class Order:
    """A message to a tally.

    Attributes:
        name: unique; that of a relayed one is its cause's, a dot and a number.
        tally: which one it is for.
        tells: how many outputs leave the system.
        relays: tallies that are sent an order of their own.
        filler: length of the padding of each output, in characters.
        closes: delete the tally, if it is not empty.
        refused: the handler raises.
    """

    name: str
    tally: str
    tells: int = 1
    relays: tuple[str, ...] = ()
    filler: int = 0
    closes: bool = False
    refused: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of everything it makes its tally send."""
        return tuple(f"{self.name}.{index}" for index in range(self.tells + len(self.relays)))


def execute(tally: Tally, order: Order) -> tuple[Tally, list[dict[str, Any]]]:
    """The state after an order, and the data of what is sent: first what is told, then what is relayed."""
    chain = f"{crc32(order.name.encode(), crc32(tally.chain.encode())):08x}{tally.count:x}"
    closed = order.closes and tally.count > 0
    after = NOTHING if closed else Tally(tally.count + 1, chain, (*tally.recent, order.name)[-LAST:])
    names = order.outputs
    told: list[dict[str, Any]] = [
        {
            "name": name,
            "count": tally.count,
            "before": tally.chain,
            "after": chain,
            "closed": list(tally.recent) if closed else [],
            "filler": "x" * order.filler,
        }
        for name in names[: order.tells]
    ]
    relayed: list[dict[str, Any]] = [
        {"name": name, "tally": target, "because": chain, "filler": "x" * order.filler}
        for name, target in zip(names[order.tells :], order.relays, strict=True)
    ]
    return after, told + relayed


def relayed_order(data: dict[str, Any]) -> Order:
    """The order that a relayed output is: it tells once and relays nothing."""
    return Order(data["name"], data["tally"])
