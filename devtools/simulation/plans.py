"""What an episode is about: entities, messages and settings, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from devtools.simulation.application import Application
from devtools.simulation.processes import Settings
from devtools.simulation.reading import Reading

RETENTION: Final = timedelta(days=2)
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
        burst, pause: most messages sent at once, and the mean of seconds between bursts.
        span: about how many seconds sending takes.
        processes: instances of the application.
        presets: window and inline limit of each setting in use; a window of None keeps everything.
        relaying, closing, looking, refusing: shares of messages that cause others, delete their entity, leave it as it is, or
            fail for good.
        fillers: lengths of the padding of outputs, in characters.
        rounds: mean of seconds between two jobs of the caretakers.
        mark_after: seconds; see `Combiner`.
        tries: of requests and of attempts.
        deliveries: after how many a message goes to the poison queue.
        reading: the boards.
    """

    messages: int
    entities: int
    skew: float
    burst: int
    pause: float
    span: float
    processes: int
    presets: tuple[tuple[int | None, int | None], ...]
    relaying: float
    closing: float
    looking: float
    refusing: float
    fillers: tuple[int, ...]
    rounds: float
    mark_after: float
    tries: int
    deliveries: int
    reading: Reading

    @classmethod
    def draw(cls, random: Random, messages: int, *, streams: bool) -> Plan:
        """A plan for so many messages to tallies, which may keep streams."""
        embedded_only = random.random() < 0.1  # noqa: PLR2004
        presets: list[tuple[int | None, int | None]] = list(random.sample(_WINDOWED, random.choice((1, 1, 2, 3))))
        if embedded_only or random.random() < 0.2:  # noqa: PLR2004
            presets = [(None, None), *([] if embedded_only else presets)]
        unbounded = presets[0][0] is None
        entities = int(messages * 10 ** random.uniform(-1.0, 0.0)) if unbounded else int(10 ** random.uniform(1, 3.5))
        entities = max(2, entities)
        reading = Reading.draw(random, entities, streams=streams)
        burst = random.choice((1, 10, 40, 100))
        span = 10 ** random.uniform(1.8, 5.85)  # A minute to eight days.
        return cls(
            messages=messages,
            entities=entities,
            skew=random.uniform(0, 0.5) if unbounded else random.uniform(0.3, 1.6),
            burst=burst,
            pause=span / messages * (burst + 1) / 2,
            span=span,
            processes=random.choice((2, 2, 3, 5)),
            presets=tuple(presets),
            relaying=random.choice((0.0, 0.1, 0.25)),
            # Of a board that is deleted twice in one commit nobody could tell the one order.
            closing=0.0 if reading.order == "time" else random.choice((0.0, 0.01, 0.1)),
            looking=random.choice((0.0, 0.05)),
            refusing=random.choice((0.0, 0.005)),
            fillers=random.choice(((0,), (0, 0, 0, 400), (0,) * 40 + (400,) * 8 + (12_000,))),
            rounds=span / random.choice((10, 40)),
            mark_after=random.choice((0.5, 10.0)),
            tries=random.choice((2, 4, 10)),
            deliveries=random.choice((2, 5, 20)),
            reading=reading,
        )

    def settings(self, application: Application) -> Settings:
        """What processes are started with: strategies beside the entity, or, without any, outboxes with the presets."""
        presets = (application.protocols.outbox(window, inline_limit) for window, inline_limit in self.presets)
        strategies = application.protocols.beside or tuple(presets)
        return Settings(application, strategies, self.mark_after, self.tries, self.deliveries)
