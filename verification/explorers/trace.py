"""A way through the states as a story: who did what, and what the store held in the end.

Workers are interchangeable and stand sorted in a state; a story gives each process a letter and keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import is_
from string import ascii_uppercase
from typing import Any, Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.library import DeletePages, DeleteStaged, Unpark
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import split
from verification.explorers.explorer import FROM_MEMORY, GIVES_BACK, GOES_ON, PASSES, Explorer
from verification.explorers.moves import Move, State
from verification.world.scenario import PLACES, Start
from verification.world.store import Entity, Store, history_of
from verification.world.workers import Worker
from verification.world.writes import WriteDown
from yieldcheck import path_through

NOBODY: Final = -1
BEST_EFFORT: Final = (DeleteStaged, DeletePages, Unpark, ReplaceCompanions, DeleteCompanions)
"""Writes whose reply does not say whether they took effect."""
_HAPPENING: Final = {GIVES_BACK: None, "crashes": "crashes", GOES_ON: "returned", PASSES: None}
"""The budget that what happens takes from."""
_NAMES: Final = {place: name for name, place in PLACES.items()}


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a run.

    Attributes:
        process: number of the process that took it; NOBODY for what happens by itself.
        said: for people, without the name of the process.
        task: what the process begins with this step; None if it is at it already, or nobody's step.
        messages: keys of the messages that the task is about; several copies of one are listed so often.
        effect: what was asked, by this process or, if delayed, by an earlier one; None for a crash, a happening, or
            where the process gives back what it holds.
        reply: the answer; None where there is no effect.
        applied: whether a write or a send took effect with this step.
        fault: the name of the budget it took from; None for none.
        crashed: whether the process finished with this step, and crashed before it acknowledged.
        start: how the run starts that the process begins with this step.
    """

    process: int
    said: str
    task: str | None
    messages: tuple[str, ...]
    effect: Effect[Any] | WriteDown | None
    reply: Any
    applied: bool
    fault: str | None
    delayed: bool
    store: Store
    crashed: bool = False
    start: Start | None = None

    @property
    def crash(self) -> bool:
        return self.process != NOBODY and self.effect is None and self.fault is not None

    @property
    def from_memory(self) -> bool:
        """Whether the process has asked nobody for anything in this step."""
        return self.said.startswith(FROM_MEMORY) or (self.task is not None and self.effect is None)

    def __str__(self) -> str:
        if self.process == NOBODY:
            return self.said
        taken = f" {_TASKS[self.task]} {', '.join(self.messages)} and".replace("  ", " ") if self.task else ""
        return f"{ascii_uppercase[self.process]}{taken} {self.said}"


_TASKS: Final = {
    "attempt": "takes",
    "sweep": "sweeps",
    "settle": "settles",
    "requeue": "requeues",
    "clean": "cleans up",
    "clean pages": "cleans up pages",
    "stumble": "takes, with a handler that raises,",
    "nudge": "looks after the read model",
    "replay": "sends again",
    "answer": "is asked for what is missing",
}


def replayed(explorer: Explorer, states: list[State], last: str | None = None) -> tuple[Event, ...]:
    """The events that lead through these states, each but the first a successor of the one before; `last` falls at the end."""
    return events_of(explorer, states[0], path_through(explorer, states, last))


def events_of(explorer: Explorer, start: State, path: Sequence[Move]) -> tuple[Event, ...]:
    processes = list(range(len(start[2])))
    events: list[Event] = []
    before = start
    for move in path:
        events.append(event_of(explorer, move, before, processes))
        processes = _placed(move, before, processes)
        before = move.state
    return tuple(events)


def story_of(events: tuple[Event, ...]) -> tuple[str, ...]:
    """The story: one line for each event, and what the store holds in the end."""
    return (*(str(event) for event in events), *(f"  {line}" for line in holding(events[-1].store)))


def holding(store: Store) -> tuple[str, ...]:
    lines: list[str] = []
    for number, entity in enumerate(store.entities):
        name = "entity" if len(store.entities) == 1 else f"entity {number}"
        lines += (f"{name}{line}" for line in (_held(entity) if store.libraries else _held_with_companions(entity)))
        if store.libraries:
            library = ", ".join(sorted(store.libraries[number].now))
            lines.append(f"{name}'s partition of the library: {library or 'nothing'}")
    lines.append(f"published: outputs of {', '.join(sorted(store.published)) or 'nothing'}")
    if store.parked:
        lines.append(f"parked: {', '.join(sorted(store.parked))}")
    return tuple(lines)


