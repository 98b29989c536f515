"""The states of a scenario, and every step from one to another.

A state is (store, queue, workers, delayed writes, budget left). Reductions, each of which leaves the verdict as it is:

- Workers are interchangeable, so they are sorted.
- Taking a delivery is one step with the first read of its attempt: a crash between the two changes nothing.
- Of two reads side by side the entity's comes first: one of the library that comes earlier sees nothing that a later one may
  not see, since its view may be as old as it likes.
- Transaction ids are the lowest that nothing refers to.
- Staged outputs that nothing refers to are swept; their places in the log stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from devtools.modelcheck.answers import Store, World, Write
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.workers import Worker, Workers

FAULTS: Final = ("crash", "unknown", "repeated", "stale")

State = tuple[Store, tuple[int, ...], tuple[Worker, ...], tuple[Write, ...], tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class Move:
    """One step from a state: who did what, and where it led.

    Attributes:
        said: for the story.
        state: afterwards.
        fault: whether it took a fault.
        violation: the property it broke.
    """

    said: str
    state: State
    fault: bool
    violation: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer to a worker and what the worker makes of it, as far as nothing else in the state matters.

    Attributes:
        cost: place of the fault in the budget; -1 for none.
        store, worker: afterwards.
        delayed: a write that may still take effect.
        violation, said: as in `Move`.
    """

    cost: int
    store: Store
    worker: Worker
    delayed: Write | None
    violation: str | None
    said: str


