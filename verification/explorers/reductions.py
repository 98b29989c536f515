"""What makes the search small. docs/model-checking.md argues why nothing is lost, and says what is tested without it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from operator import attrgetter

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outbox import keeper_of, number_of
from verification.world.mentions import Write, messages_in, transactions_in
from verification.world.scenario import Scenario
from verification.world.store import Store, Stores, entity_number
from verification.world.workers import Worker, Workers
from verification.world.writes import ANY

_ORDER = attrgetter("order")

State = tuple[Store, tuple[int, ...], tuple[Worker, ...], tuple[Write, ...], tuple[int, ...]]


def is_at_rest(state: State) -> bool:
    """Whether nobody is at work and no delivery is left."""
    if any(state[1]):
        return False
    for worker in state[2]:  # noqa: SIM110  # It is asked for every step, and a generator takes twice as long.
        if worker.situation is not None:
            return False
    return True


def interchangeable(kinds: Mapping[int, tuple[int, int]], keys: tuple[str, ...], state: State) -> dict[int, int]:
    """Messages of which nothing is known yet, each with one just like it that may as well come first.

    Args:
        kinds: as of `alike_messages`.
        keys: of all messages.
        state: to look at.
    """
    store, queue, workers, delayed, _ = state
    met = {key for key, _ in store.committed}
    met.update(
        item.message for library in store.libraries for _, item in library.writes if isinstance(item, StagedOutputs)
    )
    for write in delayed:
        met.update(messages_in(write))
    held = {number for worker in workers for number in worker.held}
    first: dict[tuple[int, int], int] = {}
    followers: dict[int, int] = {}
    for number, kind in kinds.items():
        if number not in held and queue[number] == kind[0] and keys[number] not in met:
            if kind in first:
                followers[number] = first[kind]
            first[kind] = number
    return followers


def alike_messages(scenario: Scenario) -> dict[int, tuple[int, int]]:
    """Messages that differ by their names only, each with its kind. Empty if there are no two of a kind.

    A kind is how many copies there are, and what else sets a message apart: its entity and its time.
    """
    differ = (
        scenario.feeds
        or scenario.deletes
        or scenario.endless
        or scenario.ages
        or scenario.requests
        or scenario.replies
        or scenario.keeps
    )
    if differ or scenario.budget.poisoned or (scenario.budget.returned and not scenario.companions):
        return {}
    sorts: tuple[Hashable, ...] = scenario.messages or tuple(
        (scenario.target(number), scenario.since[number] if scenario.since else 0)
        for number in range(len(scenario.copies))
    )
    kinds = {number: (copies, sorts.index(sorts[number])) for number, copies in enumerate(scenario.copies)}
    return kinds if len(set(kinds.values())) < len(kinds) else {}


def sorted_workers(others: tuple[Worker, ...], moved: Worker) -> tuple[Worker, ...]:
    """Workers are interchangeable, so they stand in canonical order."""
    if len(others) == 1:
        other = others[0]
        return (other, moved) if other.order < moved.order else (moved, other)
    return tuple(sorted((*others, moved), key=_ORDER))


def without_vain_drafts(workers: Workers, state: State) -> State:
    """The state in which workers that are about to save in vain have forgotten what they drafted."""
    store, queue, standing, delayed, left = state
    etag = store.entities[0].truth.etag
    for slot, worker in enumerate(standing):
        if worker.saves is not None and worker.saves.etag != etag:
            emptied = workers.in_vain(worker)
            if emptied is not worker:
                others = standing[:slot] + standing[slot + 1 :]
                return without_vain_drafts(workers, (store, queue, sorted_workers(others, emptied), delayed, left))
    return state


def used_transactions(store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> frozenset[str]:
    """Transaction ids that something refers to; the others are free."""
    parts = [worker.transactions for worker in workers]
    parts += (entity.transactions for entity in store.entities)
    parts += (library.staged for library in store.libraries)
    parts += (transactions_in(write) for write in delayed)
    used = frozenset[str]().union(*parts)
    return used.union(map(keeper_of, used))


def tidied(
    stores: Stores, workers: Workers, store: Store, standing: tuple[Worker, ...], delayed: tuple[Write, ...]
) -> tuple[Store, tuple[Worker, ...]]:
    """The store without what books say of transactions that nothing refers to, and processes without books that say nothing."""
    if not store.books:
        return store, standing
    used = used_transactions(store, standing, delayed)
    owners = {worker.book for worker in standing}
    named = {book for book, _ in map(number_of, used)}
    books = []
    for book in store.books:
        lives = book.id in owners
        kept = (book if lives else book.dead()).within(used)
        if kept.id in named or (lives and (kept.written or kept.known)):
            books.append(kept)
    store = stores.changed(store, books=tuple(books))
    present = {book.id for book in books}
    changed = [item if item.book in present else workers.with_book(item, None) for item in standing]
    return store, tuple(sorted(changed, key=_ORDER))


def alive(delayed: tuple[Write, ...], store: Store) -> tuple[Write, ...]:
    """Delayed writes without the saves whose condition no longer holds: it never will again."""
    return tuple(
        write
        for write in delayed
        if not isinstance(write, SaveEntity | SaveBatch)
        or write.etag in (ANY, store.entities[entity_number(write.entity)].truth.etag)
    )


def swept(stores: Stores, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...]) -> Store:
    """The store without the content of staged outputs that nobody refers to: no read asks for them, clean-up apart.

    Their places in the log stay, and with them what tokens mean.
    """
    for number, library in enumerate(store.libraries):
        if not library.staged:
            continue
        used = store.entities[number].transactions.union(
            *(worker.transactions for worker in workers), *(transactions_in(write) for write in delayed)
        )
        garbage = library.staged - used
        if garbage:
            ids = {f"staged:{tx}" for tx in garbage}
            writes = tuple(("", None) if item[0] in ids else item for item in library.writes)
            store = stores.with_library(store, number, stores.library(writes))
    return store
