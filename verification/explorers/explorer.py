"""The states of a scenario, and every step from one to another.

A state is (store, queues, workers, delayed writes, budget left). docs/model-checking.md says what is left out, and why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any, Final

from exactlyonce.effects.attempt import Again, Finished
from exactlyonce.effects.effect import UNKNOWN, Opened
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers, Unpark
from exactlyonce.errors import DatabaseRestored, ExactlyOnceError, InvalidMessage, LedgerRemoved
from exactlyonce.protocols.outbox.clean import Cleaned
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.outbox import number_of
from verification.explorers.moves import (
    RETURNED,
    SPOILED,
    Move,
    Outcome,
    State,
    alike_messages,
    alive,
    arrived,
    come_again,
    emptied,
    ever_parked,
    given_up,
    interchangeable,
    is_at_rest,
    may_arrive,
    put_back,
    removed,
    returned,
    sorted_workers,
    swept,
    tidied,
    used_transactions,
    vanished,
    without_vain_drafts,
)
from verification.world.answers import LOST, STALE, World
from verification.world.books import BookState, BookWritten, book_in, with_book
from verification.world.companions import UNADOPTED, can_go_on, lists, unsent, was_sent
from verification.world.scenario import (
    ANSWER,
    EVERYTHING,
    NUDGE,
    PLACES,
    STUMBLE,
    Scenario,
    Start,
    spent,
    with_copies,
    without_copies,
)
from verification.world.store import Store, Version, is_removed
from verification.world.workers import OfBooks, Worker, Workers
from verification.world.writes import Answer, Write, WriteDown, described, messages_in

# What processes do with their books: by themselves, and with reads and writes of books.


FROM_MEMORY: Final = "starts from what it knows"
PROVED: Final = "a book proved what another process had sent"


class Processes:
    """Answers what processes ask of their books."""

    def __init__(self, scenario: Scenario, world: World, workers: Workers) -> None:
        self._books = scenario.books
        self._world = world
        self._workers = workers
        self._chores = scenario.chores
        self._numbers: dict[Hashable, int] | None = None
        if scenario.companions and not scenario.apart and not scenario.books:
            self._numbers = {}
        self._clerk = scenario.chores.clerk(scenario.chores.shelf, scenario.chores.process_book, scenario.chores.book)

    def by_itself(self, worker: Worker, store: Store) -> tuple[Worker, Store]:
        """Worker and store after all that it asks of its own book, for which nobody else is needed."""
        while isinstance(worker.asks, OfBooks) and not self._needs_store(worker, store):
            book, reply = self._reply(worker, store)
            worker, store = self._with(worker, book, store, reply)
        return worker, store

    def answers(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        if not self._needs_store(worker, store):
            moved, after = self.by_itself(worker, store)
            yield Answer(None, after, said=FROM_MEMORY, witnessed=FROM_MEMORY), moved
        elif isinstance(worker.asks, OpenNumbers):
            yield from self._first_writing(worker, store)
        else:
            yield from self._reading(worker, store)

    def writes(self, store: Store) -> Iterator[WriteDown]:
        """The writings of books of living processes that would say something new."""
        for book in store.books:
            if (
                book.lives
                and (book.written or not self._chores.books_first)
                and book.now != (book.written or (BookWritten(),))[-1]
            ):
                yield WriteDown(book.id, book.now)

    def finds(self, store: Store, entity: int) -> bool:
        """Whether the sweeper finds an entity: by a book in the store that does not prove an entry of its outbox to be paid.

        A book that is gone, or was never there, leads to no entity. Kept messages do.
        """
        ledger = store.entities[entity].ledger
        written = {book.id: book.written[-1] for book in store.books if book.written}
        numbers = (number_of(entry.tx) for entry in ledger.outbox)
        return bool(ledger.kept) or any(
            book in written and number not in written[book].paid for book, number in numbers
        )

    def _needs_store(self, worker: Worker, store: Store) -> bool:
        if not self._books:
            return False
        book = book_in(store.books, worker.book or "")
        if isinstance(worker.asks, OpenNumbers):
            return self._chores.books_first and not book.written
        return isinstance(worker.asks, FindPaid) and bool(self._clerk.compared(book, worker.asks)[1])

    def _reply(self, worker: Worker, store: Store) -> tuple[BookState, Any]:
        asked, book = worker.asks, book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        match asked:
            case OpenNumbers():
                book, numbers = book.opened(asked, self._alike(worker, asked))
                given = self._workers.given(worker, asked, numbers)
                return book, Opened(self._workers.present(worker, store.now), given)
            case CloseNumbers():
                return self._clerk.closed(book, asked), None
            case FindPaid():
                book, _ = self._clerk.compared(book, asked)
                return book, self._clerk.paid(book, asked.transactions)
        raise TypeError(asked)

    def _alike(self, worker: Worker, asked: OpenNumbers) -> tuple[int, ...] | None:
        """The numbers that a process gives to all its attempts that are alike: at most one of them is ever committed."""
        if self._numbers is None:
            return None
        stage = self._workers.stage(worker)
        return tuple(self._numbers.setdefault((stage, number), len(self._numbers) + 1) for number in range(asked.count))

    def _with(self, worker: Worker, book: BookState, store: Store, reply: Any) -> tuple[Worker, Store]:
        if book != book_in(store.books, book.id):
            store = self._world.stores.changed(store, books=with_book(store.books, book))
            worker = self._workers.with_book(worker, book.id)
        return self._workers.answered(worker, reply), store

    def _first_writing(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        book = book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        write = WriteDown(book.id, book.now)
        there = self._world.land(write, store).store
        owner = self._workers.with_book(worker, book.id)
        moved, after = self.by_itself(owner, there)
        yield Answer(None, after, said=described(write)), moved
        lost = f"{described(write)}; the reply is lost"
        yield Answer(UNKNOWN, there, LOST, said=lost), self._workers.answered(owner, UNKNOWN)
        yield (
            Answer(UNKNOWN, store, LOST, said=f"{described(write)}, which is lost"),
            self._workers.answered(worker, UNKNOWN),
        )

    def _reading(self, worker: Worker, store: Store) -> Iterator[tuple[Answer, Worker]]:
        asked = worker.asks
        assert isinstance(asked, FindPaid)  # noqa: S101
        own = book_in(store.books, worker.book or self._chores.fresh_id(store.books))
        book, ids = self._clerk.compared(own, asked)
        paid = self._clerk.paid(book, asked.transactions)
        found: dict[frozenset[str], bool] = {}
        for proved, aged in self._clerk.looks(store.books, ids, asked.transactions):
            found.setdefault(paid | proved, aged)
        found.setdefault(paid, True)
        for reply, aged in found.items():
            learnt = BookState(book.id, book.open, book.closed, book.known | (reply - paid), book.written)
            moved, after = self._with(worker, learnt, store, reply)
            moved, after = self.by_itself(moved, after)
            said = f"reads the books {', '.join(ids)}{', in an older view' if aged else ''}: {len(reply)} are paid"
            yield (
                Answer(reply, after, STALE if aged else None, said=said, witnessed=PROVED if reply - paid else None),
                moved,
            )


CRASH, SWEEPS, CLEANINGS = PLACES["crashes"], PLACES["sweeps"], PLACES["cleanings"]
REQUEUES, FORGOTTEN = PLACES["requeues"], PLACES["forgotten"]
PUT_BACK, EMPTIED = PLACES["put_back"], PLACES["emptied"]
REMOVED = PLACES["removed"]
RAISING, NUDGES, REPLAYS = PLACES["raising"], PLACES["nudges"], PLACES["replays"]
GIVES_BACK = "gives back what it holds"
PASSES = "Twelve hours pass"
GOES_ON = "has to give back a delivery, and goes on"
COPY = "a copy was dropped"
PART = "a release took several batches"
STOPPED = "a handler that raised stopped its channel"
SENT_AGAIN = "what a stream had sent was sent again"
PAGES_LOST = "a message was refused, since pages were lost"
TOLD = "an entity was refused, since its document was deleted"
REFUSED = "a message whose number another has was refused"


class Explorer:
    """Explores one scenario.

    Args:
        merge: whether situations, and drafts that will be saved in vain, are one where they behave alike.
        world, workers: those of the scenario unless given.
    """

    def __init__(
        self, scenario: Scenario, *, merge: bool = True, world: World | None = None, workers: Workers | None = None
    ) -> None:
        self.scenario = scenario
        self.world = world or World(scenario)
        self.workers = workers or Workers(scenario, merge=merge)
        self.judge = self.world.judge
        self.keys = self.judge.keys
        self.witnessed: set[str] = set()
        self._processes = Processes(scenario, self.world, self.workers)
        self._outcomes: dict[tuple[Worker, Store], tuple[Outcome, ...]] = {}
        self._landings: dict[tuple[Write, Store], Answer] = {}
        self._collects = not scenario.companions and not scenario.budget.cleanings
        self._empties = scenario.companions and merge and not scenario.tokens
        self._alike = alike_messages(scenario)

    _refusals: tuple[type[ExactlyOnceError], ...] = (InvalidMessage, DatabaseRestored)
    """What a message may be refused with, if `_refused` says nothing against it."""

    def start(self) -> State:
        idle = tuple(self.workers.idle() for _ in range(self.scenario.workers))
        poison = (0,) * (len(self.keys) if self.scenario.budget.poisoned else 0)
        queue = (*self.scenario.copies, *poison)
        store = self.world.stores.empty(self.scenario.entities, libraries=not self.scenario.companions)
        if self.scenario.adopted:
            adopted = self.world.stores.entity(1, (Version(UNADOPTED, "1"),))
            store = self.world.stores.with_entity(store, 0, adopted)
        return (store, queue, idle, (), self.scenario.budget.amounts)

    def moves(self, state: State) -> Iterator[Move]:
        moves = self._moves(state)
        return map(self._completed, moves) if self.scenario.companions else moves

    def _completed(self, move: Move) -> Move:
        """A step, with drafts forgotten that are saved in vain, and with what is left undone if nobody is at work any more.

        Finishing the work must not rely on a handler that raises.
        """
        after, fault, violation = move.state, move.fault, move.violation
        if self._empties:
            after = without_vain_drafts(self.workers, after)
        fault = fault or _task_of(move.begun) == STUMBLE
        if violation is None and is_at_rest(after) and not (after[4][NUDGES] and can_go_on(self.scenario, after[0])):
            violation = self._left_undone(after[0])
        if after is move.state and violation is move.violation and fault is move.fault:
            return move
        return move._replace(state=after, fault=fault, violation=violation)

    def _moves(self, state: State) -> Iterator[Move]:  # noqa: C901
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
        if self.scenario.books:
            yield from self._written_down(state)
        for number, write in enumerate(delayed):
            yield self._landed(write, delayed[:number] + delayed[number + 1 :], state)
        yield from self._happenings(state)

    def is_good_end(self, state: State) -> bool:
        """Every message was committed and published, or lies parked, nobody is at work, and nothing is held or left about."""
        return is_at_rest(state) and self._left_undone(state[0]) is None

    def _left_undone(self, store: Store) -> str | None:
        """What is wrong if nobody is at work any more and no delivery is left."""
        return self.judge.left_undone(store)

    def _tasks(
        self, worker: Worker, state: State, others: tuple[Worker, ...]
    ) -> Iterator[tuple[Worker, tuple[int, ...], tuple[int, ...]]]:
        """Every way to give an idle worker something to do, with the queues and the budget that are left."""
        _, queue, _, _, left = state
        later = interchangeable(self._alike, self.keys, state) if self._alike else {}
        for group in self.workers.groups(queue):
            if any(number in later and later[number] not in group for number in group):
                continue
            rest = without_copies(queue, group)
            yield self.workers.attempt(worker, group), rest, left
            raising = tuple(dict.fromkeys(self.keys[item] for item in group if self._may_raise(item)))
            if left[RAISING] and raising:
                yield self.workers.stumbling(worker, group, raising), rest, spent(left, RAISING)
        for place in range(len(self.keys), len(queue)):
            if queue[place]:
                yield self.workers.settle(worker, place), without_copies(queue, (place,)), left
        for entity in range(self.scenario.entities):
            for cost, start in self._chores(entity, state, others):
                if cost is None or left[cost]:
                    yield self.workers.chore(worker, start), queue, left if cost is None else spent(left, cost)

    def _may_raise(self, number: int) -> bool:
        return self.scenario.companions and self.scenario.messages[number].raises

    def _chores(self, entity: int, state: State, others: tuple[Worker, ...]) -> Iterator[tuple[int | None, Start]]:
        """Chores on an entity, each with its place in the budget; None for one that costs nothing."""
        store, queue, _, delayed, left = state
        if left[SWEEPS] and (not self.scenario.books or self._processes.finds(store, entity)):
            yield SWEEPS, Start("sweep", entity)
        if left[REQUEUES]:
            for number in ever_parked(self.keys, store.libraries[entity]):
                yield REQUEUES, Start("requeue", entity, (number,))
        if self.scenario.budget.cleanings and store.libraries[entity].staged:
            listed = (id.removeprefix("staged:") for id in store.libraries[entity].now if id.startswith("staged:"))
            quiet = not any(queue) and not delayed and all(other.situation is None for other in others)
            if present := tuple(sorted(listed)):
                yield None if quiet else CLEANINGS, Start("clean", entity, candidates=present)
        if left[FORGOTTEN]:
            busy = any(other.situation is not None for other in others)
            yield from ((FORGOTTEN, start) for start in self._retention(entity, state, busy=busy))
        if left[NUDGES] and can_go_on(self.scenario, store):
            yield NUDGES, Start(NUDGE, entity)
        if left[REPLAYS] and self.scenario.missing is None:
            yield REPLAYS, Start("replay", entity, candidates=EVERYTHING)
        elif left[REPLAYS] and was_sent(self.scenario, store):
            yield REPLAYS, Start(ANSWER, entity)

    def _retention(self, entity: int, state: State, *, busy: bool) -> Iterator[Start]:
        """Every run of retention: it deletes records of messages of which no copy can arrive any more."""
        store = state[0]
        if self.scenario.companions:
            writes = frozenset().union(*(messages_in(write) for write in state[3]))
            numbered = enumerate(self.keys)
            past = frozenset(
                key for number, key in numbered if key not in writes and not may_arrive(self.keys, number, state)
            )
            for candidates in lists(store.partition, past, busy=busy):
                yield Start("clean", entity, candidates=candidates)

    def _happenings(self, state: State) -> Iterator[Move]:
        """What happens without a worker: the host gives up on a delivery, or an entity is put back."""
        for key, after in given_up(self.keys, state):
            yield Move(after, True, None, -1, None, f"The host gives up on {key}")
        if state[4][EMPTIED]:
            for said, after in emptied(self.world, state):
                yield Move(after, True, None, -1, None, said)
        if state[4][PUT_BACK] and not state[3] and all(worker.situation is None for worker in state[2]):
            for said, after in self._put_back(state):
                yield Move(after, True, None, -1, None, said)
        if state[4][REMOVED] and not state[3] and all(worker.situation is None for worker in state[2]):
            for said, after in removed(self.world, self.workers, state):
                yield Move(after, True, None, -1, None, said)

    def _put_back(self, state: State) -> Iterator[tuple[str, State]]:
        return put_back(self.world, self.workers, state)

    def _written_down(self, state: State) -> Iterator[Move]:
        store, queue, workers, delayed, left = state
        for write in self._processes.writes(store):
            slot = next(slot for slot, worker in enumerate(workers) if worker.book == write.id)
            after = self.world.land(write, store).store
            now = (after, queue, workers, delayed, left)
            yield Move(now, False, None, slot, None, described(write), workers[slot], write)
            if left[LOST] and len(delayed) < self.scenario.delayed and write not in delayed:
                late = (store, queue, workers, (*delayed, write), spent(left, LOST))
                said = f"{described(write)}, which will arrive later"
                yield Move(late, True, None, slot, None, said, workers[slot], write)

    def _crashed(self, worker: Worker, others: tuple[Worker, ...], state: State, slot: int) -> Move:
        store, queue, _, delayed, left = state
        workers = sorted_workers(others, self.workers.idle())
        if self._collects:
            store = self._swept(store, workers, delayed)
        store, workers = tidied(self.world.stores, self.workers, store, workers, delayed)
        after = (store, with_copies(queue, self._coming_again(worker.held)), workers, delayed, spent(left, CRASH))
        return Move(after, True, None, slot, None, "crashes", self.workers.idle())

    def _gives_back(self, worker: Worker, others: tuple[Worker, ...], state: State, slot: int) -> Move:
        """A worker has tried often enough: it gives its deliveries back, and keeps what it remembers."""
        store, queue, _, delayed, left = state
        idle = self.workers.giving_up(worker)
        coming = with_copies(queue, self._coming_again(worker.held))
        store, workers = tidied(self.world.stores, self.workers, store, sorted_workers(others, idle), delayed)
        after = (store, coming, workers, delayed, left)
        return Move(after, True, None, slot, None, GIVES_BACK, idle)

    def _coming_again(self, held: tuple[int, ...]) -> tuple[int, ...]:
        """The places in the queues to which deliveries go that were not acknowledged: those that they came from."""
        return held

    def _landed(self, write: Write, rest: tuple[Write, ...], state: State) -> Move:
        store, queue, workers, _, left = state
        answer = self._landings.get((write, store))
        if answer is None:
            answer = self._landings[write, store] = self.world.land(write, store)
        after = answer.store
        if after.entities is not store.entities:
            rest = alive(rest, after)
        if self._collects:
            after = self._swept(after, workers, rest)
        after, workers = tidied(self.world.stores, self.workers, after, workers, rest)
        self.witnessed.add("a delayed write took effect")
        violation = answer.violation
        if violation is None and isinstance(write, Unpark):
            violation = vanished(self.scenario, self.keys, after, queue, workers)
        return Move((after, queue, workers, rest, left), False, violation, -1, None, answer, write=write)

    def _steps(  # noqa: C901  # It runs for every step of every search: calls would take a third as much again.
        self, worker: Worker, rest: State, slot: int, begun: Worker | None = None
    ) -> Iterator[Move]:
        """Every outcome of what a worker asks for. `rest` is the state without it; `begun` it too if it just began."""
        store, queue, others, delayed, left = rest
        outcomes = self._outcomes.get((worker, store))
        if outcomes is None:
            outcomes = self._outcomes[worker, store] = tuple(self._answered(worker, store))
        unparks = isinstance(worker.asks, Unpark)
        for answer, outcome, fell, over in outcomes:
            moved, violation, ended = outcome, fell, over
            after, place, later = answer.store, answer.cost, delayed
            if place is not None and not left[place]:
                continue
            if answer.delayed is not None:
                if len(delayed) >= self.scenario.delayed or not alive((answer.delayed,), after):
                    continue
                later = (*delayed, answer.delayed)
            if answer.witnessed:  # What cannot happen is no witness.
                self.witnessed.add(answer.witnessed)
            if later and after.entities is not store.entities:
                later = alive(later, after)
            if moved.begins:
                moved = self.workers.named(moved, used_transactions(after, (moved, *others), later), after.now)
                moved, after = self._processes.by_itself(moved, after)
                moved, violation, ended = self._settled(moved, after, violation)
            workers = sorted_workers(others, moved)
            if ended and self._collects:
                after = self._swept(after, workers, later)
            if ended:
                after, workers = tidied(self.world.stores, self.workers, after, workers, later)
            fed = self._arrived(queue, answer) if answer.arrivals or answer.asked or answer.again else queue
            if unparks and violation is None:
                violation = vanished(self.scenario, self.keys, after, fed, workers)
            remains = left if place is None else spent(left, place)
            fault = place is not None or answer.aged
            done = Move((after, fed, workers, later, remains), fault, violation, slot, begun, answer, moved)
            yield done
            if ended and worker.held and moved.situation is None:
                yield from self._unacknowledged(worker, done, (answer.store, fed, others, later, remains))

    def _unacknowledged(self, worker: Worker, done: Move, rest: State) -> Iterator[Move]:
        store, queue, others, delayed, left = rest
        assert isinstance(done.what, Answer)  # noqa: S101
        assert done.moved is not None  # noqa: S101
        if left[SPOILED]:
            said = replace(done.what, said=f"{done.what.said}; its batch comes again")
            self.witnessed.add("a batch came again")
            store, queue, workers, delayed, left = come_again(
                self.scenario, self._coming_again(worker.held), done.moved, rest
            )
            store, workers = tidied(self.world.stores, self.workers, store, workers, delayed)
            again = (store, queue, workers, delayed, left)
            yield done._replace(state=again, fault=True, violation=None, what=said)
        if left[CRASH]:
            idle = self.workers.idle()
            workers = sorted_workers(others, idle)
            if self._collects:
                store = self._swept(store, workers, delayed)
            store, workers = tidied(self.world.stores, self.workers, store, workers, delayed)
            back = (store, with_copies(queue, self._coming_again(worker.held)), workers, delayed, spent(left, CRASH))
            yield done._replace(state=back, fault=True, violation=None, moved=idle, crashed=True)

    def _swept(self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> Store:
        return swept(self.world.stores, store, workers, delayed)

    def _answered(self, worker: Worker, store: Store) -> Iterator[Outcome]:
        """The outcomes of what a worker asks. Where attempts are not distinct, their ids are known at once."""
        if worker.begins:
            yield Outcome(Answer(None, store, said=FROM_MEMORY, witnessed=FROM_MEMORY), worker, None, ended=False)
            return
        if isinstance(worker.asks, OfBooks):
            for answer, moved in self._processes.answers(worker, store):
                yield Outcome(answer, *self._settled(moved, answer.store, answer.violation))
            return
        if worker.asks is None:  # A copy that is known from memory, or a broken twin: all others ask for something.
            assert self.scenario.companions or self.scenario.remembering  # noqa: S101
            yield Outcome(Answer(None, store, said="asks for nothing"), *self._settled(worker, store, None))
            return
        for answer in self.world.answers(worker.asks, store):
            moved = self.workers.answered(worker, answer.reply)
            if moved.begins and self.scenario.companions and not self.scenario.apart:
                moved = self.workers.named(moved, frozenset(), store.now)
            moved, after = self._processes.by_itself(moved, answer.store)
            if after is not answer.store:
                answer = replace(answer, store=after)  # noqa: PLW2901
            if moved.begins:
                yield Outcome(answer, moved, answer.violation, ended=False)
            else:
                yield Outcome(answer, *self._settled(moved, answer.store, answer.violation))

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """The worker, on its way to the next run if this one is over: it acknowledges what does not come back."""
        situation = worker.situation
        if situation is None or situation.request is not None:
            return worker, violation, False
        result = situation.result
        if isinstance(result, LedgerRemoved) and any(map(is_removed, store.entities, store.libraries)):
            self.witnessed.add(
                TOLD
            )  # The entity is refused until somebody puts it back; no message is lost or done twice.
            return self.workers.idle(), violation, True
        if isinstance(result, Exception):
            return self.workers.idle(), violation or f"raised {type(result).__name__}: {result}", True
        following = self.workers.following(worker)
        self._witness(worker, result)
        if isinstance(result, Again):
            return following, violation, True
        violation = violation or unsent(self.scenario, situation, store)
        back = {self.keys[place % len(self.keys)] for place in following.held}
        refused = self.workers.failed(worker, self._refusals)
        for key in dict.fromkeys(self.keys[place % len(self.keys)] for place in worker.held):
            if key in refused:
                violation = violation or self._refused(key, store)
            elif key not in back:
                violation = violation or _failed(key, result) or self.judge.lost(key, store)
        return following, violation, True

    def _refused(self, key: str, store: Store) -> str | None:
        if store.emptied:
            self.witnessed.add(PAGES_LOST)
            return None
        if any(self.judge.lost(rival, store) is None for rival in self.judge.rivals(key)):
            self.witnessed.add(REFUSED)
            return None
        return f"no_failure: {key} is refused, though no other message has its number"

    def _witness(self, worker: Worker, result: object) -> None:
        """Note what the end of a run shows that a scenario may want to have seen."""
        if isinstance(result, Cleaned) and result.transactions:
            self.witnessed.add("staged outputs were cleaned up")
        if isinstance(result, Again) and result.reason == "more can be released":
            self.witnessed.add(PART)
        if isinstance(result, Replayed) and result.sent:
            self.witnessed.add(SENT_AGAIN)
        if not isinstance(result, Finished):
            return
        if result.stopped:
            self.witnessed.add(STOPPED)
        resequenced = self.scenario.companions and self.scenario.protocol == "resequencer"
        if resequenced and worker.held and not (result.processed or result.failed or result.stopped):
            self.witnessed.add(COPY)

    def _arrived(self, queue: tuple[int, ...], answer: Answer) -> tuple[int, ...]:
        return arrived(self.keys, queue, answer)


def _failed(key: str, result: object) -> str | None:
    """What is wrong with a message that failed. Those that come back are not asked about."""
    failed = dict(result.failed) if isinstance(result, Finished) else {}
    return f"no_failure: {key} fails with {type(failed[key]).__name__}" if key in failed else None


def _task_of(worker: Worker | None) -> str | None:
    return worker.situation.start.task if worker is not None and worker.situation is not None else None
