"""The states of a scenario of one partition. Most is as for the outbox; here stands what differs."""

from __future__ import annotations

from collections.abc import Iterator

from exactlyonce.attempt import Again, Finished
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.errors import InvalidMessage
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.ranges import holds
from verification.checker.amounts import spent
from verification.checker.beside.answers import BesideWorld
from verification.checker.beside.business import UNADOPTED, keys_of
from verification.checker.beside.cleaning import lists
from verification.checker.beside.judging import left_undone, lost, rivals
from verification.checker.beside.mending import ANSWER, unsent, was_sent
from verification.checker.beside.partition import PartitionVersion, partition_of
from verification.checker.beside.scenarios import NUDGES, RAISING, REPLAYS, BesideScenario
from verification.checker.beside.workers import EVERYTHING, IN_VAIN, NUDGE, STUMBLE, BesideWorkers
from verification.checker.deliveries import may_arrive
from verification.checker.explorer import Explorer
from verification.checker.mentions import messages_in
from verification.checker.moves import Move, Outcome
from verification.checker.reductions import State, sorted_workers
from verification.checker.scenarios import PLACES
from verification.checker.store import Store
from verification.checker.workers import Start, Worker
from verification.checker.writes import ANY, Answer

COPY = "a copy was dropped"
PART = "a release took several batches"
STOPPED = "a handler that raised stopped its sequence"
SENT_AGAIN = "what a stream had sent was sent again"
REFUSED = "a message whose number another has was refused"


