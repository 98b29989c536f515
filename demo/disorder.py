"""Disorder on the way to the leader board: messages change places, copies appear, and a few are lost.

What the games send to the board goes into a queue on the way, as settings can say of any destination. From there it is
brought to the board's queue: late, twice, or not at all. A message is sent on before it is taken away, so that a crash in
between loses nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from demo.queues import Queue, Received
from demo.shots import Shot
from demo.stack import DATABASE, Stack
from exactlyonce import Envelope
from exactlyonce.records.outbox import NUMBER, RECEIVER
from exactlyonce.values.envelope import EntityRef

Place = tuple[str, int]
"""A game, and the number of one of its outcomes."""

_LOST: Final = 2
"""Outcomes that are lost, each of another game."""
_FIRST_LOST: Final = 4
"""Lost is none of a game's first outcomes, so that there is a line on the board to be held up."""
_COPIED: Final = 0.1
_LONGEST_DELAY: Final = 2
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Gap:
    """What a line of the board waits for."""

    game: str
    source: str
    number: int
    held: int

    def __str__(self) -> str:
        return f"{self.game} waits for number {self.number}, with {self.held} held"


@dataclass
class Disorder:
    """The disorder of one demo.

    Attributes:
        random: its chance.
        places: outcomes that are lost, with all their copies.
        calm: whether it is over, so that everything is brought as it comes.
        displaced: messages that changed places.
        lost: bodies of lost messages, by their places.
    """

    random: Random
    places: frozenset[Place]
    calm: bool = False
    displaced: int = 0
    lost: dict[Place, bytes] = field(default_factory=dict)

    async def reign(self, way: Queue, board: Queue) -> None:
        """Bring messages from one queue to the other until cancelled."""
        while True:
            messages = await way.receive()
            await asyncio.gather(*(self._bring(message, way, board) for message in messages))
            if not messages:
                await asyncio.sleep(_POLL_SECONDS)

    async def give_back(self, board: Queue) -> None:
        """What was lost turns up again."""
        for body in self.lost.values():
            await board.send(body)
        self.lost.clear()

    async def _bring(self, message: Received, way: Queue, board: Queue) -> None:
        for delay in self._delays(message.body):
            await board.send(message.body, delay)
        await way.delete(message)

    def _delays(self, body: bytes) -> tuple[int, ...]:
        """After how many seconds a message is to appear: once, twice, or never."""
        if self.calm:
            return (0,)
        place = place_of(Envelope.read(body))
        if place in self.places:
            self.lost.setdefault(place, body)
            return ()
        copies = 1 + (self.random.random() < _COPIED)
        delays = tuple(self.random.randint(0, _LONGEST_DELAY) for _ in range(copies))
        self.displaced += any(delays)
        return delays


def plan_losses(shots: Iterable[Shot], random: Random) -> frozenset[Place]:
    """Choose outcomes to lose. Never a game's last one: that it is lost, no later one would show."""
    counts = Counter(shot.game for shot in shots)
    games = [game for game, count in sorted(counts.items()) if count > _FIRST_LOST]
    chosen = random.sample(games, min(_LOST, len(games)))
    return frozenset((game, random.randint(_FIRST_LOST, counts[game] - 1)) for game in chosen)


def place_of(outcome: Envelope) -> Place:
    """The place of an outcome in the channel of its game."""
    extensions = dict(outcome.extensions)
    return EntityRef.of_source(str(extensions[RECEIVER])).id, int(str(extensions[NUMBER]))


def gaps(stack: Stack) -> tuple[Gap, ...]:
    """The lines of the board that wait for something, by their documents."""
    boards: dict[str, Mapping[str, Any]] = {}
    for write in stack.cosmos.history(DATABASE, "boards"):
        if write.document is not None and "_ledger" in write.document:
            boards[write.id] = write.document["_ledger"]
    return tuple(
        Gap(game, item["source"], item["next"], sum(last - first + 1 for first, last in item["held"]))
        for game, ledger in boards.items()
        for item in ledger.get("receptions", ())
        if item["held"]
    )
