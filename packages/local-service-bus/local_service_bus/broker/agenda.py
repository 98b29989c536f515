"""What is to happen when."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from math import inf
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items with their times. Nothing is ever crossed out: whoever takes an item looks whether it still matters."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._numbers = count()

    def add(self, when: float, item: Item) -> None:
        """Note an item; `when` in seconds since 1970, infinite for never."""
        if when < inf:
            heapq.heappush(self._heap, (when, next(self._numbers), item))

    def due(self, now: float) -> Iterator[Item]:
        """Take all items whose time has come, earliest first; those that come meanwhile as well."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]

    def next_time(self) -> float:
        """When to look again, at the latest."""
        return self._heap[0][0] if self._heap else inf
