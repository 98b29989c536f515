"""Sets of numbers as ranges: what a receiver keeps of the numbers that it received."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

Ranges = tuple[tuple[int, int], ...]
"""Numbers as first and last of each run, ascending, with gaps between the runs."""


def holds(ranges: Ranges, number: int) -> bool:
    """Whether a number is in a range."""
    return any(first <= number <= last for first, last in ranges)


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges with one more number."""
    return union(ranges, ((number, number),))


def from_number(ranges: Ranges, number: int) -> Ranges:
    """What is left of the ranges from a number on."""
    return tuple((max(first, number), last) for first, last in ranges if last >= number)


def union(some: Ranges, others: Ranges) -> Ranges:
    """All numbers of both."""
    united: list[tuple[int, int]] = []
    for first, last in sorted((*some, *others)):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return tuple(united)


def highest(ranges: Ranges, most: int) -> tuple[int, ...]:
    """The highest numbers, so many at most, from the top."""
    return tuple(islice(_from_the_top(ranges), most))


def _from_the_top(ranges: Ranges) -> Iterator[int]:
    for first, last in reversed(ranges):
        yield from range(last, first - 1, -1)


def is_ascending(ranges: Ranges, least: int, greatest: int) -> bool:
    """Whether these are ranges: first before last, all from `least` to `greatest`, ascending, with gaps between them."""
    edges = [edge for pair in ranges for edge in pair]
    gaps = all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))
    return gaps and edges == sorted(edges) and all(least <= edge <= greatest for edge in edges)
