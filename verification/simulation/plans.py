"""What an episode is about: entities, messages and settings, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Final, Literal
from zlib import crc32

from exactlyonce.drivers.lanes import BUDGET
from exactlyonce.values.lifetimes import Expiry, Lifetimes, Retention
from verification.simulation.application import Application
from verification.simulation.processes import Settings
from verification.simulation.reading import Reading
from verification.simulation.weather import HOUR

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

    def settings(self, application: Application) -> Settings:
        """What processes are started with."""
        return Settings(
            application,
            application.protocols.strategies,
            self.memory,
            self.tries,
            self.patience,
            self.deliveries,
            self.batch,
            self.lifetimes,
            self.wrong,
            self.resting,
        )
