"""From a tree back to a text that parses to the same tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from local_cosmos.query import tree
from local_cosmos.values import UNDEFINED, serialise


def text(query: tree.Query) -> str:
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


def expression_text(expression: tree.Expression) -> str:  # noqa: C901, PLR0911, PLR0912  # One case per kind of expression.
    """One expression; what has parts is in parentheses."""
    match expression:
        case tree.Constant(value):
            return _constant(value)
        case tree.Parameter(name):
            return name
        case tree.Path(alias, steps):
            return alias + _steps(steps)
        case tree.Member(value, steps):
            return f"({expression_text(value)})" + _steps(steps)
        case tree.Compare(operator, left, right) | tree.Arithmetic(operator, left, right):
            return f"({expression_text(left)} {operator} {expression_text(right)})"
        case tree.In(needle, hay):
            return f"({expression_text(needle)} IN ({_listed(hay)}))"
        case tree.Like(subject, pattern, escape):
            escaped = f" ESCAPE {_constant(escape)}" if escape else ""
            return f"({expression_text(subject)} LIKE {expression_text(pattern)}{escaped})"
        case tree.Choice(condition, then, otherwise):
            return f"({expression_text(condition)} ? {expression_text(then)} : {expression_text(otherwise)})"
        case tree.Coalesce(value, otherwise):
            return f"({expression_text(value)} ?? {expression_text(otherwise)})"
        case tree.Subquery(kind, query):
            return f"{kind}({text(query)})"
        case tree.And(parts):
            return f"({' AND '.join(map(expression_text, parts))})"
        case tree.Or(parts):
            return f"({' OR '.join(map(expression_text, parts))})"
        case tree.Not(part):
            return f"(NOT {expression_text(part)})"
        case tree.Array(elements):
            return f"[{_listed(elements)}]"
        case tree.Object(properties):
            pairs = (f"{_constant(name)}: {expression_text(value)}" for name, value in properties)
            return "{" + ", ".join(pairs) + "}"
        case tree.Call(name, arguments):
            return f"{name}({_listed(arguments)})"


def _selection(selection: tree.Selection) -> str:
    match selection:
        case tree.Everything():
            return "*"
        case tree.Value(expression):
            return f"VALUE {expression_text(expression)}"
        case tree.Columns(columns):
            return ", ".join(map(_column, columns))


def _source(source: tree.Source) -> str:
    of = f"({text(source.of)})" if isinstance(source.of, tree.Query) else expression_text(source.of)
    if source.each:
        return f"{source.alias} IN {of}"
    if source.alias.startswith("$"):  # A subquery without a name gets one that nobody may write.
        return of
    return source.alias if of == source.alias else f"{of} AS {source.alias}"


def _steps(steps: tree.Steps) -> str:
    return "".join(f"[{step.name if isinstance(step, tree.Parameter) else _constant(step)}]" for step in steps)


def _column(column: tree.Column) -> str:
    return f"{expression_text(column.expression)} AS {column.name}"


def _listed(expressions: Iterable[tree.Expression]) -> str:
    return ", ".join(map(expression_text, expressions))


def _constant(value: Any) -> str:
    return "undefined" if value is UNDEFINED else serialise(value).decode()
