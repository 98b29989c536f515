"""FROM and JOIN: the rows of a query, and what a name stands for in each.

`FROM c JOIN t IN c.tags` makes one row of every item and every element of its array; an item without that array makes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from local_cosmos.query.expressions import Compiler, Evaluator
from local_cosmos.query.tree import Constant, Query
from local_cosmos.storage.items import Item

StoredItem: TypeAlias = tuple[str, Item]
"""Effective partition key and item, in the order of the store."""

Place: TypeAlias = tuple[str, int, int]
"""Effective partition key, ordinal of the item, and the number of the row among those of the item."""


class Row(NamedTuple):
    """One row; a tuple, because there are many.

    Attributes:
        content: What evaluators get: the document, or with JOIN an object with one property per name.
        item: The item that it was made of.
        effective: The item's effective partition key.
        number: Of the row among those of the item.
    """

    content: Any
    item: Item
    effective: str
    number: int

    @property
    def place(self) -> Place:
        """In the order of the store."""
        return self.effective, self.item.ordinal, self.number


class Sources:
    """The rows of a query.

    Args:
        query: The parsed query.
        parameters: Values by name, the name with its `@`.

    Attributes:
        compiler: For the expressions of the query.
    """

    def __init__(self, query: Query, parameters: Mapping[str, Any]) -> None:
        self._alias = query.alias
        names: dict[str, tuple[str, ...]] = {query.alias: (query.alias,) if query.joins else ()}
        self._arrays: list[tuple[str, Evaluator]] = []
        for join in query.joins:
            array = Compiler(names, parameters).evaluator(join.array)
            self._arrays.append((join.alias, array))
            names = names | {join.alias: (join.alias,)}
        self.compiler = Compiler(names, parameters)
        self._where = self.compiler.evaluator(query.where or Constant(True))

    def rows(self, items: Iterable[StoredItem]) -> Iterator[Row]:
        """The rows for which WHERE is true, in the order of the store."""
        where = self._where
        if not self._arrays:
            for effective, item in items:
                if where(item.document) is True:
                    yield Row(item.document, item, effective, 0)
            return
        for effective, item in items:
            for number, content in enumerate(self._combinations(item.document)):
                if where(content) is True:
                    yield Row(content, item, effective, number)

    def _combinations(self, document: Any) -> list[dict[str, Any]]:
        found = [{self._alias: document}]
        for alias, array_of in self._arrays:
            pairs = [(content, array_of(content)) for content in found]
            found = [
                content | {alias: element} for content, array in pairs if isinstance(array, list) for element in array
            ]
        return found
