"""What an episode is about: entities, messages and settings, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Final, Literal
from zlib import crc32

from exactlyonce import Rebuild, Resequencer, VersionStream
from exactlyonce.drivers.lanes import BUDGET
from exactlyonce.values.lifetimes import Expiry, Lifetimes, Retention
from verification.simulation.history import Promises
from verification.simulation.wire import HOUR
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


_LIFETIMES: Final = ((30, 7), (10, 3), (4, 1))
_DAY: Final = 24 * HOUR
_PAGES: Final = 40
"""Messages to a tally, about, after which its ledger has cut a page."""
Restored = Literal["tallies", "everything"]
"""What is put back: some tallies, and nothing of the library; or all of them, with pages and books."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The quiet half of a seed.

    Attributes:
        messages: sent from outside.
        entities, skew: how many there are, and the exponent of the Zipf law they are chosen by.
        burst, pause: most messages sent in a row, and the mean of seconds between bursts.
        crowded: everything is about a few entities, and the store is so slow that deliveries take longer than they may.
        gap: mean of seconds between two messages of a burst.
        span: about how many seconds sending takes.
        processes: instances of the application.
        timed: share of messages whose senders promise their time.
        relaying, keeping: shares of messages that cause others, and of those whose tally keeps them for a while.
        asking: share of messages whose sender waits, and never sends them again.
        closing, looking, refusing: shares of messages that delete their entity, leave it as it is, or fail for good.
        failing: share of messages that fail for their own sake until whatever they lack is there.
        fillers: lengths of the padding of outputs, in characters.
        rounds: mean of seconds between two jobs of the caretakers.
        resting: seconds without work after which a process is ended.
        memory: bytes that a process remembers of entities.
        tries: of requests and of attempts.
        patience: seconds that a delivery may take.
        deliveries: after how many a message goes to the poison queue.
        batch: most deliveries that one call of a function takes.
        lifetimes: of messages; those that ship in every third episode.
        wrong: seconds by which the clock of one sender, and those of processes, may be wrong.
        reading: the boards.
        restored: what backups put back; None without any.
    """

    messages: int
    entities: int
    skew: float
    burst: int
    pause: float
    crowded: bool
    gap: float
    span: float
    processes: int
    timed: float
    relaying: float
    keeping: float
    asking: float
    closing: float
    looking: float
    refusing: float
    failing: float
    fillers: tuple[int, ...]
    rounds: float
    resting: float
    memory: int
    tries: int
    patience: float
    deliveries: int
    batch: int
    lifetimes: Lifetimes
    wrong: float
    reading: Reading
    restored: Restored | None = None

    @property
    def retention(self) -> float:
        """Seconds for which messages are remembered."""
        return self.lifetimes.retention.current.total_seconds()

    @classmethod
    def draw(cls, random: Random, messages: int, protocol: str) -> Plan:
        """A plan for so many messages to tallies of a protocol."""
        outbox = protocol == "outbox"
        entities = int(10 ** random.uniform(0.3, 3.0))
        crowded = random.random() < 0.2  # noqa: PLR2004
        entities = 2 if crowded else max(2, entities)
        reading = Reading.draw(random, entities, streams=protocol == "stream")
        burst = random.choice((1, 10, 40, 100))
        days, delivery_limit = random.choice(_LIFETIMES)
        expiry: Expiry = random.choice(("job", "store"))
        lifetimes = Lifetimes(Retention(timedelta(days=days)), timedelta(days=delivery_limit), expiry)
        # A minute to three retentions: in half of the episodes nothing grows old, in the others nearly everything does.
        span = 10 ** random.uniform(1.8, 4.9) if random.random() < 0.5 else random.uniform(0.3, 3.0) * days * _DAY  # noqa: PLR2004
        return cls(
            messages=messages,
            entities=entities,
            skew=random.uniform(0.3, 1.6),
            burst=burst,
            pause=span / messages * (burst + 1) / 2,
            crowded=crowded,
            gap=1.0 if crowded else random.choice((0.0, 0.0, 0.1)),
            span=span,
            processes=3 if crowded else random.choice((2, 2, 3, 5)),
            timed=random.choice((0.0, 0.5, 1.0)),
            relaying=random.choice((0.0, 0.1, 0.25)),
            keeping=random.choice((0.0, 0.5, 1.0)) if outbox else 0.0,
            asking=random.choice((0.0, 0.1, 0.4)),
            # Of a board that is deleted twice in one commit nobody could know the one order.
            closing=0.0 if reading.order == "time" else random.choice((0.0, 0.01, 0.1)),
            looking=random.choice((0.0, 0.05)),
            refusing=random.choice((0.0, 0.005)),
            failing=random.choice((0.0, 0.02, 0.2)),
            fillers=random.choice(((0,), (0, 0, 0, 400), (0,) * 40 + (400,) * 8 + (12_000,))),
            rounds=span / random.choice((10, 40)),
            resting=random.choice((120.0, 1800.0, 4 * HOUR)),
            memory=random.choice((0, 20_000, BUDGET)),
            tries=10 if crowded else random.choice((2, 4, 10)),
            patience=20.0 if crowded else random.choice((1.0, 5.0, 60.0, 240.0)),
            deliveries=1 if crowded else random.choice((2, 5, 20)),
            batch=random.choice((1, 1, 4, 16)),
            lifetimes=lifetimes,
            wrong=random.choice((0.0, 0.0, 300.0, 20 * HOUR)),
            reading=reading,
        )

    def with_restores(self, random: Random) -> Plan:
        """The plan with backups, by which a judge can still tell what there has to be in the end.

        What took place since a backup is sent again, and has other outputs. So nothing may depend on these, and nothing may
        grow too old meanwhile.
        """
        restored: Restored = random.choice(("tallies", "everything"))
        span, burst = min(self.span, _DAY), min(self.burst, 10)
        return replace(
            self,
            entities=min(self.entities, max(2, self.messages // _PAGES)),
            span=span,
            burst=burst,
            pause=span / self.messages * (burst + 1) / 2,
            rounds=span / random.choice((10, 40)),
            relaying=0.25,
            keeping=self.keeping if restored == "everything" else 0.0,
            asking=0.0,
            closing=0.0,
            looking=0.0,
            lifetimes=Lifetimes(),
            reading=replace(self.reading, share=0.0),
            restored=restored,
        )

    def failures(self, name: str) -> int:
        """How often the handler of tallies raises for a message before it does not any more."""
        drawn = crc32(name.encode())
        return 1 + drawn // 1000 % (self.deliveries + 3) if drawn % 1000 < 1000 * self.failing else 0
