"""One step from a state, and one answer to a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from verification.explorers.reductions import State, sorted_workers, tidied
from verification.world.answers import World
from verification.world.scenario import PLACES, Scenario, spent, with_copies, without_copies
from verification.world.store import ABSENT, Entity, Library, Store, history_of, is_removed
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer, Write


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
