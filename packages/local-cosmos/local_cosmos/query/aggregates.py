"""Aggregates over all rows of a query: one row comes back.

Documented behaviour: undefined values are skipped; SUM and AVG are undefined as soon as a value is not a number, MIN and MAX
as soon as one is an array or object. Of no values COUNT and SUM are 0 and the others undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from local_cosmos.query import tree
from local_cosmos.query.calculating import is_number, number
from local_cosmos.query.comparing import is_primitive, sort_key
from local_cosmos.values import UNDEFINED


def _sum(values: Sequence[Any]) -> Any:
    return number(sum(map(float, values))) if all(map(is_number, values)) else UNDEFINED


def _average(values: Sequence[Any]) -> Any:
    total = _sum(values)
    return number(total / len(values)) if values and total is not UNDEFINED else UNDEFINED


def _extreme(choose: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    def of(values: Sequence[Any]) -> Any:
        if not values or not all(map(is_primitive, values)):
            return UNDEFINED
        return choose(values, key=sort_key)

    return of


AGGREGATES: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "COUNT": len,
    "SUM": _sum,
    "MIN": _extreme(min),
    "MAX": _extreme(max),
    "AVG": _average,
}
"""By name: from the defined values to the result."""


def is_grouped(query: tree.Query) -> bool:
    """Whether results are made of groups of rows instead of single rows."""
    return bool(query.groups) or any(map(is_aggregate, tree.parts(selected(query.selection))))


def is_aggregate(expression: tree.Expression) -> bool:
    """Whether an expression is a call of an aggregate."""
    return isinstance(expression, tree.Call) and expression.name in AGGREGATES


def selected(selection: tree.Selection) -> tree.Expression:
    """A SELECT list as one expression; a list of columns makes an object."""
    match selection:
        case tree.Everything():
            return tree.Constant(UNDEFINED)
        case tree.Value(expression):
            return expression
        case tree.Columns(columns):
            return tree.Object(tuple((column.name, column.expression) for column in columns))


def has_one_result(query: tree.Query) -> bool:
    """Whether a query in place of one value can have no second result, whatever the item is."""
    if (is_grouped(query) and not query.groups) or query.limit in (tree.Constant(0), tree.Constant(1)):
        return True
    return not any(
        source.each or (isinstance(source.of, tree.Query) and not has_one_result(source.of)) for source in query.sources
    )
