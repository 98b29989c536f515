"""The states of a scenario, and every step from one to another.

A state is (store, queues, workers, delayed writes, budget left). What is left out, and why nothing is lost by it, is told in
docs/model-checking.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from exactlyonce.effects.library import DeleteParked
from exactlyonce.protocols.outbox.clean import Cleaned
from verification.checker.amounts import spent, with_copies, without_copies
from verification.checker.answers import World
from verification.checker.deliveries import (
    RETURNED,
    SPOILED,
    come_again,
    ever_parked,
    given_up,
    may_arrive,
    returned,
    vanished,
)
from verification.checker.handler import key_of_number
from verification.checker.judging import is_good_end, lost
from verification.checker.mentions import Write
from verification.checker.moves import Move, Outcome
from verification.checker.reductions import (
    State,
    alike_messages,
    alive,
    interchangeable,
    sorted_workers,
    swept,
    used_transactions,
)
from verification.checker.scenarios import PLACES, Scenario
from verification.checker.store import Store
from verification.checker.workers import Start, Worker, Workers
from verification.checker.writes import Answer

CRASH = PLACES["crashes"]
GIVES_BACK = "gives back what it holds"
PASSES = "Twelve hours pass"
GOES_ON = "has to give back a delivery, and goes on"
COPIES = 2
"""Most copies of an output that wait at its consumer: more would do what two do, one after the other."""


class Explorer:
    """Explores one scenario."""

    def __init__(self, scenario: Scenario, *, merge: bool = True) -> None:
        self.scenario = scenario
        self.world = World(scenario)
        self.workers = Workers(scenario, merge=merge)
        self.witnessed: set[str] = set()
        self.keys = tuple(key_of_number(number) for number in range(len(scenario.copies)))
        self._outcomes: dict[tuple[Worker, Store], tuple[Outcome, ...]] = {}
        self._collects = not scenario.budget.cleanings
        self._alike = alike_messages(scenario)

    def start(self) -> State:
        """The state in which nothing has happened."""
        idle = tuple(self.workers.idle() for _ in range(self.scenario.workers))
        poison = (0,) * (len(self.keys) if self.scenario.budget.poisoned else 0)
        queue = (*self.scenario.copies, *poison)
        return (self.world.stores.empty(self.scenario.entities), queue, idle, (), self.scenario.budget.amounts)

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state."""
        store, queue, workers, delayed, left = state
        for slot, worker in enumerate(workers):
            if slot and worker is workers[slot - 1]:
                continue
            others = workers[:slot] + workers[slot + 1 :]
            if worker.situation is None:
                for begun, rest, remains in self._tasks(worker, state, others):
                    yield from self._steps(begun, (store, rest, others, delayed, remains), slot, begun)
            else:
                yield from self._steps(worker, (store, queue, others, delayed, left), slot)
                if worker.starts_over:
                    yield self._gives_back(worker, others, state, slot)
                if left[RETURNED] and worker.situation.start.task == "attempt":
                    self.witnessed.add("a delivery was given back while its attempt went on")
                    for after, going_on in returned(self.workers, worker, others, state):
                        yield Move(after, True, None, slot, None, GOES_ON, going_on)
            if left[CRASH] and (worker.situation is not None or worker.remembers):
                yield self._crashed(worker, others, state, slot)
        for number, write in enumerate(delayed):
            yield self._landed(write, delayed[:number] + delayed[number + 1 :], state)
        yield from self._happenings(state)

    def is_good_end(self, state: State) -> bool:
        """Every message was committed and published, or lies parked, nobody is at work, and nothing is left lying about."""
        return is_good_end(self.scenario, self.keys, state)

    def _tasks(
        self, worker: Worker, state: State, others: tuple[Worker, ...]
    ) -> Iterator[tuple[Worker, tuple[int, ...], tuple[int, ...]]]:
        """Every way to give an idle worker something to do, with the queues and the budget that are left."""
        _, queue, _, _, left = state
        later = interchangeable(self._alike, self.keys, state) if self._alike else {}
        for group in self.workers.groups(queue):
            if any(number in later and later[number] not in group for number in group):
                continue
            yield self.workers.attempt(worker, group), without_copies(queue, group), left
        for place in range(len(self.keys), len(queue)):
            if queue[place]:
                yield self.workers.settle(worker, place), without_copies(queue, (place,)), left
        for entity in range(self.scenario.entities):
            if self.scenario.marking and worker.memories[entity].published:
                mark = Start("mark", entity, memory=worker.memories[entity])
                yield self.workers.chore(worker, mark), queue, left
            for cost, start in self._chores(entity, state, others):
                if cost is None or left[cost]:
                    yield self.workers.chore(worker, start), queue, left if cost is None else spent(left, cost)

    def _chores(self, entity: int, state: State, others: tuple[Worker, ...]) -> Iterator[tuple[int | None, Start]]:
        """Chores on an entity, each with its place in the budget; None for one that costs nothing."""
        store, queue, _, delayed, left = state
        library = store.libraries[entity]
        if left[PLACES["sweeps"]]:
            yield PLACES["sweeps"], Start("sweep", entity)
        if left[PLACES["requeues"]]:
            for number in ever_parked(self.keys, library):
                yield PLACES["requeues"], Start("requeue", entity, (number,))
        if self.scenario.budget.cleanings and library.staged:
            present = tuple(id.removeprefix("staged:") for id in library.now if id.startswith("staged:"))
            quiet = not any(queue) and not delayed and all(other.situation is None for other in others)
            if present:
                start = Start("clean", entity, candidates=tuple(sorted(present)))
                yield None if quiet else PLACES["cleanings"], start
        if left[PLACES["forgotten"]]:
            for number, key in enumerate(self.keys):
                if f"processed:{key}" in library.now and (
                    self.scenario.hasty or not may_arrive(self.keys, number, state)
                ):
                    yield PLACES["forgotten"], Start("forget", entity, (number,))

    def _happenings(self, state: State) -> Iterator[Move]:
        """What happens without a worker: the host gives up on a delivery."""
        for key, after in given_up(self.keys, state):
            yield Move(after, True, None, -1, None, f"The host gives up on {key}")

    def _crashed(self, worker: Worker, others: tuple[Worker, ...], state: State, slot: int) -> Move:
        store, queue, _, delayed, left = state
        workers = sorted_workers(others, self.workers.idle())
        if self._collects:
            store = self._swept(store, workers, delayed)
        after = (store, with_copies(queue, self._coming_again(worker.held)), workers, delayed, spent(left, CRASH))
        return Move(after, True, None, slot, None, "crashes", self.workers.idle())

    def _gives_back(self, worker: Worker, others: tuple[Worker, ...], state: State, slot: int) -> Move:
        """A worker has tried often enough: it gives its deliveries back, and keeps what it remembers."""
        store, queue, _, delayed, left = state
        idle = self.workers.giving_up(worker)
        coming = with_copies(queue, self._coming_again(worker.held))
        after = (store, coming, sorted_workers(others, idle), delayed, left)
        return Move(after, True, None, slot, None, GIVES_BACK, idle)

    def _coming_again(self, held: tuple[int, ...]) -> tuple[int, ...]:
        """The places in the queues to which deliveries go that were not acknowledged: those that they came from."""
        return held

    def _landed(self, write: Write, rest: tuple[Write, ...], state: State) -> Move:
        store, queue, workers, _, left = state
        answer = self.world.land(write, store)
        after = answer.store
        if after.entities is not store.entities:
            rest = alive(rest, after)
        if self._collects:
            after = self._swept(after, workers, rest)
        self.witnessed.add("a delayed write took effect")
        violation = answer.violation
        if violation is None and isinstance(write, DeleteParked):
            violation = vanished(self.scenario, self.keys, after, queue, workers)
        return Move((after, queue, workers, rest, left), False, violation, -1, None, answer, write=write)

    def _steps(self, worker: Worker, rest: State, slot: int, begun: Worker | None = None) -> Iterator[Move]:
        """Every outcome of what a worker asks for. `rest` is the state without it; `begun` it too if it just began."""
        store, queue, others, delayed, left = rest
        outcomes = self._outcomes.get((worker, store))
        if outcomes is None:
            outcomes = self._outcomes[worker, store] = tuple(self._answered(worker, store))
        for answer, outcome, fell, over in outcomes:
            moved, violation, ended = outcome, fell, over
            after, place, later = answer.store, answer.cost, delayed
            if not self._possible(answer, delayed, left):
                continue
            if answer.delayed is not None:
                later = (*delayed, answer.delayed)
            if later and after.entities is not store.entities:
                later = alive(later, after)
            if moved.begins:
                moved = self.workers.named(moved, used_transactions(after, (moved, *others), later), after.now)
                moved, violation, ended = self._settled(moved, after, violation)
            workers = sorted_workers(others, moved)
            if ended and self._collects:
                after = self._swept(after, workers, later)
            fed = self._arrived(queue, answer)
            if violation is None and isinstance(worker.asks, DeleteParked):
                violation = vanished(self.scenario, self.keys, after, fed, workers)
            remains = left if place is None else spent(left, place)
            fault = place is not None or answer.aged
            done = Move((after, fed, workers, later, remains), fault, violation, slot, begun, answer, moved)
            yield done
            if ended and worker.held and moved.situation is None:
                yield from self._unacknowledged(worker, done, (after, fed, others, later, remains))

    def _unacknowledged(self, worker: Worker, done: Move, rest: State) -> Iterator[Move]:
        """A worker has done its work, and its deliveries come again all the same."""
        store, queue, others, delayed, left = rest
        assert isinstance(done.what, Answer)  # noqa: S101
        assert done.moved is not None  # noqa: S101
        if left[SPOILED]:
            said = replace(done.what, said=f"{done.what.said}; its batch comes again")
            self.witnessed.add("a batch came again")
            again = come_again(self.scenario, self._coming_again(worker.held), done.moved, rest)
            yield done._replace(state=again, fault=True, violation=None, what=said)
        if left[CRASH]:
            idle = self.workers.idle()
            workers = sorted_workers(others, idle)
            back = (store, with_copies(queue, self._coming_again(worker.held)), workers, delayed, spent(left, CRASH))
            yield done._replace(state=back, fault=True, violation=None, moved=idle, crashed=True)

    def _possible(self, answer: Answer, delayed: tuple[Write, ...], left: tuple[int, ...]) -> bool:
        """Whether the budget allows an answer. What cannot happen is no witness."""
        if answer.cost is not None and not left[answer.cost]:
            return False
        late = answer.delayed
        if late is not None and (len(delayed) >= self.scenario.delayed or not alive((late,), answer.store)):
            return False
        if answer.witnessed:
            self.witnessed.add(answer.witnessed)
        return True

    def _swept(self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> Store:
        return swept(self.world.stores, store, workers, delayed, linearizable=self.scenario.linearizable)

    def _answered(self, worker: Worker, store: Store) -> Iterator[Outcome]:
        assert worker.asks is not None  # noqa: S101
        for answer in self.world.answers(worker.asks, store):
            moved = self.workers.told(worker, answer.reply)
            if moved.begins:
                yield Outcome(answer, moved, answer.violation, ended=False)
            else:
                yield Outcome(answer, *self._settled(moved, answer.store, answer.violation))

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """The worker, on its way to the next run if this one is over: what it holds is acknowledged if it finished."""
        situation = worker.situation
        if situation is None or situation.request is not None:
            return worker, violation, False
        if isinstance(situation.result, Exception):
            raised = f"raised {type(situation.result).__name__}: {situation.result}"
            return self.workers.idle(), violation or raised, True
        if isinstance(situation.result, Cleaned) and situation.result.transactions:
            self.witnessed.add("staged outputs were cleaned up")
        following = self.workers.following(worker)
        if following.situation is None and violation is None:
            violation = lost([self.keys[place % len(self.keys)] for place in worker.held], store)
        return following, violation, True

    def _arrived(self, queue: tuple[int, ...], answer: Answer) -> tuple[int, ...]:
        """The queues after what was sent."""
        fed = self._fed(queue, answer.arrivals) if answer.arrivals else queue
        return with_copies(fed, tuple(self.keys.index(key) for key in answer.again)) if answer.again else fed

    def _fed(self, queue: tuple[int, ...], published: tuple[str, ...]) -> tuple[int, ...]:
        """The queues after outputs arrived at their consumers."""
        if not self.scenario.feeds:
            return queue
        fed = list(queue)
        for key in published:
            number = self.scenario.feeds[self.keys.index(key)]
            if number is not None:
                fed[number] += fed[number] < COPIES
        return tuple(fed)