class BesideExplorer(Explorer):
    """Explores one scenario."""

    def __init__(self, scenario: BesideScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, merge=merge)
        self._scenario = scenario
        self.world = BesideWorld(scenario)
        self.workers = self._workers = BesideWorkers(scenario, merge=merge)
        self.keys = keys_of(scenario.messages)
        self._collects = False
        self._merges = merge and not scenario.tokens
        self._alike = _alike(scenario)
        self._stumbles = bool(scenario.budget.raising)

    def start(self) -> State:
        """The state in which nothing has happened."""
        store, *rest = super().start()
        if self._scenario.adopted:
            store = self.world.stores.with_entity(
                store, 0, self.world.stores.entity(1, (PartitionVersion(UNADOPTED, "1"),))
            )
        return (store, *rest)  # type: ignore[return-value]

    def is_good_end(self, state: State) -> bool:
        """Every message was committed and published, or lies parked; nobody is at work, and nothing is held."""
        return _is_at_rest(state) and self._left_undone(state[0]) is None

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state. Finishing the work must not rely on a handler that raises."""
        entities = state[0].entities
        for move in super().moves(state):
            after, moved, fault, violation = move.state, move.moved, move.fault, move.violation
            saves = moved is not None and moved.asks.__class__ is SaveBatch
            if self._merges and (saves or after[0].entities is not entities):
                after = self._without_vain_drafts(after)
            if self._stumbles and _task_of(move.begun) == STUMBLE:
                fault = True
            if violation is None and not any(after[1]) and _is_at_rest(after) and not self._may_be_nudged(after):
                violation = self._left_undone(after[0])
            if after is move.state and violation is move.violation and fault is move.fault:
                yield move
            else:
                yield move._replace(state=after, fault=fault, violation=violation)

    def _left_undone(self, store: Store) -> str | None:
        """What is wrong if nobody is at work any more and no delivery is left."""
        return left_undone(self._scenario, store)

    def _without_vain_drafts(self, state: State) -> State:
        """The state in which workers that are about to save in vain have forgotten what they drafted."""
        store, queue, workers, delayed, left = state
        etag = store.entities[0].truth.etag
        for slot, worker in enumerate(workers):
            asks = worker.asks
            if asks.__class__ is SaveBatch and asks is not IN_VAIN and asks.etag not in (etag, ANY):
                emptied = self._workers.in_vain(worker)
                if emptied is not worker:
                    others = workers[:slot] + workers[slot + 1 :]
                    return self._without_vain_drafts((store, queue, sorted_workers(others, emptied), delayed, left))
        return state

    def _may_be_nudged(self, state: State) -> bool:
        """Whether somebody is still to order what a handler that raised has stopped, or what an order left unfinished."""
        store, _, _, _, left = state
        return bool(left[NUDGES]) and self._can_go_on(store)

    def _can_go_on(self, store: Store) -> bool:
        """Whether what is next in some sequence is held, or to be skipped or asked for; or the read model owes something."""
        ledger = partition_of(store).view.ledger or Ledger()
        ready = any(holds(one.held, one.next) for one in ledger.receptions)
        gap = self._scenario.mends and any(one.gap_since is not None for one in ledger.receptions)
        return ready or gap or bool(ledger.owing)

    def _tasks(
        self, worker: Worker, state: State, others: tuple[Worker, ...]
    ) -> Iterator[tuple[Worker, tuple[int, ...], tuple[int, ...]]]:
        messages = self._scenario.messages
        for begun, queue, left in super()._tasks(worker, state, others):
            yield begun, queue, left
            start = begun.situation.start if begun.situation is not None else None
            if start is not None and start.task == "attempt" and left[RAISING]:
                raising = tuple(dict.fromkeys(self.keys[one] for one in start.messages if messages[one].raises))
                if raising:
                    yield self._workers.stumbling(worker, begun.held, raising), queue, spent(left, RAISING)

    def _chores(self, entity: int, state: State, others: tuple[Worker, ...]) -> Iterator[tuple[int | None, Start]]:
        """Chores, each with its place in the budget."""
        store, _, _, _, left = state
        if left[PLACES["sweeps"]]:
            yield PLACES["sweeps"], Start("sweep", entity)
        if left[PLACES["forgotten"]]:
            busy = any(other.situation is not None for other in others)
            for candidates in lists(partition_of(store), self._past(state), busy=busy):
                yield PLACES["forgotten"], Start("clean", entity, candidates=candidates)
        if left[NUDGES] and self._can_go_on(store):
            yield NUDGES, Start(NUDGE, entity)
        if left[REPLAYS]:
            if self._scenario.missing is None:
                yield REPLAYS, Start("replay", entity, candidates=EVERYTHING)
            elif was_sent(self._scenario, store):
                yield REPLAYS, Start(ANSWER, entity)

    def _past(self, state: State) -> frozenset[str]:
        """Keys of messages of which no copy may arrive any more, and no write take effect."""
        writes = frozenset().union(*(messages_in(write) for write in state[3]))
        return frozenset(
            key
            for number, key in enumerate(self.keys)
            if key not in writes and not may_arrive(self.keys, number, state)
        )

    def _answered(self, worker: Worker, store: Store) -> Iterator[Outcome]:
        """The outcomes of what a worker asks. Where attempts are not told apart, their ids are known at once."""
        if worker.asks is None:  # A broken twin that asks for nothing is at its end when it begins.
            yield Outcome(Answer(None, store, said="asks for nothing"), *self._settled(worker, store, None))
            return
        for outcome in super()._answered(worker, store):
            if outcome.worker.begins and not self._scenario.apart:
                named = self.workers.named(outcome.worker, frozenset(), store.now)
                yield Outcome(outcome.answer, *self._settled(named, outcome.answer.store, outcome.violation))
            else:
                yield outcome

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """The worker, on its way to the next run if this one is over: what it holds is acknowledged, but for what failed."""
        situation = worker.situation
        if situation is None or situation.request is not None:
            return worker, violation, False
        result = situation.result
        if isinstance(result, Exception):
            return self.workers.idle(), violation or f"raised {type(result).__name__}: {result}", True
        following = self.workers.following(worker)
        if isinstance(result, Again):
            if result.reason == "more can be released":
                self.witnessed.add(PART)
            return following, violation, True
        self._witness(worker, result)
        violation = violation or unsent(self._scenario, situation, store)
        back = {self.keys[place] for place in following.held}
        refused = self._workers.failed(worker, (InvalidMessage,))
        for key in dict.fromkeys(self.keys[place % len(self.keys)] for place in worker.held):
            if key in refused:
                violation = violation or self._refused(key, store)
            elif key not in back:
                violation = violation or self._failed(key, result) or lost(self._scenario, key, store)
        return following, violation, True

    def _refused(self, key: str, store: Store) -> str | None:
        """What is wrong with refusing a message."""
        if any(lost(self._scenario, one, store) is None for one in rivals(self._scenario, key)):
            self.witnessed.add(REFUSED)
            return None
        return f"no_failure: {key} is refused, though no other message has its number"

    @staticmethod
    def _failed(key: str, result: object) -> str | None:
        """What is wrong with a message that failed. Those that come back are not asked about."""
        failed = dict(result.failed) if isinstance(result, Finished) else {}
        return f"no_failure: {key} fails with {type(failed[key]).__name__}" if key in failed else None

    def _fed(self, queue: tuple[int, ...], published: tuple[str, ...]) -> tuple[int, ...]:
        """The queues after messages arrived that were asked for. One copy waits for all requests that nobody has taken."""
        copies = (max(queue[number], 1) if key in published else queue[number] for number, key in enumerate(self.keys))
        return (*copies, *queue[len(self.keys) :])

    def _witness(self, worker: Worker, result: object) -> None:
        """Note what the end of a run shows that a scenario may want to have seen."""
        if isinstance(result, Replayed) and result.sent:
            self.witnessed.add(SENT_AGAIN)
        if not isinstance(result, Finished):
            return
        if result.stopped:
            self.witnessed.add(STOPPED)
        resequenced = self._scenario.protocol == "resequencer"
        if resequenced and worker.held and not (result.processed or result.failed or result.stopped):
            self.witnessed.add(COPY)


def _task_of(worker: Worker | None) -> str | None:
    """What a worker is at."""
    return worker.situation.start.task if worker is not None and worker.situation is not None else None


def _is_at_rest(state: State) -> bool:
    """Whether nobody is at work and no delivery is left."""
    return not any(state[1]) and all(worker.situation is None for worker in state[2])


def _alike(scenario: BesideScenario) -> dict[int, tuple[int, int]]:
    """Messages that differ by their names only, each with its kind. Empty if there are no two of a kind."""
    if scenario.budget.poisoned or scenario.ages is not None:
        return {}
    kinds = list(dict.fromkeys(scenario.messages))
    found = {number: (one.copies, kinds.index(one)) for number, one in enumerate(scenario.messages)}
    return found if len(kinds) < len(scenario.messages) else {}
