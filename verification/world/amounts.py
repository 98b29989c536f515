"""Amounts in a state: what is left of budgets, and how many copies wait in queues."""

from __future__ import annotations

from verification.world.scenario import UNLIMITED


def spent(left: tuple[int, ...], place: int) -> tuple[int, ...]:
    """The budget after one more fault."""
    amount = left[place]
    return left if amount == UNLIMITED else (*left[:place], amount - 1, *left[place + 1 :])


def with_copies(queue: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """The queues with one more copy in each of these places."""
    more = list(queue)
    for place in places:
        more[place] += 1
    return tuple(more)


def without_copies(queue: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """The queues with one copy fewer in each of these places."""
    rest = list(queue)
    for place in places:
        rest[place] -= 1
    return tuple(rest)
