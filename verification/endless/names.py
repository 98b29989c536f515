"""Canonical names for the states of an endless stream.

Messages: `m0`, … by their place in the stream; `q0`, … retired ones in the newest ledger; `r0`, … others, in each document
and in each run anew. Transactions: in the newest ledger `c0`, … by place, `u0`, … of retired messages; `w0.0`, … begun, by
worker; `d0.0`, … in delayed writes; `x0`, … others, like `r0`. Histories: `C` the newest, `b0`, … those
on which live messages were committed, `O` all others. ETags: `now`, `old`. Positions in the library's log: without the writes
that no attempt can ask for any more.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Begun
from exactlyonce.effects.library import FindProcessed
from verification.endless.channels import keeps_channels, renamed_channels, telling, views_in
from verification.endless.past import older_versions, relevant
from verification.endless.renaming import Atom, names_of, renamed
from verification.endless.scopes import Scope, found_at_once, shared_names
from verification.explorers.reductions import State
from verification.world.mentions import Write, transactions_in
from verification.world.outbox_handler import key_of_number
from verification.world.scenario import Scenario
from verification.world.store import Store, Stores, Version
from verification.world.tasks import NOTHING, Start
from verification.world.workers import Worker, Workers


class Named(NamedTuple):
    """The parts of a state that have names, by canonical ones.

    Attributes:
        order: which message went to which place.
        store, workers, delayed: as in a state.
        rank: to choose among several orders.
    """

    order: tuple[int, ...]
    store: Store
    workers: tuple[Worker, ...]
    delayed: tuple[Write, ...]
    rank: tuple[Any, ...]


class Naming:
    """Names the states of one scenario.

    Args:
        scenario: one message a commit, nothing marked by idle workers.
        stores, workers: where these are interned.
    """

    def __init__(self, scenario: Scenario, stores: Stores, workers: Workers) -> None:
        budget = scenario.budget
        chores = budget.sweeps or budget.poisoned or budget.cleanings or budget.forgotten
        more = scenario.marking or scenario.tokens or scenario.deletes or scenario.targets or scenario.linearizable
        if scenario.places and (None in scenario.places or scenario.delayed or scenario.strategy.inline_limit == 0):
            raise ValueError(
                f"Scenario {scenario.name!r}: a stream with channels has no foreign messages, "
                "no delayed writes, and stages nothing."
            )
        if scenario.group > 1 or scenario.strategy.window is None or chores or more:
            raise ValueError(
                f"Scenario {scenario.name!r}: a stream has one message a commit, a window, one entity; no marking, tokens, "
                "deletion or chores."
            )
        copies = scenario.copies
        self._orders = [
            order
            for order in permutations(range(len(copies)))
            if all(copies[number] == copies[place] for place, number in enumerate(order))
            and keeps_channels(scenario, order)
        ]
        self._scenario = scenario
        self._numbered = bool(scenario.places)
        self._stores = stores
        self._workers = workers
        self._canonical: dict[Any, list[Named]] = {}
        self._orders_for: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self._ranks: dict[Any, int] = {}
        self._names: dict[Worker, tuple[tuple[Atom, ...], frozenset[str]]] = {}
        self._renamed: dict[Any, Worker] = {}
        self._present: dict[tuple[Worker, frozenset[str]], Worker] = {}

    def canonical(self, state: State) -> State:
        """The state by its canonical name: of those that exchanging messages makes of it, the first in some order."""
        store, queue, workers, delayed, left = state
        key = (store, tuple([copies >= 0 for copies in queue]), workers, delayed)
        found = self._canonical.get(key)
        if found is None:
            live = tuple(number for number, copies in enumerate(queue) if copies >= 0)
            orders = self._orders_of(live)
            found = self._canonical[key] = [self.named(store, live, workers, delayed, one) for one in orders]
        placed, _, named = min(
            [(tuple([queue[number] for number in one.order]), one.rank, one) for one in found], key=_rank_of
        )
        return named.store, placed, named.workers, named.delayed, left

    def _orders_of(self, live: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The orders to choose from, where these messages are live: those with free places first, each once."""
        found = self._orders_for.get(live)
        if found is None:
            orders = {tuple(map(order.index, live)): order for order in reversed(self._orders)}
            least = min(_places_of(live, order) for order in orders.values())
            found = [order for order in orders.values() if _places_of(live, order) == least]
            self._orders_for[live] = found
        return found

    def named(
        self,
        store: Store,
        live: tuple[int, ...],
        workers: tuple[Worker, ...],
        delayed: tuple[Write, ...],
        order: tuple[int, ...],
    ) -> Named:
        """The parts of a state that have names, with message `order[n]` moved to place n."""
        keys = {key_of_number(number): key_of_number(order.index(number)) for number in live}
        shared = dict(shared_names(store.entities[0], store.committed, tuple(keys.items())))
        shared.update(renamed_channels(self._scenario, order))
        owing = store.entities[0].ledger.owing
        workers = tuple([self.without_past(worker, owing) for worker in workers])
        begun: frozenset[str] = frozenset()
        if delayed or store.libraries[0].staged:
            begun = begun.union(*(self._names_in(worker)[1] for worker in workers))
            asked = begun.union(entry.tx for entry in store.entities[0].ledger.entries)
            delayed, asked = relevant(delayed, asked, frozenset(keys))
        else:
            asked = begun
        scope = self._scope(store, shared, asked | keys.keys(), order)
        workers = self._workers_named(workers, scope)
        if delayed:
            late = frozenset[str]().union(*map(transactions_in, delayed)) - begun
            delayed = tuple(scope.of(f"d{number}", late).part(write) for number, write in enumerate(delayed))
        store = self._store_named(store, keys, scope)
        return Named(order, store, workers, delayed, self._rank(store, workers, delayed))

    def _scope(self, store: Store, shared: dict[Atom, Any], asked: frozenset[str], order: tuple[int, ...]) -> Scope:
        """The scope of a state, in which these messages and transactions may be asked for."""
        writes = store.libraries[0].writes
        if not self._numbered:
            return Scope(shared, [id.partition(":")[2] in asked for id, _ in writes], order)
        scope = Scope(shared, [], order)
        kept, places = views_in([telling(renamed(documents, scope)) for _, documents in writes])
        return Scope(shared, kept, order, places)

    def _rank(self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> tuple[Any, ...]:
        ranks = self._ranks
        return (
            tuple([worker.order for worker in workers]),
            ranks.setdefault(store, len(ranks)),
            tuple([ranks.setdefault(write, len(ranks)) for write in delayed]),
        )

    def without_past(self, worker: Worker, owing: frozenset[str]) -> Worker:
        """The worker, unless it has begun to look, without memories of which nothing comes: of what owes nothing."""
        found = self._present.get((worker, owing))
        if found is None:
            found = self._present[worker, owing] = self._forgetting(worker, owing)
        return found

    def _forgetting(self, worker: Worker, owing: frozenset[str]) -> Worker:
        situation = worker.situation
        if situation is None:
            return self._workers.remembering(worker, (Memory(published=worker.memories[0].published & owing),))
        if not situation.replies and worker.first is None:
            known = Memory(published=situation.start.memory.published & owing)
            return self._workers.standing(replace(situation.start, memory=known), (), None, (NOTHING,), worker.held)
        return self._workers.remembering(worker, (NOTHING,))

    def _names_in(self, worker: Worker) -> tuple[tuple[Atom, ...], frozenset[str]]:
        """The names in a worker, in order of appearance, and the transactions that it began."""
        found = self._names.get(worker)
        if found is None:
            situation = worker.situation
            if situation is None:
                found = (names_of(worker.memories), frozenset())
            else:
                begun = (tx for one in situation.replies if isinstance(one, Begun) for tx in one.given)
                found = (names_of((situation.replies, worker.first, situation.start)), frozenset(begun))
            self._names[worker] = found
        return found

    def _workers_named(self, workers: tuple[Worker, ...], scope: Scope) -> tuple[Worker, ...]:
        """The workers in the order of what they would be called if alone."""
        alone = []
        for worker in workers:
            own = scope.of("w0", self._names_in(worker)[1])
            alone.append((self._worker_named(worker, own), worker, own))
        alone.sort(key=_alone)
        first, _, own = alone[0]
        scope.share(own)
        named = [first]
        for number, (_, worker, _) in enumerate(alone[1:], 1):
            own = scope.of(f"w{number}", self._names_in(worker)[1])
            named.append(self._worker_named(worker, own))
            scope.share(own)
        return tuple(named)

    def _worker_named(self, worker: Worker, scope: Scope) -> Worker:
        key = (worker, tuple([scope(name) for name in self._names_in(worker)[0]]), scope.order)
        found = self._renamed.get(key)
        if found is None:
            found = self._renamed[key] = self._worker_made(worker, scope)
        return found

    def _worker_made(self, worker: Worker, scope: Scope) -> Worker:
        memories: tuple[Memory, ...] = renamed(worker.memories, scope)
        situation = worker.situation
        if situation is None:
            return self._workers.idle(memories)
        messages = tuple(scope.order.index(number) for number in situation.start.messages)
        start: Start = replace(renamed(situation.start, scope), messages=messages)
        replies, first = renamed(situation.replies, scope), renamed(worker.first, scope)
        if (
            replies
            and self._finds_again(situation.start, situation.replies[0])
            and not self._finds_again(start, replies[0])
        ):
            replies, first = found_at_once(replies, first)
        held = tuple(scope.order.index(number) for number in worker.held)
        return self._workers.standing(start, replies, first, memories, held)

    def _finds_again(self, start: Start, looked: Any) -> bool:
        """Whether a run that has looked asks for records again, since its view was older than what it loaded relies on."""
        return isinstance(self._workers.standing(start, (looked,), None, (NOTHING,), ()).asks, FindProcessed)

    def _store_named(self, store: Store, keys: dict[str, str], scope: Scope) -> Store:
        entity, library = store.entities[0], store.libraries[0]
        truth = entity.truth
        if truth.document is not None:
            truth = Version(scope.of().part(truth.document), "now")
        versions = (*older_versions(entity.versions[:-1], store.published, keys, scope), truth)
        writes = tuple(
            [_write_named(*write, keys, scope) for write, keep in zip(library.writes, scope.kept, strict=True) if keep]
        )
        committed = frozenset(
            [(keys[key], scope(("history", history))) for key, history in store.committed if key in keys]
        )
        published = frozenset([keys[key] for key in store.published if key in keys])
        return self._stores.store(
            (self._stores.entity(0, versions),),
            (self._stores.library(writes),),
            committed=committed,
            published=published,
        )


def _write_named(id: str, content: Any, keys: dict[str, str], scope: Scope) -> tuple[str, Any]:
    kind, _, name = id.partition(":")
    match kind:
        case "processed":
            return f"processed:{keys[name]}", content
        case "staged":
            return f"staged:{scope(('tx', name))}", renamed(content, scope)
        case _:
            return id, telling(renamed(content, scope))


def _places_of(live: tuple[int, ...], order: tuple[int, ...]) -> tuple[bool, ...]:
    return tuple(number in live for number in order)


def _alone(named: tuple[Worker, Worker, Scope]) -> int:
    return named[0].order


def _rank_of(placed: tuple[Any, Any, Named]) -> Any:
    return placed[:2]
