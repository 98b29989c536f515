"""Deliveries that are not acknowledged: they come again, alone or with their batch, or the host gives up on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from verification.explorers.reductions import State, sorted_workers
from verification.world.amounts import spent, with_copies, without_copies
from verification.world.scenario import PLACES, Scenario
from verification.world.store import Library, Store
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer

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
        scenario: what is explored.
        held: places in the queues that the deliveries came from.
        idle: the worker when its work is done.
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
