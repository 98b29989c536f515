"""Running a query over the items of a container, page by page.

A page of single rows begins after the last row of the page before, whatever was written in between. DISTINCT, GROUP BY and
aggregates look at all rows for every page, which begins at the number of its first result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, NamedTuple

from local_cosmos.query import tree
from local_cosmos.query.aggregates import AGGREGATES, is_aggregate, is_grouped, selected
from local_cosmos.query.comparing import distinct, identity, sort_key
from local_cosmos.query.continuations import AfterRow, AtResult
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.expressions import Compiler, Given
from local_cosmos.query.printing import expression_text
from local_cosmos.query.sources import Place, Row, Sources, StoredItem
from local_cosmos.values import UNDEFINED, JsonObject, parse, serialise


class Ordering:
    """The order of a query's rows: that of ORDER BY on one or several paths; without parts that of the store.

    Items whose values are the same are in the order of their creation, backwards when the first path is descending: the Java
    SDK relies on it when it goes on after a page. The rows that JOIN makes of one item keep their order in both cases.

    Args:
        parts: The most important first.
    """

    def __init__(self, parts: Sequence[tree.Order], compiler: Compiler) -> None:
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


_AGGREGATES: Final = "aggregates"
_KEYS: Final = "keys"
_NAMES: Final = {_AGGREGATES: (_AGGREGATES,), _KEYS: (_KEYS,)}
"""What the SELECT list reads of a group: its aggregates, and its values of what GROUP BY names."""


class _Group(NamedTuple):
    """The values of what GROUP BY names, and the defined values of each aggregate's argument; no row is kept."""

    keys: Sequence[Any]
    values: Sequence[list[Any]]


def group_results(query: tree.Query, compiler: Compiler, contents: Iterable[Any]) -> list[Any]:
    """The results of a grouped query, the groups in the order of their first rows.

    Without GROUP BY all rows, even if there are none, are one group.

    Raises:
        UnsupportedQueryError: The SELECT list has something else than aggregates and what GROUP BY names.
    """
    if query.order and query.groups:
        raise UnsupportedQueryError("ORDER BY with GROUP BY is not supported.")
    if isinstance(query.selection, tree.Everything):
        raise UnsupportedQueryError("SELECT * with GROUP BY is not supported.")
    aggregates: list[tree.Call] = []
    groups_by = [expression_text(expression) for expression in query.groups]
    result_of = compiler.naming(_NAMES).evaluator(_of_group(selected(query.selection), groups_by, aggregates))
    values_of = [compiler.evaluator(aggregate.arguments[0]) for aggregate in aggregates]
    keys_of = [compiler.evaluator(expression) for expression in query.groups]
    groups: dict[tuple[bytes | None, ...], _Group] = {} if keys_of else {(): _Group((), [[] for _ in aggregates])}
    for content in contents:
        keys = [of(content) for of in keys_of]
        name = tuple(None if key is UNDEFINED else identity(key) for key in keys)
        if name not in groups:
            groups[name] = _Group(keys, [[] for _ in aggregates])
        for value_of, values in zip(values_of, groups[name].values, strict=True):
            if (value := value_of(content)) is not UNDEFINED:
                values.append(value)
    found = (result_of(_content(group, aggregates)) for group in groups.values())
    return [result for result in found if result is not UNDEFINED]


def _of_group(expression: tree.Expression, groups: Sequence[str], aggregates: list[tree.Call]) -> tree.Expression:
    """A part of the SELECT list that reads a group instead of a row; its aggregates are added to the list.

    What GROUP BY names is known by its text: to Python the trees of `1` and `true` are equal.
    """
    if isinstance(expression, tree.Call) and is_aggregate(expression):
        if len(expression.arguments) != 1:
            raise UnsupportedQueryError(f"The aggregate {expression.name} takes one argument.")
        aggregates.append(expression)
        return tree.Path(_AGGREGATES, (len(aggregates) - 1,))
    if (text := expression_text(expression)) in groups:
        return tree.Path(_KEYS, (groups.index(text),))
    if isinstance(expression, tree.Path | tree.Subquery):
        raise UnsupportedQueryError("Apart from aggregates, a SELECT list may only have what GROUP BY names.")
    return tree.with_parts(expression, lambda part: _of_group(part, groups, aggregates))


def _content(group: _Group, aggregates: Sequence[tree.Call]) -> Mapping[str, list[Any]]:
    results = [AGGREGATES[call.name](values) for call, values in zip(aggregates, group.values, strict=True)]
    return {_AGGREGATES: results, _KEYS: list(group.keys)}


LARGEST_PAGE: Final = 4 * 1024 * 1024 - 64 * 1024
"""Bytes in a page, of the documented 4 MB; the rest is for the envelope."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of results.

    Attributes:
        rows: Each as JSON text.
        continuation: Where the next page begins; None after the last one.
        retrieves: Whether the query needs the items themselves; `COUNT(1)` does not.
    """

    rows: list[bytes]
    continuation: str | None
    retrieves: bool = True


def given(
    parameters: Mapping[str, Any], now: float, completing: Callable[[JsonObject], JsonObject] | None = None
) -> Given:
    """What comes with a query.

    Args:
        parameters: Values by name, the name with its `@`.
        now: Seconds since 1970.
        completing: Adds computed properties to a document; None where the query speaks of none.
    """
    return Given(parameters, now, _subquery, completing)


