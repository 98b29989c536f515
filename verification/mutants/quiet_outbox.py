"""A world without faults and without company: what a strategy costs when nothing goes wrong.

Counting here is how the checker sees a mutant that only wastes: its requests are more than those of the shipped strategy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final, TypeVar

from exactlyonce.attempt import Again, Attempts, Before, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    CloseNumbers,
    DeletePages,
    DeleteStaged,
    FindPages,
    FindPaid,
    FoundPages,
    FoundStaged,
    HasPages,
    LoadStaged,
    OpenNumbers,
    Park,
    Stage,
    WritePage,
    Written,
)
from exactlyonce.records.ledger import Page, read_entity
from exactlyonce.records.library import Opened, StagedOutputs, transaction
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, Envelope, key_of, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json

ENTITY: Final = EntityRef("account", ("a",), "a")
FREE: Final = (Begin, Publish, OpenNumbers, FindPaid, CloseNumbers)
"""No requests to the store."""
ANY: Final = "*"
AT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
ENDLESS: Final = 100
SILENT: Final = 10
"""Messages from this number on are handled without an output."""
UNTIMED: Final = 20
"""Messages from this number on have no stable time."""
Result = TypeVar("Result")
Version = tuple[Json | None, str | None, int]
"""Document, ETag and position."""


@dataclass
class QuietWorld:
    """One entity, its partition of the library, and the book of one process; writes are answered, reads are fresh.

    Attributes:
        lagging: reads are as old as their tokens allow instead; of the entity, one version at most. It shows what tokens save.
        requests: to the store, by the name of the effect.
        published: how often something was handed to a transport.
        rounds: waits for a reply; requests side by side are one.
        bytes: of all entity documents saved.
    """

    lagging: bool = False
    versions: list[Version] = field(default_factory=lambda: [(None, None, 0)])
    writes: int = 0
    opened: list[str] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    pages: dict[int, tuple[Page, int]] = field(default_factory=dict)
    staged: dict[str, StagedOutputs] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    published: int = 0
    rounds: int = 0
    bytes: int = 0

    def run(self, step: Step[Result]) -> Result:
        """One attempt or chore, to its end."""
        try:
            effect = next(step)
            for _ in range(ENDLESS):
                self.rounds += 1
                effect = step.send(self._reply(effect))
        except StopIteration as end:
            result: Result = end.value
            return result
        raise RecursionError(f"An attempt that asks more than {ENDLESS} times; the last time for {effect}")

    def stopped_after_commit(self, strategy: Attempts, number: int) -> None:
        """A process takes a message on this entity and is gone right after its first save."""
        step = strategy.attempt(work_of(number), Memory())
        effect = next(step)
        while not isinstance(effect, SaveEntity):
            effect = step.send(self._reply(effect))
        self._reply(effect)
        step.close()

    def _reply(self, effect: Effect[Any]) -> Any:  # noqa: PLR0911
        if isinstance(effect, Together):
            return (self._reply(effect.first), self._reply(effect.second))
        if isinstance(effect, FREE):
            return self._without_store(effect)
        self.requests[type(effect).__name__] += 1
        match effect:
            case LoadEntity():
                old = self.lagging and len(self.versions) > 1 and self.versions[-1][2] > _position(effect.token)
                document, etag, position = self.versions[-2 if old else -1]
                return Loaded(document, etag, 0 if document is None else int(AT.timestamp()), f"0:-1#{position}")
            case FindPages():
                seen = _position(effect.token) if self.lagging else self.writes
                pages = (page for page, position in self.pages.values() if position <= seen)
                return FoundPages(tuple(filter(effect.asks_for, pages)))
            case HasPages():
                return bool(self.pages)
            case LoadStaged():
                return FoundStaged(tuple(self.staged[tx] for tx in effect.transactions if tx in self.staged))
            case _:
                return self._write(effect)

    def _without_store(self, effect: Effect[Any]) -> Any:
        match effect:
            case Begin():
                return Begun(AT, self._numbers(effect.count))
            case OpenNumbers():
                return Opened(AT, self._numbers(effect.count))
            case FindPaid():
                return self.closed.intersection(effect.transactions)
            case CloseNumbers():
                self.closed.update(effect.transactions)
                return None
            case _:
                self.published += 1
                return PUBLISHED

    def _numbers(self, count: int) -> tuple[str, ...]:
        first = len(self.opened) + 1
        numbers = tuple(transaction("b", number) for number in range(first, first + count))
        self.opened += numbers
        return numbers

    def _write(self, effect: Effect[Any]) -> Any:  # One case for each write.
        self.writes += 1
        match effect:
            case SaveEntity():
                if effect.etag not in (ANY, self.versions[-1][1]):
                    return Conflict(self._token)
                self.bytes += effect.document.size
                self.versions.append((effect.document, str(self.writes), self.writes))
                return Saved(str(self.writes), self._token)
            case WritePage():
                self.pages.setdefault(effect.page.number, (effect.page, self.writes))
            case Stage():
                self.staged.update({document.tx: document for document in effect.documents})
            case Park():
                pass
            case _:
                self._delete(effect)
                return None
        return Written(self._token)

    def _delete(self, effect: Effect[Any]) -> None:
        match effect:
            case DeleteStaged():
                for tx in effect.transactions:
                    self.staged.pop(tx, None)
            case DeletePages():
                for after, _ in effect.pages:
                    self.pages.pop(after, None)
            case _:
                raise TypeError(effect)

    @property
    def owing(self) -> int:
        """How many transactions owe something, as the entity says."""
        ledger = read_entity(ENTITY, self.versions[-1][0]).ledger
        return 0 if ledger is None else len(ledger.outbox)

    @property
    def open(self) -> int:
        """How many numbers are open."""
        return len(self.opened) - len(self.closed.intersection(self.opened))

    @property
    def _token(self) -> str:
        return f"0:-1#{self.writes}"


def handled_in_turn(strategy: Attempts, messages: Iterable[int], world: QuietWorld | None = None) -> QuietWorld:
    """Each of these messages, one after the other by one process, again where it must; a number may come twice."""
    world = world or QuietWorld()
    memory = Memory()
    for number in messages:
        memory = repeated(world, partial(strategy.attempt, work_of(number)), memory)
    return world


def repeated(world: QuietWorld, begin: Callable[[Memory], Step[Any]], memory: Memory) -> Memory:
    """An attempt or a chore as often as it takes; what its process knows afterwards."""
    for _ in range(ENDLESS):
        result = world.run(begin(memory))
        memory = result.memory
        if not isinstance(result, Again):
            return memory
    raise RecursionError(f"Not finished after {ENDLESS} attempts")


def work_of(*numbers: int) -> Work:
    """An attempt on these messages."""
    return Work(ENTITY, tuple(map(_envelope, numbers)), _handle, Json('{"id":"a"}'))


def _envelope(number: int) -> Envelope:
    time = () if number >= UNTIMED else ((STABLE_TIME, stable_text(milliseconds(AT))),)
    return Envelope("web", f"m{number}", "test", Json("{}"), extensions=time)


def number_of(envelope: Envelope) -> int:
    """The number of a message."""
    return int(envelope.id.removeprefix("m"))


def _position(token: str | None) -> int:
    return 0 if token is None else int(token.rpartition("#")[2])


def _handle(before: Before, envelope: Envelope) -> Handled:
    count = 0 if before.body is None else before.body.value["handled"]
    if SILENT <= number_of(envelope) < UNTIMED:
        return Handled(Json.of({"id": "a", "handled": count + 1}))
    output = Output(f"out:{key_of(envelope)}", "out", Json.of({"on": count}))
    return Handled(Json.of({"id": "a", "handled": count + 1}), (output,))
