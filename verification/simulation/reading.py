"""What the read models of an episode are like, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final, Literal
from zlib import crc32

from exactlyonce import Rebuild, Resequencer, VersionStream
from verification.simulation.history import Promises
from verification.simulation.workload import ASKED, board_named, tallies

OnGap = Literal["wait", "skip", "rebuild"]
_SOURCES: Final = 8
"""Tallies that show to one board, about: all of them stand in its ledger."""
_ONE_IN: Final = 40
"""One message in so many makes the handler of boards raise until it is fixed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The plan of the boards.

    Attributes:
        boards: how many there are.
        share: of orders that are shown.
        on_gap, order, gap_timeout, max_wait: settings of their strategy; "rebuild" stands for asking the tallies again.
        losing: share of the messages to them that their queue loses for good.
        fixed: at what part of the time of sending the handler stops raising for some messages; 0 if it never does.
    """

    boards: int
    share: float
    on_gap: OnGap
    order: Literal["source", "time"]
    gap_timeout: timedelta
    max_wait: timedelta
    losing: float
    fixed: float

    @classmethod
    def draw(cls, random: Random, entities: int, *, streams: bool) -> Reading:
        """A plan for so many tallies, which may be able to send again what they sent."""
        on_gap: OnGap = random.choice(("wait", "skip", *(("rebuild", "rebuild") if streams else ("skip",))))
        return cls(
            boards=max(1, entities // _SOURCES),
            share=random.choice((0.0, 0.15, 0.4, 0.8)),
            on_gap=on_gap,
            order=random.choice(("source", "source", "time")),
            gap_timeout=timedelta(seconds=random.choice((0, 30, 600, 3600))),
            max_wait=timedelta(seconds=random.choice((0, 5, 300))),
            losing=0.0 if on_gap == "wait" else random.choice((0.02, 0.1, 0.25)),
            fixed=random.choice((0.0, 0.0, 0.5, 1.0)),
        )

    @property
    def promises(self) -> Promises:
        """What the boards promise."""
        return Promises(complete=self.on_gap != "skip", one_order=self.order == "time")

    @property
    def patience(self) -> float:
        """Seconds after which something is done about whatever is missing."""
        return 1.0 + max(self.gap_timeout, self.max_wait).total_seconds()

    def strategy(self, resequencer: type[Resequencer]) -> Resequencer:
        """How they hear."""
        on_gap = Rebuild(tallies.using(VersionStream()), ASKED) if self.on_gap == "rebuild" else self.on_gap
        return resequencer(self.gap_timeout, on_gap, self.order, self.max_wait)

    def is_broken(self, name: str, progress: float) -> bool:
        """Whether the handler raises for a message while so large a part of the time of sending is over."""
        return progress < self.fixed and crc32(name.encode()) % _ONE_IN == 0

    def shows(self, random: Random, tally: str) -> tuple[str, ...]:
        """The boards that an order to a tally is shown to: mostly one; now and then it is shown to one twice."""
        if random.random() >= self.share:
            return ()
        first = int(tally) % self.boards
        second = random.choice((first, (first + 1) % self.boards))
        return (board_named(first), board_named(second))[: random.choice((1, 1, 2))]
