"""What an episode is about: entities, messages and settings, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final
from zlib import crc32

from exactlyonce.values.lifetimes import Lifetimes, Retention
from verification.simulation.application import Application
from verification.simulation.processes import Settings
from verification.simulation.reading import Reading
from verification.simulation.weather import HOUR

_LIFETIMES: Final = tuple(
    Lifetimes(Retention(timedelta(days=retention)), timedelta(days=delivery_limit))
    for retention, delivery_limit in ((30, 7), (10, 3), (4, 1))
)
_DAY: Final = 24 * HOUR
_WINDOWED: Final = (
    (16, 32 * 1024),
    (16, 0),
    (1, 0),
    (1, 32 * 1024),
    (2, 300),
    (3, 32 * 1024),
    (3, 0),
    (8, 600),
)


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
        presets: window and inline limit of each setting in use; a window of None keeps everything.
        relaying, closing, looking, refusing: shares of messages that cause others, delete their entity, leave it as it is, or
            fail for good.
        failing: share of messages that fail for their own sake until whatever they lack is there.
        fillers: lengths of the padding of outputs, in characters.
        rounds: mean of seconds between two jobs of the caretakers.
        mark_after: seconds; see `Lanes`.
        tries: of requests and of attempts.
        patience: seconds that a delivery may take.
        deliveries: after how many a message goes to the poison queue.
        batch: most deliveries that one call of a function takes.
        lifetimes: of messages; those that ship in every third episode.
        wrong: seconds by which the clock of one sender, and those of processes, may be wrong.
        reading: the boards.
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
    presets: tuple[tuple[int | None, int | None], ...]
    relaying: float
    closing: float
    looking: float
    refusing: float
    failing: float
    fillers: tuple[int, ...]
    rounds: float
    mark_after: float
    tries: int
    patience: float
    deliveries: int
    batch: int
    lifetimes: Lifetimes
    wrong: float
    reading: Reading

    @property
    def retention(self) -> float:
        """Seconds for which messages are remembered."""
        return self.lifetimes.retention.current.total_seconds()

    @classmethod
    def draw(cls, random: Random, messages: int, *, streams: bool) -> Plan:
        """A plan for so many messages to tallies, which may keep streams."""
        embedded_only = random.random() < 0.1  # noqa: PLR2004
        presets: list[tuple[int | None, int | None]] = list(random.sample(_WINDOWED, random.choice((1, 1, 2, 3))))
        if embedded_only or random.random() < 0.2:  # noqa: PLR2004
            presets = [(None, None), *([] if embedded_only else presets)]
        unbounded = presets[0][0] is None
        entities = int(messages * 10 ** random.uniform(-1.0, 0.0)) if unbounded else int(10 ** random.uniform(1, 3.5))
        crowded = random.random() < 0.2  # noqa: PLR2004
        entities = 2 if crowded else max(2, entities)
        reading = Reading.draw(random, entities, streams=streams)
        burst = random.choice((1, 10, 40, 100))
        lifetimes = random.choice(_LIFETIMES)
        days = lifetimes.retention.current.days
        # A minute to three retentions: in half of the episodes nothing grows old, in the others nearly everything does.
        span = 10 ** random.uniform(1.8, 4.9) if random.random() < 0.5 else random.uniform(0.3, 3.0) * days * _DAY  # noqa: PLR2004
        return cls(
            messages=messages,
            entities=entities,
            skew=random.uniform(0, 0.5) if unbounded else random.uniform(0.3, 1.6),
            burst=burst,
            pause=span / messages * (burst + 1) / 2,
            crowded=crowded,
            gap=1.0 if crowded else random.choice((0.0, 0.0, 0.1)),
            span=span,
            processes=3 if crowded else random.choice((2, 2, 3, 5)),
            presets=tuple(presets),
            relaying=random.choice((0.0, 0.1, 0.25)),
            # Of a board that is deleted twice in one commit nobody could know the one order.
            closing=0.0 if reading.order == "time" else random.choice((0.0, 0.01, 0.1)),
            looking=random.choice((0.0, 0.05)),
            refusing=random.choice((0.0, 0.005)),
            failing=random.choice((0.0, 0.02, 0.2)),
            fillers=random.choice(((0,), (0, 0, 0, 400), (0,) * 40 + (400,) * 8 + (12_000,))),
            rounds=span / random.choice((10, 40)),
            mark_after=random.choice((0.5, 10.0)),
            tries=10 if crowded else random.choice((2, 4, 10)),
            patience=20.0 if crowded else random.choice((1.0, 5.0, 60.0, 240.0)),
            deliveries=1 if crowded else random.choice((2, 5, 20)),
            batch=random.choice((1, 1, 4, 16)),
            lifetimes=lifetimes,
            wrong=random.choice((0.0, 0.0, 300.0, 20 * HOUR)),
            reading=reading,
        )

    def failures(self, name: str) -> int:
        """How often the handler of tallies raises for a message before it does not any more."""
        drawn = crc32(name.encode())
        return 1 + drawn // 1000 % (self.deliveries + 3) if drawn % 1000 < 1000 * self.failing else 0

    def settings(self, application: Application, channels: int) -> Settings:
        """What processes are started with: strategies whose records are companions, or outboxes with the presets.

        Args:
            application: the entity types.
            channels: for how many an outbox has room.
        """
        presets = (
            application.protocols.outbox(window, inline_limit, channels) for window, inline_limit in self.presets
        )
        strategies = application.protocols.companions or tuple(presets)
        return Settings(
            application,
            strategies,
            self.mark_after,
            self.tries,
            self.patience,
            self.deliveries,
            self.batch,
            self.lifetimes,
            self.wrong,
        )