class Explorer:
    """Explores one scenario."""

    def __init__(self, scenario: Scenario, *, merge: bool = True) -> None:
        self.scenario = scenario
        self.world = World(scenario)
        self.workers = Workers(scenario, merge=merge)
        self.witnessed: set[str] = set()
        self._outcomes: dict[tuple[Worker, Store], tuple[Outcome, ...]] = {}

    def start(self) -> State:
        """The state in which nothing has happened."""
        budget = self.scenario.budget
        left = (budget.crashes, budget.unknown, budget.repeated, budget.stale)
        idle = tuple(self.workers.idle() for _ in range(self.scenario.workers))
        return (self.world.start(), self.scenario.copies, idle, (), left)

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state."""
        store, queue, workers, delayed, left = state
        for number, worker in enumerate(workers):
            if number and worker is workers[number - 1]:
                continue
            others = workers[:number] + workers[number + 1 :]
            if worker.situation is None:
                for begun, rest in self._deliveries(worker, queue):
                    yield from self._steps(begun, (store, rest, others, delayed, left))
            else:
                yield from self._steps(worker, (store, queue, others, delayed, left))
            if left[0] and (worker.situation is not None or worker.memory.published):
                back = tuple(copies + worker.held.count(number) for number, copies in enumerate(queue))
                spent = (left[0] - 1, *left[1:])
                gone = self.workers.sorted((*others, self.workers.idle()))
                yield Move(f"{worker.name} crashes", (store, back, gone, delayed, spent), fault=True)
        for number, write in enumerate(delayed):
            answer = self.world.land(write, store)
            rest_delayed = delayed[:number] + delayed[number + 1 :]
            landed = (answer.store, queue, workers, rest_delayed, left)
            self.witnessed.add("a delayed write took effect")
            yield Move(f"A delayed write arrives: {answer.said}", landed, fault=False, violation=answer.violation)

    def is_good_end(self, state: State) -> bool:
        """Every message was committed and published, and nobody is at work."""
        store, queue, workers, _, _ = state
        if any(queue) or any(worker.situation is not None for worker in workers):
            return False
        truth = store.entity.truth
        committed = {message for message, _, _ in truth.committed} if truth else set()
        published = {output.id for output in store.published}
        return all(key in committed and f"out:{key}" in published for key in self.workers.keys)

    def _deliveries(self, worker: Worker, queue: tuple[int, ...]) -> Iterator[tuple[Worker, tuple[int, ...]]]:
        """Every way to give an idle worker something to do; marking is one."""
        for group in self.workers.groups(queue):
            rest = list(queue)
            for number in group:
                rest[number] -= 1
            yield self.workers.begin(worker.memory, group), tuple(rest)
        if self.scenario.marking and worker.memory.published:
            yield self.workers.mark(worker.memory), queue

    def _steps(self, worker: Worker, rest: State) -> Iterator[Move]:
        """Every outcome of what a worker asks for. `rest` is the state without it."""
        store, queue, others, delayed, left = rest
        outcomes = self._outcomes.get((worker, store))
        if outcomes is None:
            outcomes = self._outcomes[worker, store] = tuple(self._answered(worker, store))
        for outcome in outcomes:
            place, after, moved, violation = outcome.cost, outcome.store, outcome.worker, outcome.violation
            spent = left
            if place >= 0:
                if not left[place]:
                    continue
                spent = (*left[:place], left[place] - 1, *left[place + 1 :])  # type: ignore[assignment]
            later = delayed if outcome.delayed is None else (*delayed, outcome.delayed)
            if moved.begins:
                moved = self.workers.named(moved, self._used(moved, after, others, later))
                moved, violation = self._settled(moved, after, violation)
            if after.library.stages:
                after = self._swept(after, (moved, *others), later)
            state = (after, queue, self.workers.sorted((*others, moved)), later, spent)
            yield Move(outcome.said, state, place >= 0, violation)

    def _answered(self, worker: Worker, store: Store) -> Iterator[Outcome]:
        for answer in self.world.answers(worker.asks, store):
            if answer.witnessed:
                self.witnessed.add(answer.witnessed)
            moved, violation = self._settled(self.workers.told(worker, answer.reply), answer.store, answer.violation)
            cost = -1 if answer.cost is None else FAULTS.index(answer.cost)
            yield Outcome(cost, answer.store, moved, answer.delayed, violation, f"{worker.name} {answer.said}")

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None]:
        """At the end of an attempt do at once what nobody else can notice: start over, or acknowledge."""
        situation = worker.situation
        if situation is None or situation.effect is not None:
            return worker, violation
        if isinstance(situation.result, Exception):
            raised = f"raised {type(situation.result).__name__}: {situation.result}"
            return self.workers.idle(), violation or raised
        following = self.workers.following(worker)
        if following.situation is not None:
            return following, violation
        truth = store.entity.truth
        committed = {message for message, _, _ in truth.committed} if truth else set()
        published = {output.id for output in store.published}
        for number in worker.held:
            key = self.workers.keys[number]
            if key not in committed:
                violation = violation or f"nothing_lost: {key} is acknowledged, but was never committed"
            elif f"out:{key}" not in published:
                violation = violation or f"nothing_lost: {key} is acknowledged, but its output was never published"
        return following, violation

    def _used(
        self, worker: Worker, store: Store, others: tuple[Worker, ...], delayed: tuple[Write, ...]
    ) -> frozenset[str]:
        """Transaction ids that something refers to."""
        used = {tx for version in store.entity.versions for _, tx, _ in version.committed}
        used.update(id.removeprefix("staged:") for id, _ in store.library.writes if id.startswith("staged:"))
        for write in delayed:
            used.update(self.workers.transactions_in(write))
        for one in (worker, *others):
            used.update(one.transactions)
        return frozenset(used)

    def _swept(self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> Store:
        """Without the content of staged outputs that nobody refers to: they are clean-up's, and no read asks for them."""
        staged = store.library.stages
        used = {tx for version in store.entity.versions for tx in self.world.transactions(version)}
        used.update(*(worker.transactions for worker in workers))
        used.update(*(self.workers.transactions_in(write) for write in delayed))
        garbage = staged - {f"staged:{tx}" for tx in used}
        if not garbage:
            return store
        writes = tuple(("", None) if id in garbage else (id, record) for id, record in store.library.writes)
        return self.world.store(store.entity, self.world.interned.library(writes), store.published)
