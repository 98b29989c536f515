"""The query plan: how a client asks each physical partition by itself, and makes one result of the answers.

The shape is that of `partitionedQueryExecutionInfo`, version 2. A rewritten query gives with each row what the client needs to
merge it: `orderByItems` for ORDER BY, `groupByItems` for GROUP BY, and partial aggregates as `{"item": ...}`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from local_cosmos.query import tree
from local_cosmos.query.aggregates import is_aggregate, is_grouped, selected
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import count
from local_cosmos.query.printing import expression_text, text
from local_cosmos.values import JsonObject

_VERSION: Final = 2
_TYPES: Final[Mapping[str, str]] = {"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max", "AVG": "Average"}
_FILTER: Final = tree.Parameter("({documentdb-formattableorderbyquery-filter})")
"""What the client puts in the braces leaves out what it has had already; or it is `true`."""


def is_needed(query: tree.Query) -> bool:
    """Whether answers of several physical partitions have to be merged; else they just follow one another."""
    return bool(query.order or query.skip or query.limit or query.distinct or is_grouped(query))


def plan(query: tree.Query, parameters: Mapping[str, Any], supported: Collection[str]) -> JsonObject:
    """The plan of a query.

    Args:
        supported: What the client can merge (header `x-ms-cosmos-supported-query-features`).

    Raises:
        UnsupportedQueryError: The client cannot merge the answers, or this emulator cannot split the query.
    """
    if is_grouped(query) and not query.groups:
        query = _of_one_result(query, parameters)
    missing = sorted(_features(query) - set(supported))
    if missing:
        features = ", ".join(missing)
        raise UnsupportedQueryError(f"Query contains features that the calling client does not support: {features}.")
    whole = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    return {
        "partitionedQueryExecutionInfoVersion": _VERSION,
        "queryInfo": _info(query, parameters),
        "queryRanges": [whole],
    }


def _info(query: tree.Query, parameters: Mapping[str, Any]) -> JsonObject:
    skip, limit = count(query.skip, parameters), count(query.limit, parameters)
    columns = query.selection.columns if isinstance(query.selection, tree.Columns) else ()
    grouped_columns = columns if is_grouped(query) else ()
    order = () if is_grouped(query) else query.order
    has_value = isinstance(query.selection, tree.Value)
    return {
        "distinctType": _distinct_type(query),
        "top": limit if skip is None else None,
        "offset": skip,
        "limit": None if skip is None else limit,
        "orderBy": ["Descending" if part.descending else "Ascending" for part in order],
        "orderByExpressions": [expression_text(part.expression) for part in order],
        "groupByExpressions": [expression_text(expression) for expression in query.groups],
        "groupByAliases": [column.name for column in grouped_columns],
        "aggregates": [_TYPES[call.name] for call in _aggregates(query)] if has_value else [],
        "groupByAliasToAggregateType": {column.name: _type(column.expression) for column in grouped_columns},
        "rewrittenQuery": _rewritten(query, skip, limit),
        "hasSelectValue": has_value,
        "hasNonStreamingOrderBy": False,
    }


def _of_one_result(query: tree.Query, parameters: Mapping[str, Any]) -> tree.Query:
    """Aggregates without GROUP BY, without what changes nothing in their only result.

    ORDER BY stays, which decides what is aggregated; and TOP, which the service leaves to the client, too.
    """
    if query.skip is None:
        return replace(query, distinct=False)
    if count(query.skip, parameters) or not count(query.limit, parameters):
        return query
    return replace(query, distinct=False, skip=None, limit=None)


def _features(query: tree.Query) -> set[str]:
    aggregates = _aggregates(query)
    by_columns = isinstance(query.selection, tree.Columns)
    is_sorted = bool(query.order) and not is_grouped(query)
    needed = {
        "OrderBy": is_sorted,
        "MultipleOrderBy": is_sorted and len(query.order) > 1,
        "Top": bool(query.limit and not query.skip),
        "OffsetAndLimit": bool(query.skip),
        "Distinct": query.distinct,
        "GroupBy": bool(query.groups),
        "Aggregate": bool(aggregates),
        "NonValueAggregate": bool(aggregates) and by_columns,
        "MultipleAggregates": len(aggregates) > 1,
    }
    return {feature for feature, is_needed_here in needed.items() if is_needed_here}


def _distinct_type(query: tree.Query) -> str:
    if not query.distinct:
        return "None"
    sorted_by = [part.expression for part in query.order]
    is_sorted = isinstance(query.selection, tree.Value) and [query.selection.expression] == sorted_by
    return "Ordered" if is_sorted else "Unordered"


def _rewritten(query: tree.Query, skip: int | None, limit: int | None) -> str:
    """What each physical partition is asked; empty for the query as it is."""
    if is_grouped(query):
        return text(_of_partial_groups(query))
    if query.order:
        return text(_of_sorted_rows(query, None if limit is None else (skip or 0) + limit))
    if skip is not None and limit is not None:
        return text(
            replace(query, skip=tree.Constant(0), limit=tree.Constant(skip + limit), selection=_nameless(query))
        )
    return ""


def _of_sorted_rows(query: tree.Query, limit: int | None) -> tree.Query:
    if query.item is None:
        raise UnsupportedQueryError("Over several physical partitions ORDER BY needs the whole item as first source.")
    items = tree.Array(tuple(tree.Object((("item", part.expression),)) for part in query.order))
    payload = tree.Path(query.item, ()) if isinstance(query.selection, tree.Everything) else selected(query.selection)
    columns = (
        tree.Column("_rid", tree.Path(query.item, ("_rid",))),
        tree.Column("orderByItems", items),
        tree.Column("payload", payload),
    )
    return replace(
        query,
        selection=tree.Columns(columns),
        distinct=False,
        where=tree.And((query.where, _FILTER)) if query.where else _FILTER,
        skip=None,
        limit=None if limit is None or query.distinct else tree.Constant(limit),
    )


def _of_partial_groups(query: tree.Query) -> tree.Query:
    if not query.groups and not query.skip:
        query = replace(query, limit=None)
    if (query.order and query.groups) or query.skip or query.limit or query.distinct:
        raise UnsupportedQueryError(
            "ORDER BY with GROUP BY is not supported; nor, over several physical partitions, TOP, OFFSET LIMIT and DISTINCT."
        )
    match query.selection:
        case tree.Value(expression):
            payload = _partial(expression, query.groups)
        case tree.Columns(columns):
            payload = tree.Object(tuple((column.name, _partial(column.expression, query.groups)) for column in columns))
        case tree.Everything():
            raise UnsupportedQueryError("SELECT * with GROUP BY is not supported.")
    if query.groups:
        items = tree.Array(tuple(tree.Object((("item", expression),)) for expression in query.groups))
        return replace(
            query, selection=tree.Columns((tree.Column("groupByItems", items), tree.Column("payload", payload)))
        )
    if isinstance(query.selection, tree.Value):
        return replace(query, selection=tree.Value(tree.Array((payload,))))
    return replace(query, selection=tree.Columns((tree.Column("payload", payload),)))


def _partial(expression: tree.Expression, groups: Sequence[tree.Expression]) -> tree.Expression:
    """What of a part of the SELECT list can be merged over physical partitions."""
    if expression in groups or isinstance(expression, tree.Constant | tree.Parameter):
        return expression
    if not isinstance(expression, tree.Call) or not is_aggregate(expression):
        raise UnsupportedQueryError("Over several physical partitions a SELECT list may not calculate with aggregates.")
    number = tree.Call("COUNT", expression.arguments)
    match expression.name:
        case "AVG":
            return tree.Object(
                (("item", tree.Object((("sum", tree.Call("SUM", expression.arguments)), ("count", number)))),)
            )
        case "MIN" | "MAX" as name:
            return tree.Object(
                (("item", expression), ("item2", tree.Object(((name.lower(), expression), ("count", number)))))
            )
    return tree.Object((("item", expression),))


def _aggregates(query: tree.Query) -> list[tree.Call]:
    match query.selection:
        case tree.Value(expression):
            candidates = [expression]
        case tree.Columns(columns):
            candidates = [column.expression for column in columns]
        case tree.Everything():
            candidates = []
    return [part for part in candidates if isinstance(part, tree.Call) and is_aggregate(part)]


def _type(expression: tree.Expression) -> str | None:
    return _TYPES[expression.name] if isinstance(expression, tree.Call) and is_aggregate(expression) else None


def _nameless(query: tree.Query) -> tree.Everything | tree.Value:
    """The selection without names of columns, of which some (`$1`) cannot be written."""
    return query.selection if isinstance(query.selection, tree.Everything) else tree.Value(selected(query.selection))
