"""From a tree back to a text that parses to the same tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from local_cosmos.query.tree import (
    And,
    Arithmetic,
    Array,
    Call,
    Choice,
    Coalesce,
    Column,
    Columns,
    Compare,
    Constant,
    Everything,
    Expression,
    In,
    Like,
    Member,
    Not,
    Object,
    Or,
    Parameter,
    Path,
    Query,
    Selection,
    Source,
    Steps,
    Subquery,
    Value,
)
from local_cosmos.values import UNDEFINED, serialise


def text(query: Query) -> str:
    """A whole query."""
    words = ["SELECT"]
    if query.distinct:
        words.append("DISTINCT")
    if query.limit and not query.skip:
        words += ["TOP", expression_text(query.limit)]
    words.append(_selection(query.selection))
    for number, source in enumerate(query.sources):
        words += ["JOIN" if number else "FROM", _source(source)]
    if query.where:
        words += ["WHERE", expression_text(query.where)]
    if query.groups:
        words += ["GROUP BY", _listed(query.groups)]
    if query.order:
        parts = (f"{expression_text(part.expression)} {'DESC' if part.descending else 'ASC'}" for part in query.order)
        words += ["ORDER BY", ", ".join(parts)]
    if query.skip and query.limit:
        words += ["OFFSET", expression_text(query.skip), "LIMIT", expression_text(query.limit)]
    return " ".join(words)


def expression_text(expression: Expression) -> str:  # noqa: C901, PLR0911, PLR0912  # One case per kind of expression.
    """One expression; what has parts is in parentheses."""
    match expression:
        case Constant(value):
            return _constant(value)
        case Parameter(name):
            return name
        case Path(alias, steps):
            return alias + _steps(steps)
        case Member(value, steps):
            return f"({expression_text(value)})" + _steps(steps)
        case Compare(operator, left, right) | Arithmetic(operator, left, right):
            return f"({expression_text(left)} {operator} {expression_text(right)})"
        case In(needle, hay):
            return f"({expression_text(needle)} IN ({_listed(hay)}))"
        case Like(subject, pattern, escape):
            escaped = f" ESCAPE {_constant(escape)}" if escape else ""
            return f"({expression_text(subject)} LIKE {expression_text(pattern)}{escaped})"
        case Choice(condition, then, otherwise):
            return f"({expression_text(condition)} ? {expression_text(then)} : {expression_text(otherwise)})"
        case Coalesce(value, otherwise):
            return f"({expression_text(value)} ?? {expression_text(otherwise)})"
        case Subquery(kind, query):
            return f"{kind}({text(query)})"
        case And(parts):
            return f"({' AND '.join(map(expression_text, parts))})"
        case Or(parts):
            return f"({' OR '.join(map(expression_text, parts))})"
        case Not(part):
            return f"(NOT {expression_text(part)})"
        case Array(elements):
            return f"[{_listed(elements)}]"
        case Object(properties):
            pairs = (f"{_constant(name)}: {expression_text(value)}" for name, value in properties)
            return "{" + ", ".join(pairs) + "}"
        case Call(name, arguments):
            return f"{name}({_listed(arguments)})"


def _selection(selection: Selection) -> str:
    match selection:
        case Everything():
            return "*"
        case Value(expression):
            return f"VALUE {expression_text(expression)}"
        case Columns(columns):
            return ", ".join(map(_column, columns))


def _source(source: Source) -> str:
    of = f"({text(source.of)})" if isinstance(source.of, Query) else expression_text(source.of)
    if source.each:
        return f"{source.alias} IN {of}"
    if source.alias.startswith("$"):  # A subquery without a name gets one that nobody may write.
        return of
    return source.alias if of == source.alias else f"{of} AS {source.alias}"


def _steps(steps: Steps) -> str:
    return "".join(f"[{step.name if isinstance(step, Parameter) else _constant(step)}]" for step in steps)


def _column(column: Column) -> str:
    return f"{expression_text(column.expression)} AS {column.name}"


def _listed(expressions: Iterable[Expression]) -> str:
    return ", ".join(map(expression_text, expressions))


def _constant(value: Any) -> str:
    return "undefined" if value is UNDEFINED else serialise(value).decode()