def matches(condition: tree.Query, document: Any, now: float) -> bool:
    """Whether a document satisfies a condition; `now` is in seconds since 1970."""
    where = condition.where
    return where is None or Sources(condition, given({}, now)).compiler.evaluator(where)(document) is True


def run(
    query: tree.Query,
    inputs: Given,
    items: Iterable[StoredItem],
    page_size: int,
    begin: AfterRow | AtResult | None,
    *,
    are_sorted: bool = False,
) -> Page:
    """One page of a query's results.

    Args:
        page_size: Most results in the page.
        begin: Where the page begins; None for the first.
        are_sorted: Whether the items are as ORDER BY wants them; else they are in the order of the store.

    Raises:
        UnsupportedQueryError: The query asks for something this emulator does not do.
    """
    execution = _Execution(query, inputs)
    if not query.sources:
        return _numbered_page([serialise(item) for item in _subquery(query, (), inputs)({})], begin, page_size)
    if query.distinct or is_grouped(query):
        results = execution.results(items)
        return replace(_numbered_page(results, begin, page_size), retrieves=execution.reads)
    return execution.page(items, begin, page_size, are_sorted=are_sorted)


class _Execution:
    def __init__(self, query: tree.Query, inputs: Given) -> None:
        parameters = inputs.parameters
        self._query = query
        self._sources = Sources(query, inputs)
        self._compiler = self._sources.compiler
        self._ordering = Ordering(query.order, self._compiler)
        self._skip = count(query.skip, parameters) or 0
        self._limit = count(query.limit, parameters)

    @property
    def reads(self) -> bool:
        """Whether anything in the query looks at a document."""
        return self._compiler.reads

    def page(
        self, items: Iterable[StoredItem], begin: AfterRow | AtResult | None, page_size: int, *, are_sorted: bool
    ) -> Page:
        """A page of single rows."""
        if isinstance(begin, AtResult) or (begin is not None and len(begin.values) != len(self._query.order)):
            raise UnsupportedQueryError("The continuation token is another query's.")
        project = self._projection()
        passed = begin.passed if begin else 0
        end = None if self._limit is None else self._skip + self._limit
        results: list[bytes] = []
        size = 0
        last: Row | None = None
        rows = self._after(begin, self._sources.rows(items))
        for row in rows if are_sorted else self._ordering.sorted(rows):
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
        if is_grouped(self._query):
            contents = (row.content for row in rows)
            found = [serialise(result) for result in group_results(self._query, self._compiler, contents)]
        else:
            projected = map(self._projection(), self._ordering.sorted(rows))
            found = [result for result in projected if result is not None]
        if self._query.distinct:
            found = [serialise(item) for item in distinct(map(parse, found))]
        return found[self._skip :][: self._limit]

    def _after(self, begin: AfterRow | None, rows: Iterator[Row]) -> Iterator[Row]:
        if begin is None:
            return rows
        return (row for row in rows if self._ordering.is_after(row, begin.values, begin.place))

    def _projection(self) -> Callable[[Row], bytes | None]:
        if isinstance(self._query.selection, tree.Everything):
            if len(self._query.sources) > 1:
                raise UnsupportedQueryError("SELECT * is only valid without JOIN.")
            if self._query.item is not None:
                return lambda row: row.item.raw
        value_of = self._compiler.evaluator(_selected(self._query))
        return lambda row: None if (value := value_of(row.content)) is UNDEFINED else serialise(value)


def _selected(query: tree.Query) -> tree.Expression:
    """What a row becomes."""
    if not isinstance(query.selection, tree.Everything):
        return selected(query.selection)
    if len(query.sources) != 1:
        raise UnsupportedQueryError("SELECT * needs FROM with one source.")
    return tree.Path(query.sources[0].alias, ())


def _subquery(query: tree.Query, outer: Sequence[str], inputs: Given) -> Callable[[Mapping[str, Any]], list[Any]]:
    """From values by name, of the query around it, to the results of a subquery."""
    sources = Sources(query, inputs, outer)
    skip, limit = count(query.skip, inputs.parameters) or 0, count(query.limit, inputs.parameters)
    if is_grouped(query):

        def results(contents: list[Any]) -> list[Any]:
            return group_results(query, sources.compiler, contents)

    else:
        keys = [(sources.compiler.evaluator(part.expression), part.descending) for part in reversed(query.order)]
        value_of = sources.compiler.evaluator(_selected(query))

        def results(contents: list[Any]) -> list[Any]:
            for key, descending in keys:
                contents.sort(key=lambda content: sort_key(key(content)), reverse=descending)
            return [value for value in map(value_of, contents) if value is not UNDEFINED]

    def answer(outer_values: Mapping[str, Any]) -> list[Any]:
        found = results(sources.contents(outer_values))
        found = distinct(found) if query.distinct else found
        return found[skip:][:limit]

    return answer


def count(given: tree.Constant | tree.Parameter | None, parameters: Mapping[str, Any]) -> int | None:
    """The number after TOP, OFFSET or LIMIT; None where there is none.

    Raises:
        UnsupportedQueryError: It is not a natural number, or a parameter without value.
    """
    if given is None:
        return None
    if isinstance(given, tree.Parameter) and given.name not in parameters:
        raise UnsupportedQueryError(f"The query uses {given.name}, but no such parameter is given.")
    value = given.value if isinstance(given, tree.Constant) else parameters[given.name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnsupportedQueryError(f"TOP, OFFSET and LIMIT need a number that is not negative; this is {value!r}.")
    return value


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
