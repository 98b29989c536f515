"""What the protocol costs, counted by running it on the store in memory, without trouble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from typing import Any, Final

from devtools.modelcheck.specification.places import name_of
from devtools.modelcheck.specification.playing import Start, attempt, marking, message
from exactlyonce import Outbox
from exactlyonce.drivers.operations import store_operations
from exactlyonce.effects import PUBLISHED, Begin, Begun, Effect, Publish, Together
from exactlyonce.handling.attempts import Finished, Memory
from exactlyonce.stores.memory import MemoryStore

AT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
PRESETS: Final = {
    "Outbox()": Outbox(),
    "Outbox.transaction_id()": Outbox.transaction_id(),
    "Outbox.embedded()": Outbox.embedded(),
}
MOST: Final = 99


@dataclass(frozen=True, slots=True)
class Cost:
    """What one attempt asked of the store.

    Attributes:
        what: the attempt.
        requests: to the store; those side by side count each.
        rounds: to the store, one after the other; those side by side count once.
        asked: names of the effects, in order; sending included.
    """

    what: str
    requests: int
    rounds: int
    asked: tuple[str, ...]


class Counting:
    """Runs generators on a store in memory, and counts."""

    def __init__(self, strategy: Outbox) -> None:
        self._strategy = strategy
        self._perform = store_operations(MemoryStore(lambda: AT))
        self._transactions = count()
        self.memory = Memory()

    def process(self, id: str, what: str = "", *, forgetful: bool = False) -> Cost:
        """Process a message; in the process that ran before, or in one that knows nothing."""
        return self._run(attempt(self._strategy, Memory() if forgetful else self.memory, message(id)), what)

    def mark(self, what: str) -> Cost:
        """Mark what was published."""
        return self._run(marking(self._strategy, self.memory), what)

    def _run(self, start: Start, what: str) -> Cost:
        step = start.run()
        asked: list[str] = []
        requests = rounds = 0
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Finished = finished.value
                self.memory = result.memory
                return Cost(what, requests, rounds, tuple(asked))
            asked += [name_of(effect)] * (not isinstance(effect, Begin))
            requests += 2 if isinstance(effect, Together) else not isinstance(effect, Begin | Publish)
            rounds += not isinstance(effect, Begin | Publish)
            reply = self._answer(effect)

    def _answer(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Together):
            return self._answer(effect.first), self._answer(effect.second)
        if isinstance(effect, Begin):
            return Begun(AT, tuple(f"t{next(self._transactions)}" for _ in range(effect.count)))
        return PUBLISHED if isinstance(effect, Publish) else self._perform[type(effect)](effect)


def costs(strategy: Outbox) -> Iterator[Cost]:
    """The usual attempts of a preset."""
    counting = Counting(strategy)
    yield counting.process("m0", "first message of an entity")
    yield counting.mark("marking, once the entity is quiet")
    if strategy.window is None:
        yield counting.process("m1", "next message")
    elif strategy.window == 1:
        yield counting.process("m1", "next message: the window leaves every time")
    else:
        yield counting.process("m1", "next message")
        for number in range(2, strategy.window):
            counting.process(f"m{number}")
        yield counting.process("left", f"every {strategy.window}th: the window leaves")
        counting.process("last")
    counting.process("latest")
    yield counting.process("latest", "duplicate in the ledger, owing still", forgetful=True)
    if strategy.window is not None:
        yield counting.process("m0", "duplicate with a record", forgetful=True)
