"""What the handlers of a simulation compute, as a pure function over plain values; the judge computes it anew.

A tally counts its messages, remembers the last ones, and chains a hash over all of them: whatever is lost, done twice or done
on another state than the committed one shows in the next state and in what is sent. A board is a read model: a tally that is
shown what other tallies do, and has to hear each of them in its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from zlib import crc32

LAST: Final = 16
"""How many names a tally remembers: no fewer than one commit can hold, so that each write names the messages it holds."""
LAST_OF_A_BOARD: Final = 99
"""The same for a board, which handles at once what it has held."""


@dataclass(frozen=True, slots=True)
class Tally:
    """A state; one that was deleted, or never was, equals an empty one."""

    count: int = 0
    chain: str = ""
    recent: tuple[str, ...] = ()


NOTHING: Final = Tally()


class Place(NamedTuple):
    """Where a message stands in what one source shows to one board, as its envelope says.

    Attributes:
        source: who sent it.
        number: from 1.
        time: when it was sent.
    """

    source: str
    number: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Order:
    """A message to a tally.

    Attributes:
        name: unique; that of a relayed or shown one is its cause's, a dot and a number.
        tally: which one it is for.
        reports: how many outputs leave the system.
        relays: tallies that are sent an order of their own.
        shows: boards that are shown what happened.
        filler: length of the padding of each output, in characters.
        closes: delete the tally, if it is not empty; and so the boards that are shown it.
        looks: report the tally, and leave it as it is.
        refused: the handler raises.
        kept: its tally keeps what it relays for a while, and sends it then.
        asked: its sender waits for the answer, and does not go on asking without one.
        place: if it is for a board; else None.
    """

    name: str
    tally: str
    reports: int = 1
    relays: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    filler: int = 0
    closes: bool = False
    looks: bool = False
    refused: bool = False
    kept: bool = False
    asked: bool = False
    place: Place | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of everything it makes its tally send."""
        return tuple(f"{self.name}.{index}" for index in range(self.reports + len(self.relays) + len(self.shows)))

    @property
    def prompt(self) -> tuple[str, ...]:
        """Names of what is sent before it is acknowledged."""
        later = range(self.reports, self.reports + len(self.relays)) if self.kept else ()
        return tuple(name for index, name in enumerate(self.outputs) if index not in later)

    @property
    def remembered(self) -> int:
        """How many names its handler remembers."""
        return LAST if self.place is None else LAST_OF_A_BOARD


def execute(tally: Tally, order: Order, remembered: int = LAST) -> tuple[Tally, list[dict[str, Any]]]:
    """The state after an order, and the data of what is sent: reports, then relayed orders, then what boards are shown."""
    chain = f"{crc32(order.name.encode(), crc32(tally.chain.encode())):08x}{tally.count:x}"
    closed = order.closes and tally.count > 0
    after = NOTHING if closed else Tally(tally.count + 1, chain, (*tally.recent, order.name)[-remembered:])
    if order.looks:
        after = tally
    names = iter(order.outputs)
    filler = "x" * order.filler
    reports: list[dict[str, Any]] = [
        {
            "name": next(names),
            "count": tally.count,
            "before": tally.chain,
            "after": chain,
            "closed": list(tally.recent) if closed else [],
            "filler": filler,
        }
        for _ in range(order.reports)
    ]
    relayed: list[dict[str, Any]] = [
        {"name": next(names), "tally": target, "because": chain, "filler": filler} for target in order.relays
    ]
    shown: list[dict[str, Any]] = [
        {
            "name": next(names),
            "tally": board,
            "reports": 1 if order.closes else tally.count % 3,
            "closes": order.closes,
            "because": chain,
            "filler": filler,
        }
        for board in order.shows
    ]
    return after, reports + relayed + shown


def order_in(data: dict[str, Any], place: Place | None) -> Order:
    """The order that a relayed or shown output is: it relays and shows nothing."""
    return Order(data["name"], data["tally"], data.get("reports", 1), closes=data.get("closes", False), place=place)
