"""One step from a state, and one answer to a worker."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outbox import keeper_of, number_of
from verification.world.answers import World
from verification.world.scenario import PLACES, Scenario, spent, with_copies, without_copies
from verification.world.store import ABSENT, Entity, Library, Store, Stores, entity_number, history_of, is_removed
from verification.world.workers import Worker, Workers
from verification.world.writes import ANY, Answer, Write, messages_in, transactions_in

# What makes the search small. docs/model-checking.md argues why nothing is lost, and says what is tested without it.


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


class Move(NamedTuple):
    """One step from a state.

    Attributes:
        fault: whether it took a fault, so that finishing the work must not rely on it.
        slot: place of the worker in the state before; -1 if none moved.
        begun: the worker as it took something to do; None if it did not.
        write: the delayed write that took effect; None if none did.
    """

    state: State
    fault: bool
    violation: str | None
    slot: int
    begun: Worker | None
    what: Answer | str
    moved: Worker | None = None
    write: Write | None = None
    crashed: bool = False


class Outcome(NamedTuple):
    """One answer to a worker and what the worker makes of it, as far as nothing else in the state matters."""

    answer: Answer
    worker: Worker
    violation: str | None
    ended: bool


POISONED: Final = PLACES["poisoned"]
RETURNED: Final = PLACES["returned"]
SPOILED: Final = PLACES["spoiled"]
COPIES = 2
"""Most copies of an output that wait at its consumer: more would do what two do, one after the other."""


def returned(
    workers: Workers, worker: Worker, others: tuple[Worker, ...], state: State
) -> Iterator[tuple[State, Worker]]:
    """Every way in which a delivery goes back to its queue while the attempt for it goes on, with the worker afterwards."""
    store, queue, _, delayed, left = state
    for place in dict.fromkeys(worker.held):
        going_on = workers.returning(worker, place)
        standing = sorted_workers(others, going_on)
        yield (store, with_copies(queue, (place,)), standing, delayed, spent(left, RETURNED)), going_on


def given_up(keys: Sequence[str], state: State) -> Iterator[tuple[str, State]]:
    """Every way in which the host gives up on a delivery, which a settler gets: the key of its message, and the state."""
    store, queue, workers, delayed, left = state
    if not left[POISONED]:
        return
    for number, key in enumerate(keys):
        if queue[number]:
            counts = list(without_copies(queue, (number,)))
            counts[len(keys) + number] += 1
            yield key, (store, tuple(counts), workers, delayed, spent(left, POISONED))


def come_again(scenario: Scenario, held: tuple[int, ...], idle: Worker, rest: State) -> State:
    """The state when a worker has done its work for nothing: others of the batch fail, so all deliveries of it come again.

    What was given up is given up for good, since the count of its deliveries only grows.

    Args:
        rest: the state without the worker.
    """
    store, queue, others, delayed, left = rest
    places = tuple(place % len(scenario.copies) for place in held) if scenario.lenient else held
    return (store, with_copies(queue, places), sorted_workers(others, idle), delayed, spent(left, SPOILED))


def vanished(
    scenario: Scenario, keys: Sequence[str], store: Store, queue: tuple[int, ...], workers: tuple[Worker, ...]
) -> str | None:
    """What is wrong if a message is nowhere any more: neither committed, nor parked, nor in a queue, nor held by anybody."""
    present = {keys[place % len(keys)] for place, copies in enumerate(queue) if copies}
    present.update(keys[place % len(keys)] for worker in workers for place in worker.held)
    present.update(store.parked, store.aside, (key for key, _ in store.committed))
    for number, key in enumerate(keys):
        if scenario.copies[number] and key not in present:
            return f"nothing_lost: {key} is neither committed nor parked, and no copy of it is left"
    return None


def may_arrive(keys: Sequence[str], number: int, state: State) -> bool:
    """Whether a copy of a message is still anywhere."""
    _, queue, workers, _, _ = state
    places = range(number, len(queue), len(keys))
    return any(queue[place] or any(place in worker.held for worker in workers) for place in places)


def ever_parked(keys: Sequence[str], library: Library) -> Iterator[int]:
    """Numbers of the messages that are parked in some view."""
    listed = {id for id, _ in library.writes}
    return (number for number, key in enumerate(keys) if f"parked:{key}" in listed)


def arrived(keys: tuple[str, ...], queue: tuple[int, ...], answer: Answer) -> tuple[int, ...]:
    """The queues after what was sent. One copy waits for all requests of a read model that nobody has taken."""
    if answer.arrivals:
        fed = list(queue)
        for number in answer.arrivals:
            fed[number] += fed[number] < COPIES
        queue = tuple(fed)
    if answer.asked:
        copies = (max(queue[place], 1) if key in answer.asked else queue[place] for place, key in enumerate(keys))
        queue = (*copies, *queue[len(keys) :])
    return with_copies(queue, tuple(map(keys.index, answer.again))) if answer.again else queue


REMOVED: Final = "The entity is deleted"


def put_back(world: World, workers: Workers, state: State) -> Iterator[tuple[str, State]]:
    """Every way to put an entity back, with what is said of it. Processes begin anew, and queues stay as they are."""
    store, queue, standing, delayed, left = state
    for number, entity in enumerate(store.entities):
        for position, version in enumerate(entity.versions[:-1], entity.first):
            if version.document is None:
                continue
            etag = str(entity.newest + 1)
            back = world.stores.entity(entity.newest + 1, (replace(version, etag=etag),))
            kept, undone = _kept(store.committed, back)
            after = world.stores.changed(
                world.stores.with_entity(store, number, back),
                committed=kept,
                undone=store.undone | undone,
                put_back=store.put_back + 1,
            )
            idle = tuple(workers.idle() for _ in standing)
            after, idle = tidied(world.stores, workers, after, idle, delayed)
            said = f"The entity is put back to version {position}"
            yield said, (after, queue, idle, delayed, spent(left, PLACES["put_back"]))


def removed(world: World, workers: Workers, state: State) -> Iterator[tuple[str, State]]:
    """Every way to delete an entity that has pages. What was processed stays so: no message may be handled once more."""
    store, queue, standing, delayed, left = state
    for number, (entity, library) in enumerate(zip(store.entities, store.libraries, strict=True)):
        gone = world.stores.with_entity(store, number, world.stores.entity(entity.newest + 1, (ABSENT,)))
        if entity.truth.document is not None and is_removed(gone.entities[number], library):
            idle = tuple(workers.idle(item.memories, item.book) for item in standing)
            after, idle = tidied(world.stores, workers, gone, idle, delayed)
            yield REMOVED, (after, queue, idle, delayed, spent(left, PLACES["removed"]))


def emptied(world: World, state: State) -> Iterator[tuple[str, State]]:
    """Every way to lose the pages of an entity, with what is said of it."""
    store, queue, standing, delayed, left = state
    for number, library in enumerate(store.libraries):
        pages = tuple(id for id in library.now if id.startswith("page:"))
        if not pages:
            continue
        lost = world.stores.library((*library.writes, *((id, None) for id in pages)))
        after = world.stores.changed(world.stores.with_library(store, number, lost), emptied=store.emptied + 1)
        yield "The pages are lost", (after, queue, standing, delayed, spent(left, PLACES["emptied"]))


def _kept(committed: frozenset[tuple[str, str]], entity: Entity) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """What is committed where an entity was put back, and the keys of messages of which that is no longer true."""
    history = history_of(entity.truth.document)
    kept = frozenset(item for item in committed if item[0].partition("/")[2] in history.split(">"))
    return kept, frozenset(key for key, _ in committed - kept)
