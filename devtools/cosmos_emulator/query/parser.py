"""From the text of a query to its tree, by the grammar in `grammar.lark`."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import count
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput, VisitError

from devtools.cosmos_emulator.query.errors import UnsupportedQueryError
from devtools.cosmos_emulator.query.tree import (
    And,
    Array,
    Call,
    Column,
    Columns,
    Compare,
    Constant,
    Everything,
    Expression,
    In,
    Like,
    Not,
    Or,
    Order,
    Parameter,
    Path,
    Query,
    Value,
)
from devtools.cosmos_emulator.values import UNDEFINED

_SHOWN: Final = 20
"""Characters of the query shown on either side of an error."""


@lru_cache(maxsize=1024)
def parse_query(text: str) -> Query:
    """The tree of a `SELECT` query.

    Raises:
        UnsupportedQueryError: The text is not in the grammar.
    """
    return _parse(text, "query")


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> Query:
    """The tree of a patch condition, `FROM c WHERE ...`."""
    return _parse(text, "condition")


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = FilePath(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=["query", "condition"], maybe_placeholders=False)


def _parse(text: str, start: str) -> Query:
    try:
        return cast("Query", _TreeBuilder().transform(_grammar().parse(text, start=start)))
    except UnexpectedInput as error:
        raise UnsupportedQueryError(_explain(error, text)) from error
    except VisitError as error:
        if isinstance(error.orig_exc, UnsupportedQueryError):
            raise error.orig_exc from error
        raise


def _explain(error: UnexpectedInput, text: str) -> str:
    position = getattr(error, "pos_in_stream", None)
    if position is None or position < 0:  # The text ends too early.
        position = len(text)
    near = text[max(0, position - _SHOWN) : position + _SHOWN]
    return f"Syntax error, or not supported by this emulator, near {near!r} (column {position + 1})."


_Clause: TypeAlias = dict[str, Any]
"""Fields of `Query` that one clause gives."""


class _TreeBuilder(Transformer[Token, Any]):
    """One method per rule of the grammar; each gets its children already built."""

    def query(self, clauses: list[_Clause]) -> Query:
        fields: _Clause = {}
        for clause in clauses:
            if fields.keys() & clause.keys():
                raise UnsupportedQueryError("TOP together with OFFSET LIMIT is not supported.")
            fields |= clause
        return Query(**fields)

    def condition(self, clauses: list[_Clause]) -> Query:
        return self.query([{"selection": Everything()}, *clauses])

    def top(self, parts: list[Any]) -> _Clause:
        return {"limit": parts[0]}

    def offset(self, parts: list[Any]) -> _Clause:
        return {"skip": parts[0], "limit": parts[1]}

    def everything(self, _: list[Any]) -> _Clause:
        return {"selection": Everything()}

    def value(self, parts: list[Any]) -> _Clause:
        return {"selection": Value(parts[0])}

    def columns(self, columns: list[Column]) -> _Clause:
        numbers = count(1)
        named = [
            column
            if column.name
            else Column(_default_name(column.expression) or f"${next(numbers)}", column.expression)
            for column in columns
        ]
        if len({column.name for column in named}) != len(named):
            raise UnsupportedQueryError("Two columns of the SELECT list have the same name.")
        return {"selection": Columns(tuple(named))}

    def column(self, parts: list[Any]) -> Column:
        expression, *name = parts
        return Column(str(name[0]) if name else "", expression)

    def source(self, names: list[Token]) -> _Clause:
        return {"alias": str(names[-1])}

    def where(self, parts: list[Any]) -> _Clause:
        return {"where": parts[0]}

    def order(self, parts: list[Any]) -> _Clause:
        path, *direction = parts
        if not isinstance(path, Path):
            raise UnsupportedQueryError("ORDER BY is supported on one property path only.")
        return {"order": Order(path, descending=bool(direction) and direction[0].type == "DESC")}

    def or_(self, parts: list[Any]) -> Or:
        return Or(tuple(parts))

    def and_(self, parts: list[Any]) -> And:
        return And(tuple(parts))

    def not_(self, parts: list[Any]) -> Not:
        return Not(parts[0])

    def compare(self, parts: list[Any]) -> Compare:
        left, operator, right = parts
        return Compare("!=" if operator == "<>" else str(operator), left, right)  # type: ignore[arg-type]

    def in_(self, parts: list[Any]) -> Expression:
        negated, (needle, *hay) = _negation_first(parts)
        return _maybe_not(negated, In(needle, tuple(hay)))

    def between(self, parts: list[Any]) -> Expression:
        negated, (value, low, high) = _negation_first(parts)
        return _maybe_not(negated, And((Compare(">=", value, low), Compare("<=", value, high))))

    def like(self, parts: list[Any]) -> Expression:
        negated, (text, pattern) = _negation_first(parts)
        return _maybe_not(negated, Like(text, pattern))

    def call(self, parts: list[Any]) -> Call:
        return Call(str(parts[0]).upper(), tuple(parts[1:]))

    def array(self, parts: list[Any]) -> Array:
        return Array(tuple(parts))

    def path(self, parts: list[Any]) -> Path:
        return Path(str(parts[0]), tuple(parts[1:]))

    def property(self, parts: list[Token]) -> str:
        return str(parts[0])

    def quoted_property(self, parts: list[Token]) -> str:
        return _unquoted(parts[0])

    def index(self, parts: list[Token]) -> int:
        return int(parts[0])

    def parameter(self, parts: list[Token]) -> Parameter:
        return Parameter(str(parts[0]))

    def literal_string(self, parts: list[Token]) -> Constant:
        return Constant(_unquoted(parts[0]))

    def literal_number(self, parts: list[Token]) -> Constant:
        return Constant(_number("".join(parts)))

    def literal_true(self, _: list[Any]) -> Constant:
        return Constant(True)

    def literal_false(self, _: list[Any]) -> Constant:
        return Constant(False)

    def literal_null(self, _: list[Any]) -> Constant:
        return Constant(None)

    def literal_undefined(self, _: list[Any]) -> Constant:
        return Constant(UNDEFINED)


def _negation_first(parts: list[Any]) -> tuple[bool, list[Any]]:
    """Whether `NOT` stands after the first operand, and the operands."""
    operands = [part for part in parts if not (isinstance(part, Token) and part.type == "NOT")]
    return len(operands) < len(parts), operands


def _maybe_not(negated: bool, expression: Expression) -> Expression:
    return Not(expression) if negated else expression


def _default_name(expression: Expression) -> str | None:
    """The service names a column after the last property of its path; any other is `$1`, `$2`, ..."""
    match expression:
        case Path(steps=(*_, str() as last)):
            return last
        case Path(alias=alias, steps=()):
            return alias
        case _:
            return None


def _number(text: str) -> int | float:
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _unquoted(literal: str) -> str:
    inside = literal[1:-1]
    if literal[0] == "'":
        inside = inside.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inside}"', strict=False))
    except ValueError as error:
        raise UnsupportedQueryError(f"The string {literal} has an escape that does not exist.") from error
