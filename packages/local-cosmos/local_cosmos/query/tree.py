"""The tree of a query: what the parser builds and the evaluator reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
Operator = Literal["+", "-", "*", "/", "%", "||", "&", "|", "^", "<<", ">>", ">>>"]


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
    """`c.a['b'][0][@p]`: an alias, then property names and array indexes."""

    alias: str
    steps: Steps


@dataclass(frozen=True, slots=True)
class Member:
    """`{a: 1}.a` or `F(x)[0]`: steps from a value that is no path."""

    value: Expression
    steps: Steps


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
    """`text LIKE pattern`: `%` for any characters, `_` for one, `[a-f]` for one of those; none of it after `escape`."""

    text: Expression
    pattern: Expression
    escape: str = ""


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
    """`left operator right`, on numbers; `||` on strings."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """`NAME(arguments)`, the name in capitals."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Coalesce:
    """`value ?? otherwise`: the value if it is defined."""

    value: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in an expression.

    Attributes:
        kind: `EXISTS` for whether it has a result, `ARRAY` for all its results, empty for its only one.
    """

    kind: Literal["EXISTS", "ARRAY", ""]
    query: Query


Steps: TypeAlias = tuple[str | int | Parameter, ...]

Expression: TypeAlias = (
    Constant
    | Parameter
    | Path
    | Member
    | Compare
    | In
    | Like
    | And
    | Or
    | Not
    | Array
    | Object
    | Arithmetic
    | Call
    | Choice
    | Coalesce
    | Subquery
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
class Source:
    """One part of `FROM`: `c`, `c.a AS x`, `t IN c.tags`, `(SELECT ...) AS s`; and so after `JOIN`.

    Attributes:
        alias: The name in expressions; `$1`, `$2`, ... for subqueries without one.
        of: Its value: a path, or the results of a subquery.
        each: Whether it iterates over the elements of that array.
    """

    alias: str
    of: Path | Query
    each: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query.

    Attributes:
        selection: What a row, or a group of rows, becomes.
        sources: What makes rows; none for one row that has nothing.
        distinct: True to leave out results that were there before.
        where: Rows for which this is true stay; None for all.
        groups: Rows for which these are the same make one result (`GROUP BY`).
        order: Parts of `ORDER BY`, the most important first; none for the order of the store.
        skip: Rows left out at the beginning (`OFFSET`).
        limit: Most rows in all (`TOP` or `LIMIT`).
    """

    selection: Selection
    sources: tuple[Source, ...] = (Source("c", Path("c", ())),)
    distinct: bool = False
    where: Expression | None = None
    groups: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    skip: Constant | Parameter | None = None
    limit: Constant | Parameter | None = None

    @property
    def item(self) -> str | None:
        """The name of the whole item, if the first source is that."""
        match self.sources:
            case (Source(alias, Path(_, ()), each=False), *_):
                return alias
        return None


def with_parts(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with each of its direct parts changed; subqueries are no parts."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return change(value) if isinstance(value, get_args(Expression)) else value

    return replace(expression, **{field.name: changed(getattr(expression, field.name)) for field in fields(expression)})


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of, but for subqueries."""
    yield expression
    direct: list[Expression] = []
    with_parts(expression, lambda part: direct.append(part) or part)  # type: ignore[func-returns-value]
    for part in direct:
        yield from parts(part)
