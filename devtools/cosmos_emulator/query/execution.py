"""Running a query over the items of a container, page by page.

A continuation remembers the last row of a page: its ORDER BY value and its place in the store. The next page begins after
it, whatever was written in between.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from devtools.cosmos_emulator.query.aggregates import AGGREGATES
from devtools.cosmos_emulator.query.comparing import sort_key
from devtools.cosmos_emulator.query.errors import UnsupportedQueryError
from devtools.cosmos_emulator.query.expressions import Compiler, Evaluator
from devtools.cosmos_emulator.query.tree import Call, Columns, Constant, Everything, Expression, Parameter, Query, Value
from devtools.cosmos_emulator.storage.items import Item
from devtools.cosmos_emulator.values import UNDEFINED, MalformedJsonError, parse, serialise

Row: TypeAlias = tuple[str, Item]
"""Effective partition key and item, in the order of the store."""

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


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a page ended: ORDER BY value of the last row, its place, and how many rows the query has passed so far."""

    value: Any
    place: tuple[str, int]
    passed: int


def matches(condition: Query, document: Any) -> bool:
    """Whether a document satisfies a condition."""
    where = condition.where
    return where is None or Compiler(condition.alias, {}).evaluator(where)(document) is True


def run(
    query: Query, parameters: Mapping[str, Any], rows: Iterable[Row], page_size: int, continuation: str | None
) -> Page:
    """One page of a query's results.

    Args:
        query: The parsed query.
        parameters: Values by name, the name with its `@`.
        rows: Candidates in the order of the store.
        page_size: Most rows in the page.
        continuation: From the page before; None for the first.

    Raises:
        UnsupportedQueryError: The query asks for something this emulator does not do.
    """
    return _Execution(query, parameters).page(rows, page_size, continuation)


class _Execution:
    def __init__(self, query: Query, parameters: Mapping[str, Any]) -> None:
        self._query = query
        self._compiler = Compiler(query.alias, parameters)
        self._where = self._compiler.evaluator(query.where) if query.where else None
        self._sorted_by = self._compiler.evaluator(query.order.expression) if query.order else None
        self._skip = self._count(query.skip) or 0
        self._limit = self._count(query.limit)

    def page(self, rows: Iterable[Row], page_size: int, continuation: str | None) -> Page:
        matching = (row for row in rows if self._where is None or self._where(row[1].document) is True)
        if _aggregate_of(self._query) is not None:
            return Page(self._aggregated(matching), None)
        project = self._projection()
        mark = _read(continuation) if continuation else None
        passed = mark.passed if mark else 0
        end = None if self._limit is None else self._skip + self._limit
        results: list[bytes] = []
        size = 0
        last: Row | None = None
        for row in self._after(mark, self._in_order(matching)):
            full = len(results) >= page_size or size > LARGEST_PAGE
            if end is not None and passed >= end:
                break
            if full and last is not None:
                return Page(results, self._written(last, passed))
            passed, last = passed + 1, row
            result = project(row[1]) if passed > self._skip else None
            if result is not None:
                results.append(result)
                size += len(result)
        return Page(results, None)

    def _in_order(self, rows: Iterator[Row]) -> Iterable[Row]:
        order, value_of = self._query.order, self._sorted_by
        if order is None or value_of is None:
            return rows
        return sorted(rows, key=lambda row: sort_key(value_of(row[1].document)), reverse=order.descending)

    def _after(self, mark: _Mark | None, rows: Iterable[Row]) -> Iterable[Row]:
        return rows if mark is None else (row for row in rows if self._is_after(mark, row))

    def _is_after(self, mark: _Mark, row: Row) -> bool:
        place = (row[0], row[1].ordinal)
        if self._sorted_by is None or self._query.order is None:
            return place > mark.place
        value, marked = sort_key(self._sorted_by(row[1].document)), sort_key(mark.value)
        if value == marked:
            return place > mark.place
        return (value < marked) is self._query.order.descending

    def _written(self, row: Row, passed: int) -> str:
        value = UNDEFINED if self._sorted_by is None else self._sorted_by(row[1].document)
        sorted_by = [] if value is UNDEFINED else [value]
        return base64.b64encode(serialise([sorted_by, row[0], row[1].ordinal, passed])).decode("ascii")

    def _projection(self) -> Any:
        match self._query.selection:
            case Everything():
                return lambda item: item.raw
            case Value(expression):
                value = self._compiler.evaluator(expression)
                return lambda item: None if (v := value(item.document)) is UNDEFINED else serialise(v)
            case Columns(columns):
                values = {column.name: self._compiler.evaluator(column.expression) for column in columns}
                return lambda item: serialise(_object(values, item.document))

    def _aggregated(self, rows: Iterator[Row]) -> list[bytes]:
        query = self._query
        if query.order or query.skip or query.limit:
            raise UnsupportedQueryError("ORDER BY, TOP and OFFSET LIMIT with an aggregate are not supported.")
        documents = [item.document for _, item in rows]
        match query.selection:
            case Value(expression):
                result = self._aggregate(expression, documents)
                return [] if result is UNDEFINED else [serialise(result)]
            case Columns(columns):
                results = {column.name: self._aggregate(column.expression, documents) for column in columns}
                return [serialise({name: value for name, value in results.items() if value is not UNDEFINED})]
            case Everything():
                return []

    def _aggregate(self, expression: Expression, documents: list[Any]) -> Any:
        if not isinstance(expression, Call) or expression.name not in AGGREGATES or len(expression.arguments) != 1:
            raise UnsupportedQueryError("A SELECT list may not mix aggregates of one argument with anything else.")
        value_of = self._compiler.evaluator(expression.arguments[0])
        values = (value_of(document) for document in documents)
        return AGGREGATES[expression.name]([value for value in values if value is not UNDEFINED])

    def _count(self, count: Constant | Parameter | None) -> int | None:
        if count is None:
            return None
        value = count.value if isinstance(count, Constant) else self._compiler.parameter(count.name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UnsupportedQueryError(f"TOP, OFFSET and LIMIT need a number that is not negative; this is {value!r}.")
        return value


def _aggregate_of(query: Query) -> Call | None:
    match query.selection:
        case Value(expression):
            candidates = [expression]
        case Columns(columns):
            candidates = [column.expression for column in columns]
        case Everything():
            candidates = []
    calls = (part for part in candidates if isinstance(part, Call) and part.name in AGGREGATES)
    return next(calls, None)


def _object(values: Mapping[str, Evaluator], document: Any) -> dict[str, Any]:
    pairs = ((name, value(document)) for name, value in values.items())
    return {name: value for name, value in pairs if value is not UNDEFINED}


def _read(continuation: str) -> _Mark:
    try:
        value, effective, ordinal, passed = parse(base64.b64decode(continuation, validate=True))
        return _Mark(value[0] if value else UNDEFINED, (str(effective), int(ordinal)), int(passed))
    except (MalformedJsonError, ValueError, TypeError, IndexError) as error:
        raise UnsupportedQueryError("The continuation token is not one of this emulator's.") from error
