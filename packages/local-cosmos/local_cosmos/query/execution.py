"""Running a query over the items of a container, page by page.

A page of single rows begins after the last row of the page before, whatever was written in between. DISTINCT, GROUP BY and
aggregates look at all rows for every page, which begins at the number of its first result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.query import grouping
from local_cosmos.query.comparing import identity
from local_cosmos.query.continuations import AfterRow, AtResult, read
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.ordering import Ordering
from local_cosmos.query.sources import Row, Sources, StoredItem
from local_cosmos.query.tree import Constant, Everything, Parameter, Query
from local_cosmos.values import UNDEFINED, parse, serialise

LARGEST_PAGE: Final = 4 * 1024 * 1024 - 64 * 1024
"""Bytes in a page, of the documented 4 MB; the rest is for the envelope."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of results.

    Attributes:
        rows: Each as JSON text.
        continuation: Where the next page begins; None after the last one.
    """

    rows: list[bytes]
    continuation: str | None


def matches(condition: Query, document: Any) -> bool:
    """Whether a document satisfies a condition."""
    where = condition.where
    return where is None or Sources(condition, {}).compiler.evaluator(where)(document) is True


def run(
    query: Query, parameters: Mapping[str, Any], items: Iterable[StoredItem], page_size: int, continuation: str | None
) -> Page:
    """One page of a query's results.

    Args:
        query: The parsed query.
        parameters: Values by name, the name with its `@`.
        items: Candidates in the order of the store.
        page_size: Most results in the page.
        continuation: From the page before; None for the first.

    Raises:
        UnsupportedQueryError: The query asks for something this emulator does not do.
    """
    execution = _Execution(query, parameters)
    begin = read(continuation) if continuation else None
    if query.distinct or grouping.is_grouped(query):
        return _numbered_page(execution.results(items), begin, page_size)
    return execution.page(items, begin, page_size)


class _Execution:
    def __init__(self, query: Query, parameters: Mapping[str, Any]) -> None:
        self._query = query
        self._sources = Sources(query, parameters)
        self._compiler = self._sources.compiler
        self._ordering = Ordering(query.order, self._compiler)
        self._skip = count(query.skip, parameters) or 0
        self._limit = count(query.limit, parameters)

    def page(self, items: Iterable[StoredItem], begin: AfterRow | AtResult | None, page_size: int) -> Page:
        """A page of single rows."""
        if isinstance(begin, AtResult) or (begin is not None and len(begin.values) != len(self._query.order)):
            raise UnsupportedQueryError("The continuation token is another query's.")
        project = self._projection()
        passed = begin.passed if begin else 0
        end = None if self._limit is None else self._skip + self._limit
        results: list[bytes] = []
        size = 0
        last: Row | None = None
        for row in self._ordering.sorted(self._after(begin, self._sources.rows(items))):
            if end is not None and passed >= end:
                break
            if last is not None and (len(results) >= page_size or size > LARGEST_PAGE):
                return Page(results, AfterRow(self._ordering.values(last), last.place, passed).text())
            passed, last = passed + 1, row
            result = project(row) if passed > self._skip else None
            if result is not None:
                results.append(result)
                size += len(result)
        return Page(results, None)

    def results(self, items: Iterable[StoredItem]) -> list[bytes]:
        """All results of a query with DISTINCT, GROUP BY or aggregates."""
        rows = self._sources.rows(items)
        if grouping.is_grouped(self._query):
            contents = (row.content for row in rows)
            found = [serialise(result) for result in grouping.results(self._query, self._compiler, contents)]
        else:
            projected = map(self._projection(), self._ordering.sorted(rows))
            found = [result for result in projected if result is not None]
        if self._query.distinct:
            found = _without_repetitions(found)
        return found[self._skip :][: self._limit]

    def _after(self, begin: AfterRow | None, rows: Iterator[Row]) -> Iterator[Row]:
        if begin is None:
            return rows
        return (row for row in rows if self._ordering.is_after(row, begin.values, begin.place))

    def _projection(self) -> Callable[[Row], bytes | None]:
        if isinstance(self._query.selection, Everything):
            if self._query.joins:
                raise UnsupportedQueryError("SELECT * is only valid without JOIN.")
            return lambda row: row.item.raw
        value_of = self._compiler.evaluator(grouping.selected(self._query.selection))
        return lambda row: None if (value := value_of(row.content)) is UNDEFINED else serialise(value)


def count(given: Constant | Parameter | None, parameters: Mapping[str, Any]) -> int | None:
    """The number after TOP, OFFSET or LIMIT; None where there is none.

    Raises:
        UnsupportedQueryError: It is not a natural number, or a parameter without value.
    """
    if given is None:
        return None
    if isinstance(given, Parameter) and given.name not in parameters:
        raise UnsupportedQueryError(f"The query uses {given.name}, but no such parameter is given.")
    value = given.value if isinstance(given, Constant) else parameters[given.name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnsupportedQueryError(f"TOP, OFFSET and LIMIT need a number that is not negative; this is {value!r}.")
    return value


def _without_repetitions(results: list[bytes]) -> list[bytes]:
    first: dict[bytes, bytes] = {}
    for result in results:
        first.setdefault(identity(parse(result)), result)
    return list(first.values())


def _numbered_page(results: list[bytes], begin: AfterRow | AtResult | None, page_size: int) -> Page:
    """A page of results that are counted."""
    if isinstance(begin, AfterRow):
        raise UnsupportedQueryError("The continuation token is another query's.")
    first = begin.number if begin else 0
    end, size = first, 0
    while end < len(results) and end - first < page_size and size <= LARGEST_PAGE:
        size += len(results[end])
        end += 1
    return Page(results[first:end], AtResult(end).text() if end < len(results) else None)
