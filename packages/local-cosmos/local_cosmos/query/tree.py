"""The tree of a query: what the parser builds and the evaluator reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
Operator = Literal["+", "-", "*", "/", "%"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `UNDEFINED` is one."""

    value: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """`@name`, replaced by the value that comes with the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Path:
    """`c.a['b'][0]`: an alias, then property names and array indexes."""

    alias: str
    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right`."""

    operator: Comparison
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In:
    """`needle IN (hay, ...)`."""

    needle: Expression
    hay: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """`text LIKE pattern`: `%` for any characters, `_` for one."""

    text: Expression
    pattern: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All parts are true; one false part decides."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One part is true; one true part decides."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a boolean."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Array:
    """`[a, b]`; undefined elements are left out."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """`{"a": x, "b": y}`; undefined properties are left out."""

    properties: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right`, on numbers."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """`NAME(arguments)`, the name in capitals."""

    name: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = (
    Constant | Parameter | Path | Compare | In | Like | And | Or | Not | Array | Object | Arithmetic | Call
)


@dataclass(frozen=True, slots=True)
class Column:
    """One item of a SELECT list."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Everything:
    """`SELECT *`."""


@dataclass(frozen=True, slots=True)
class Value:
    """`SELECT VALUE expression`."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Columns:
    """`SELECT a, b AS c`."""

    columns: tuple[Column, ...]


Selection: TypeAlias = Everything | Value | Columns


@dataclass(frozen=True, slots=True)
class Order:
    """One part of `ORDER BY`."""

    expression: Path
    descending: bool


@dataclass(frozen=True, slots=True)
class Join:
    """`JOIN alias IN array`."""

    alias: str
    array: Path


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query.

    Attributes:
        selection: What a row, or a group of rows, becomes.
        alias: The name of a row in expressions.
        joins: What makes several rows of one item.
        distinct: True to leave out results that were there before.
        where: Rows for which this is true stay; None for all.
        groups: Rows for which these are the same make one result (`GROUP BY`).
        order: Parts of `ORDER BY`, the most important first; none for the order of the store.
        skip: Rows left out at the beginning (`OFFSET`).
        limit: Most rows in all (`TOP` or `LIMIT`).
    """

    selection: Selection
    alias: str
    joins: tuple[Join, ...] = ()
    distinct: bool = False
    where: Expression | None = None
    groups: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    skip: Constant | Parameter | None = None
    limit: Constant | Parameter | None = None