def _held(entity: Entity) -> tuple[str, ...]:
    ledger = entity.ledger
    owing = ", ".join(item.tx for item in ledger.outbox)
    left = f", {ledger.left} have left" if ledger.left else ""
    history = history_of(entity.truth.document) or "nothing"
    return (
        f": {history} in its state; {len(split(ledger.marks))} marks in its ledger{left}; {owing or 'nothing'} owes",
    )


def _held_with_companions(entity: Entity) -> tuple[str, ...]:
    ledger = entity.ledger
    owing = ", ".join(item.tx for item in ledger.outbox)
    received = (f"{reception.next} is next in {reception.channel}" for reception in ledger.receptions)
    parts = (f"{owing} owes" if owing else "", *received)
    history = history_of(entity.truth.document) or "nothing"
    companions = ", ".join(_shown(item) for item, _ in entity.now.values())
    return (
        f": version {ledger.version}, {history} in its state{''.join(f'; {part}' for part in parts if part)}",
        f", companions: {companions or 'none'}",
    )


def _shown(companion: Companion) -> str:
    match companion:
        case ColocatedRecord():
            return f"{companion.message}{', which owes' if companion.owed is not None else ''}"
        case StreamEntry():
            return f"{companion.message} as version {companion.version}"
        case NumberedMessage():
            return f"{companion.message} as number {companion.number}{', held' if companion.held is not None else ''}"


def event_of(explorer: Explorer, move: Move, before: State, processes: list[int]) -> Event:
    """One step as an event. `processes` gives the process in each place of the state before."""
    process = NOBODY if move.slot < 0 else processes[move.slot]
    if isinstance(move.what, str):
        fault, late = _HAPPENING.get(move.what, "poisoned"), move.write is not None and move.fault
        if move.write is not None:
            fault = "unknown" if late else None
        return Event(process, move.what, None, (), move.write, None, not late, fault, late, move.state[0])
    answer = move.what
    start = None if move.begun is None or move.begun.situation is None else move.begun.situation.start
    messages = () if start is None else tuple(explorer.keys[number] for number in start.messages)
    effect: Effect[Any] | WriteDown | None
    if move.slot >= 0:
        worker = move.begun or before[2][move.slot]
        effect = worker.asks
    else:
        effect = move.write
    fault = None if answer.cost is None else _NAMES[answer.cost]
    said = answer.said if move.slot >= 0 else f"A delayed write arrives: {answer.said}"
    said += "; it crashes before it acknowledges" if move.crashed else ""
    lost = answer.reply in (UNKNOWN, BEHIND) or (isinstance(effect, BEST_EFFORT) and answer.cost is not None)
    applied = not lost or _has_changed(before[0], answer.store)
    return Event(
        process,
        said,
        None if start is None else start.task,
        messages,
        effect,
        answer.reply,
        applied,
        fault,
        answer.delayed is not None,
        move.state[0],
        move.crashed,
        start,
    )


def _has_changed(before: Store, after: Store) -> bool:
    """Whether a store holds something else, or something was sent. What a process notes of its numbers is in its memory."""
    there = [field.name for field in fields(Store) if field.name != "books"]
    return any(getattr(before, item) != getattr(after, item) for item in there) or _written(before) != _written(after)


def _written(store: Store) -> list[Any]:
    return [(book.id, book.written) for book in store.books if book.written]


def _placed(move: Move, before: State, processes: list[int]) -> list[int]:
    standing = [(worker, processes[slot]) for slot, worker in enumerate(before[2]) if slot != move.slot]
    if move.moved is not None:
        standing.append((move.moved, processes[move.slot]))
    placed: dict[int, int] = {}
    for fits in (is_, _are_alike, _are_any):
        for place, worker in enumerate(move.state[2]):
            found = next((item for item in standing if fits(item[0], worker)), None)
            if place not in placed and found is not None:
                standing.remove(found)
                placed[place] = found[1]
    return [placed[place] for place in range(len(move.state[2]))]


def _are_alike(worker: Worker, other: Worker) -> bool:
    """Whether both hold the same deliveries, and both are at work or idle: where drafts were forgotten, that has to do."""
    return (worker.held, worker.situation is None) == (other.held, other.situation is None)


def _are_any(*_: Worker) -> bool:
    """True: where deliveries have other names, too, nothing is left to distinguish them by."""
    return True
