"""The engine alone: a strategy's generator, and a world in memory that answers its effects for next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Again, Before, Finished, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FindProcessed, Found, HasRecords, WriteProcessed, Written
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.handling.context import Context
from exactlyonce.handling.routes import Routes
from exactlyonce.transports.memory import MemoryTransport
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import Origin
from handlers.leader_board import leader_board
from handlers.messages import Missed
from handlers.shooting_range import ranges

GAME: Final = ranges.ref("game-1")
OUTBOX: Final = Outbox()
ROUTES: Final = Routes.to((leader_board,), {leader_board.name: MemoryTransport().max_bytes})
TOKEN: Final = "0:-1#1"  # noqa: S105
NOW: Final = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Load:
    """What the engine is to do.

    Attributes:
        together: how many messages each attempt commits.
        outputs: how many outputs each message has: one or none.
    """

    together: int
    outputs: int

    @property
    def name(self) -> str:
        """For the result."""
        return f"{self.together} in a commit, {'one output' if self.outputs else 'no output'} each"


class World:
    """The newest document of one entity, and nothing else; it forgets records, since no message comes twice.

    Attributes:
        steps: how many effects it was asked for.
        messages: how many transaction ids it gave out.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.messages = 0
        self._document: Json | None = None
        self._saves = 0
        self._answers: Mapping[type[Effect[Any]], Callable[[Any], Any]] = {
            Begin: self._begin,
            LoadEntity: self._load,
            SaveEntity: self._save,
            Together: lambda effect: (self._answer(effect.first), self._answer(effect.second)),
            FindProcessed: lambda _: Found(frozenset(), TOKEN),
            HasRecords: lambda _: False,
            WriteProcessed: lambda _: Written(TOKEN),
            Publish: lambda _: PUBLISHED,
        }

    def run(self, step: Step[Finished | Again]) -> Finished:
        """Run an attempt to its end. Raises `RuntimeError` if it did not finish, which nothing here gives a reason for."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                if isinstance(finished.value, Finished) and not finished.value.failed:
                    return finished.value
                raise RuntimeError(f"The attempt came to {finished.value}.") from None
            self.steps += 1
            reply = self._answer(effect)

    def _answer(self, effect: Effect[Any]) -> Any:
        return self._answers[type(effect)](effect)

    def _begin(self, effect: Begin) -> Begun:
        first, self.messages = self.messages, self.messages + effect.count
        return Begun(NOW, tuple(f"{number:032x}" for number in range(first, self.messages)))

    def _load(self, _: LoadEntity) -> Loaded:
        if self._document is None:
            return Loaded(None, None, 0, TOKEN)
        return Loaded(self._document, str(self._saves), 1, TOKEN)

    def _save(self, effect: SaveEntity) -> Saved:
        self._document = effect.document
        self._saves += 1
        return Saved(str(self._saves), TOKEN)


class Engine:
    """An entity that is busy: its window fills and leaves, and each commit marks what the one before published.

    Args:
        load: what it does.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._world = World()
        self._memory = Memory()
        self._handled = _handled(load.outputs)

    def spend(self, messages: int) -> tuple[float, int]:
        """Process so many new messages; return seconds of CPU time and the number of effects."""
        first, steps = self._world.messages, self._world.steps
        given = tuple(_shot(number) for number in range(first, first + messages))
        groups = [given[begin : begin + self._load.together] for begin in range(0, messages, self._load.together)]
        began = time.thread_time()
        for group in groups:
            work = Work(GAME, group, self._handle, Json("{}"))
            self._memory = self._world.run(OUTBOX.attempt(work, self._memory)).memory
        return time.thread_time() - began, self._world.steps - steps

    def _handle(self, _: Before, __: Envelope) -> Handled:
        return self._handled


def _shot(number: int) -> Envelope:
    return Envelope("bench", f"shot-{number}", "shooting-range.fire-at", Json('{"game_id":"game-1","position":1}'))


def _handled(outputs: int) -> Handled:
    """What the handler of the shooting range makes of a shot, made once: handlers are not a part of the engine."""
    body = Json.of({"id": GAME.id, "gameId": GAME.id, "target": 17, "attempts": 3, "round": 12})
    context = Context(Origin(GAME, "bench/shot-1"), NOW, ROUTES, tx="t-1")
    for _ in range(outputs):
        context.announce(Missed(id=context.new_id(), game_id=GAME.id, round=12, attempt=2))
    return Handled(body, context.outputs, sequences=context.sequences)
