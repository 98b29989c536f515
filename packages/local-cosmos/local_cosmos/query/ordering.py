"""ORDER BY on one or several paths, over values of all types.

Items whose values are the same are in the order of their creation, backwards when the first path is descending: the Java SDK
relies on it when it goes on after a page. The rows that JOIN makes of one item keep their order in both cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from local_cosmos.query.comparing import sort_key
from local_cosmos.query.expressions import Compiler
from local_cosmos.query.sources import Place, Row
from local_cosmos.query.tree import Order


class Ordering:
    """The order of a query's rows; without parts that of the store.

    Args:
        parts: The most important first.
        compiler: For their expressions.
    """

    def __init__(self, parts: Sequence[Order], compiler: Compiler) -> None:
        self._values = [compiler.evaluator(part.expression) for part in parts]
        self._descending = [part.descending for part in parts]

    def values(self, row: Row) -> list[Any]:
        """What a row is sorted by."""
        return [value(row.content) for value in self._values]

    def sorted(self, rows: Iterable[Row]) -> Iterable[Row]:
        """The rows in order."""
        if not self._values:
            return rows
        entries = [([sort_key(of(row.content)) for of in self._values], row.item.ordinal, row) for row in rows]
        entries.sort(key=itemgetter(0, 1), reverse=self._descending[0])  # Stable: the rows of one item stay in order.
        if len(set(self._descending)) > 1:
            for part in reversed(range(len(self._values))):  # Sorting is stable: the most important part comes last.
                entries.sort(key=lambda entry: entry[0][part], reverse=self._descending[part])
        return [row for *_, row in entries]

    def is_after(self, row: Row, values: Sequence[Any], place: Place) -> bool:
        """Whether a row comes after one with these values at this place."""
        if not self._values:
            return row.place > place
        for own, other, descending in zip(self.values(row), values, self._descending, strict=True):
            one, another = sort_key(own), sort_key(other)
            if one != another:
                return (one < another) is descending
        _, ordinal, number = place
        if row.item.ordinal != ordinal:
            return (row.item.ordinal < ordinal) is self._descending[0]
        return row.number > number
