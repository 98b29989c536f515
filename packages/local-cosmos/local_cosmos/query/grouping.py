"""GROUP BY and aggregates: one result for each group of rows; without GROUP BY all rows, even if there are none, are one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from local_cosmos.query.aggregates import AGGREGATES
from local_cosmos.query.comparing import identity
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.expressions import Compiler, Evaluator
from local_cosmos.query.tree import (
    Array,
    Call,
    Columns,
    Constant,
    Everything,
    Expression,
    Object,
    Parameter,
    Query,
    Selection,
    Value,
)
from local_cosmos.values import UNDEFINED


class _Group(NamedTuple):
    """The content of its first row, and the defined values of each aggregate's argument; no other row is kept."""

    first: Any
    values: Sequence[list[Any]]


_OfGroup: TypeAlias = Callable[[_Group], Any]


def is_grouped(query: Query) -> bool:
    """Whether results are made of groups of rows instead of single rows."""
    return bool(query.groups) or _has_aggregate(selected(query.selection))


def is_aggregate(expression: Expression) -> bool:
    """Whether an expression is a call of an aggregate."""
    return isinstance(expression, Call) and expression.name in AGGREGATES


def selected(selection: Selection) -> Expression:
    """A SELECT list as one expression; a list of columns makes an object."""
    match selection:
        case Everything():
            return Constant(UNDEFINED)
        case Value(expression):
            return expression
        case Columns(columns):
            return Object(tuple((column.name, column.expression) for column in columns))


def results(query: Query, compiler: Compiler, contents: Iterable[Any]) -> list[Any]:
    """The results of a grouped query, the groups in the order of their first rows.

    Raises:
        UnsupportedQueryError: The SELECT list has something else than aggregates and what GROUP BY names.
    """
    if query.order:
        raise UnsupportedQueryError("ORDER BY with aggregates or GROUP BY is not supported.")
    if isinstance(query.selection, Everything):
        raise UnsupportedQueryError("SELECT * with GROUP BY is not supported.")
    selection = _Selection(query, compiler)
    result_of = selection.evaluator(selected(query.selection))
    keys = [compiler.evaluator(expression) for expression in query.groups]
    groups: dict[tuple[bytes | None, ...], _Group] = (
        {} if keys else {(): _Group(UNDEFINED, [[] for _ in selection.aggregated])}
    )
    for content in contents:
        key = tuple(None if (value := of(content)) is UNDEFINED else identity(value) for of in keys)
        if key not in groups:
            groups[key] = _Group(content, [[] for _ in selection.aggregated])
        for value_of, values in zip(selection.aggregated, groups[key].values, strict=True):
            if (value := value_of(content)) is not UNDEFINED:
                values.append(value)
    made = (result_of(group) for group in groups.values())
    return [result for result in made if result is not UNDEFINED]


class _Selection:
    """Evaluators from a group to a value.

    Attributes:
        aggregated: The arguments of the aggregates, from the content of a row to a value.
    """

    def __init__(self, query: Query, compiler: Compiler) -> None:
        self._groups = query.groups
        self._compiler = compiler
        self.aggregated: list[Evaluator] = []

    def evaluator(self, expression: Expression) -> _OfGroup:
        match expression:
            case Call(name, arguments) if is_aggregate(expression):
                return self._aggregate(name, arguments)
            case _ if expression in self._groups or isinstance(expression, Constant | Parameter):
                value = self._compiler.evaluator(expression)
                return lambda group: value(group.first)
            case Array(elements):
                values = [self.evaluator(element) for element in elements]
                return lambda group: [v for of in values if (v := of(group)) is not UNDEFINED]
            case Object(properties):
                named = [(name, self.evaluator(value)) for name, value in properties]
                return lambda group: {name: v for name, of in named if (v := of(group)) is not UNDEFINED}
        raise UnsupportedQueryError("Beside aggregates, a SELECT list may only have what GROUP BY names.")

    def _aggregate(self, name: str, arguments: Sequence[Expression]) -> _OfGroup:
        if len(arguments) != 1:
            raise UnsupportedQueryError(f"The aggregate {name} takes one argument.")
        number, aggregate = len(self.aggregated), AGGREGATES[name]
        self.aggregated.append(self._compiler.evaluator(arguments[0]))
        return lambda group: aggregate(group.values[number])


def _has_aggregate(expression: Expression) -> bool:
    match expression:
        case Call():
            return is_aggregate(expression)
        case Array(elements):
            return any(map(_has_aggregate, elements))
        case Object(properties):
            return any(_has_aggregate(value) for _, value in properties)
    return False
