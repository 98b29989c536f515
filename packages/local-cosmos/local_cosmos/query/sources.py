"""FROM and JOIN: the rows of a query, and what a name stands for in each.

`FROM c JOIN t IN c.tags` makes one row of every item and every element of its array; an item without that array makes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.expressions import Compiler, Given, Names
from local_cosmos.query.tree import Constant, Path, Query, Source
from local_cosmos.storage.items import Item
from local_cosmos.values import UNDEFINED, JsonObject

StoredItem: TypeAlias = tuple[str, Item]
"""Effective partition key and item, in the order of the store."""

Place: TypeAlias = tuple[str, int, int]
"""Effective partition key, ordinal of the item, and the number of the row among those of the item."""

_Values: TypeAlias = Mapping[str, Any]
"""The value of each name."""


class Row(NamedTuple):
    """One row; a tuple, because there are many.

    Attributes:
        content: What evaluators get: the document, or, unless the item is the only source, values by name.
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
        outer: Names of the query around it; None for a whole query, whose first source begins at the item.

    Attributes:
        compiler: For the expressions of the query.
    """

    def __init__(self, query: Query, given: Given, outer: Sequence[str] | None = None) -> None:
        self._completing = given.completing
        self._is_plain = outer is None and len(query.sources) == 1 and query.item is not None
        self._root = _root(query.sources[0]) if outer is None and query.sources else None
        names: Names = {name: (name,) for name in (outer or ((self._root,) if self._root is not None else ()))}
        self._sources = []
        for source in query.sources:
            self._sources.append((source, _values(source, names, given)))
            inside = names if outer is not None or self._sources[1:] else {}  # The item has its new name only.
            names = {**inside, source.alias: (source.alias,)}
        self.compiler = Compiler({query.sources[0].alias: ()} if self._is_plain else names, given)
        self._where = self.compiler.evaluator(query.where or Constant(True))

    def rows(self, items: Iterable[StoredItem]) -> Iterator[Row]:
        """The rows of a whole query for which WHERE is true, in the order of the store."""
        where = self._where
        if self._is_plain:
            for effective, item in items:
                document = self._document(item) if self.compiler.reads else None  # Parsing takes most of the time.
                if where(document) is True:
                    yield Row(document, item, effective, 0)
            return
        for effective, item in items:
            start = {} if self._root is None else {self._root: self._document(item)}
            for number, content in enumerate(self._combinations(start)):
                if where(content) is True:
                    yield Row(content, item, effective, number)

    def contents(self, outer: _Values) -> list[_Values]:
        """The rows of a subquery for which WHERE is true."""
        return [content for content in self._combinations(outer) if self._where(content) is True]

    def _document(self, item: Item) -> JsonObject:
        return item.document if self._completing is None else self._completing(item.document)

    def _combinations(self, start: _Values) -> list[_Values]:
        found = [start]
        for source, values_of in self._sources:
            found = [{**content, source.alias: value} for content in found for value in values_of(content)]
        return found


def _root(source: Source) -> str:
    if not isinstance(source.of, Path):
        raise UnsupportedQueryError("The first source of a query is the container or a path in it, not a subquery.")
    return source.of.alias


def _values(source: Source, names: Names, given: Given) -> Any:
    """A function from values by name to those that a source adds."""
    if isinstance(source.of, Query):
        results = given.answer(source.of, tuple(names), given)
        if not source.each:
            return results
        return lambda content: [item for array in results(content) if isinstance(array, list) for item in array]
    value_of = Compiler(names, given).evaluator(source.of)
    if not source.each:
        return lambda content: [] if (value := value_of(content)) is UNDEFINED else [value]
    return lambda content: array if isinstance(array := value_of(content), list) else []
