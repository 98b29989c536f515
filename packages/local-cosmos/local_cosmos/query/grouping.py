"""GROUP BY and aggregates: one result for each group of rows; without GROUP BY all rows, even if there are none, are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from local_cosmos.query.aggregates import AGGREGATES, is_aggregate, selected
from local_cosmos.query.comparing import identity
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.expressions import Compiler
from local_cosmos.query.printing import expression_text
from local_cosmos.query.tree import Call, Everything, Expression, Path, Query, Subquery, with_parts
from local_cosmos.values import UNDEFINED

_AGGREGATES: Final = "aggregates"
_KEYS: Final = "keys"
_NAMES: Final = {_AGGREGATES: (_AGGREGATES,), _KEYS: (_KEYS,)}
"""What the SELECT list reads of a group: its aggregates, and its values of what GROUP BY names."""


class _Group(NamedTuple):
    """The values of what GROUP BY names, and the defined values of each aggregate's argument; no row is kept."""

    keys: Sequence[Any]
    values: Sequence[list[Any]]


def results(query: Query, compiler: Compiler, contents: Iterable[Any]) -> list[Any]:
    """The results of a grouped query, the groups in the order of their first rows.

    Raises:
        UnsupportedQueryError: The SELECT list has something else than aggregates and what GROUP BY names.
    """
    if query.order and query.groups:
        raise UnsupportedQueryError("ORDER BY with GROUP BY is not supported.")
    if isinstance(query.selection, Everything):
        raise UnsupportedQueryError("SELECT * with GROUP BY is not supported.")
    aggregates: list[Call] = []
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


def _of_group(expression: Expression, groups: Sequence[str], aggregates: list[Call]) -> Expression:
    """A part of the SELECT list that reads a group instead of a row; its aggregates are added to the list.

    What GROUP BY names is known by its text: to Python the trees of `1` and `true` are equal.
    """
    if isinstance(expression, Call) and is_aggregate(expression):
        if len(expression.arguments) != 1:
            raise UnsupportedQueryError(f"The aggregate {expression.name} takes one argument.")
        aggregates.append(expression)
        return Path(_AGGREGATES, (len(aggregates) - 1,))
    if (text := expression_text(expression)) in groups:
        return Path(_KEYS, (groups.index(text),))
    if isinstance(expression, Path | Subquery):
        raise UnsupportedQueryError("Apart from aggregates, a SELECT list may only have what GROUP BY names.")
    return with_parts(expression, lambda part: _of_group(part, groups, aggregates))


def _content(group: _Group, aggregates: Sequence[Call]) -> Mapping[str, list[Any]]:
    results = [AGGREGATES[call.name](values) for call, values in zip(aggregates, group.values, strict=True)]
    return {_AGGREGATES: results, _KEYS: list(group.keys)}
