"""From the text of a query to its tree, by the grammar in `grammar.lark`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from local_cosmos.query import tree
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.values import UNDEFINED

_SHOWN: Final = 20
"""Characters of the query shown on either side of an error."""


@lru_cache(maxsize=1024)
def parse_query(text: str) -> tree.Query:
    """The tree of a `SELECT` query.

    Raises:
        UnsupportedQueryError: The text is not in the grammar.
    """
    return _parse(text, "query")


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> tree.Query:
    """The tree of a patch condition, `FROM c WHERE ...`."""
    return _parse(text, "condition")


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=["query", "condition"], maybe_placeholders=False)


def _parse(text: str, start: str) -> tree.Query:
    try:
        return cast("tree.Query", _TreeBuilder().transform(_grammar().parse(text, start=start)))
    except UnexpectedInput as error:
        raise UnsupportedQueryError(_explain(error, text)) from error
    except VisitError as error:
        if isinstance(error.orig_exc, UnsupportedQueryError):
            raise error.orig_exc from error
        raise UnsupportedQueryError(f"Not a query that this emulator answers: {error.orig_exc}.") from error


def _explain(error: UnexpectedInput, text: str) -> str:
    position = getattr(error, "pos_in_stream", None)
    if position is None or position < 0:  # The text ends too early.
        position = len(text)
    near = text[max(0, position - _SHOWN) : position + _SHOWN]
    word = re.match(r"[a-z]+", text[position:], re.IGNORECASE)
    if word and word[0].lower() == "udf":
        return "This emulator does not support user-defined functions."
    if word and text[:position].rstrip().endswith("."):
        return f'{word[0]} is a reserved word: a property of that name is written c["{word[0]}"].'
    return f"Syntax error, or not supported by this emulator, near {near!r} (column {position + 1})."


_Clause: TypeAlias = dict[str, Any]
"""Fields of `Query` that one clause gives."""


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, Any]):
    """One attribute per rule of the grammar; each gets its children already built."""

    choice = tree.Choice
    coalesce = tree.Coalesce
    not_ = tree.Not
    property = str
    index = int

    def query(self, *clauses: _Clause) -> tree.Query:
        fields: _Clause = {"sources": ()} if not any("sources" in clause for clause in clauses) else {}
        for clause in clauses:
            if fields.keys() & clause.keys():
                raise UnsupportedQueryError("TOP together with OFFSET LIMIT is not supported.")
            fields |= clause
        return tree.Query(**fields)

    def condition(self, *clauses: _Clause) -> tree.Query:
        return self.query(self.everything(), *clauses)

    def distinct(self) -> _Clause:
        return {"distinct": True}

    def top(self, limit: Any) -> _Clause:
        return {"limit": limit}

    def offset(self, skip: Any, limit: Any) -> _Clause:
        return {"skip": skip, "limit": limit}

    def everything(self) -> _Clause:
        return {"selection": tree.Everything()}

    def value(self, expression: tree.Expression) -> _Clause:
        return {"selection": tree.Value(expression)}

    def columns(self, *columns: tree.Column) -> _Clause:
        numbers = count(1)
        named = [
            column
            if column.name
            else tree.Column(_default_name(column.expression) or f"${next(numbers)}", column.expression)
            for column in columns
        ]
        if len({column.name for column in named}) != len(named):
            raise UnsupportedQueryError("Two columns of the SELECT list have the same name.")
        return {"selection": tree.Columns(tuple(named))}

    def column(self, expression: tree.Expression, name: str = "") -> tree.Column:
        return tree.Column(str(name), expression)

    def from_(self, *sources: tree.Source) -> _Clause:
        numbers = count(1)
        named = [source if source.alias else replace(source, alias=f"${next(numbers)}") for source in sources]
        if len({source.alias for source in named}) < len(named):
            raise UnsupportedQueryError("Two sources of the query have the same name.")
        return {"sources": tuple(named)}

    def one(self, collection: Any, name: str = "") -> tree.Source:
        return tree.Source(str(name) or _default_name(collection) or "", collection)

    def each(self, name: str, collection: Any) -> tree.Source:
        return tree.Source(str(name), collection, each=True)

    def where(self, condition: tree.Expression) -> _Clause:
        return {"where": condition}

    def groups(self, *expressions: tree.Expression) -> _Clause:
        return {"groups": expressions}

    def order(self, *parts: tree.Order) -> _Clause:
        return {"order": parts}

    def order_part(self, path: tree.Expression, direction: Token | None = None) -> tree.Order:
        if not isinstance(path, tree.Path):
            raise UnsupportedQueryError("ORDER BY is supported on property paths only.")
        return tree.Order(path, descending=direction is not None and direction.type == "DESC")

    def or_(self, *parts: tree.Expression) -> tree.Or:
        return tree.Or(parts)

    def and_(self, *parts: tree.Expression) -> tree.And:
        return tree.And(parts)

    def compare(self, left: tree.Expression, operator: str, right: tree.Expression) -> tree.Compare:
        return tree.Compare("!=" if operator == "<>" else str(operator), left, right)  # type: ignore[arg-type]

    def in_(self, *parts: Any) -> tree.Expression:
        negated, (needle, *hay) = _negation_first(parts)
        return _maybe_not(negated, tree.In(needle, tuple(hay)))

    def between(self, *parts: Any) -> tree.Expression:
        negated, (value, low, high) = _negation_first(parts)
        return _maybe_not(negated, tree.And((tree.Compare(">=", value, low), tree.Compare("<=", value, high))))

    def in_array(self, *parts: Any) -> tree.Expression:
        negated, (needle, array) = _negation_first(parts)
        return _maybe_not(negated, tree.Call("ARRAY_CONTAINS", (array, needle)))

    def like(self, *parts: Any) -> tree.Expression:
        negated, (text, pattern, *escape) = _negation_first(parts)
        return _maybe_not(negated, tree.Like(text, pattern, _one_character(_unquoted(escape[0])) if escape else ""))

    def bit_or(self, left: tree.Expression, right: tree.Expression) -> tree.Arithmetic:
        return tree.Arithmetic("|", left, right)

    def complement(self, operand: tree.Expression) -> tree.Arithmetic:
        return tree.Arithmetic("^", tree.Constant(-1), operand)

    def exists(self, query: tree.Query) -> tree.Subquery:
        return tree.Subquery("EXISTS", query)

    def array_of(self, query: tree.Query) -> tree.Subquery:
        return tree.Subquery("ARRAY", query)

    def scalar(self, query: tree.Query) -> tree.Subquery:
        return tree.Subquery("", query)

    def member(self, value: tree.Expression, *steps: Any) -> tree.Member:
        return tree.Member(value, steps)

    def arithmetic(self, left: tree.Expression, operator: str, right: tree.Expression) -> tree.Arithmetic:
        return tree.Arithmetic(str(operator), left, right)  # type: ignore[arg-type]

    def signed(self, sign: str, operand: tree.Expression) -> tree.Expression:
        if isinstance(operand, tree.Constant) and type(operand.value) in (int, float):
            return tree.Constant(-operand.value) if sign == "-" else operand
        return tree.Arithmetic(str(sign), tree.Constant(0), operand)  # type: ignore[arg-type]

    def call(self, name: str, *arguments: tree.Expression) -> tree.Call:
        return tree.Call(name.upper(), arguments)

    def array(self, *elements: tree.Expression) -> tree.Array:
        return tree.Array(elements)

    def object(self, *properties: tuple[str, tree.Expression]) -> tree.Object:
        if len({name for name, _ in properties}) != len(properties):
            raise UnsupportedQueryError("Two properties of an object have the same name.")
        return tree.Object(properties)

    def property_of(self, name: Token, value: tree.Expression) -> tuple[str, tree.Expression]:
        return _unquoted(name) if name.type == "STRING" else str(name), value

    def path(self, alias: str, *steps: Any) -> tree.Path:
        return tree.Path(str(alias), steps)

    def quoted_property(self, literal: str) -> str:
        return _unquoted(literal)

    def parameter(self, name: str) -> tree.Parameter:
        return tree.Parameter(str(name))

    def literal_string(self, literal: str) -> tree.Constant:
        return tree.Constant(_unquoted(literal))

    def literal_number(self, text: str) -> tree.Constant:
        return tree.Constant(_number(text))

    def literal_true(self) -> tree.Constant:
        return tree.Constant(True)

    def literal_false(self) -> tree.Constant:
        return tree.Constant(False)

    def literal_null(self) -> tree.Constant:
        return tree.Constant(None)

    def literal_undefined(self) -> tree.Constant:
        return tree.Constant(UNDEFINED)


def _negation_first(parts: Sequence[Any]) -> tuple[bool, list[Any]]:
    """Whether `NOT` stands after the first operand, and the operands."""
    operands = [part for part in parts if not (isinstance(part, Token) and part.type == "NOT")]
    return len(operands) < len(parts), operands


def _maybe_not(negated: bool, expression: tree.Expression) -> tree.Expression:
    return tree.Not(expression) if negated else expression


def _default_name(expression: tree.Expression) -> str | None:
    """The service names a column after the last property of its path; any other is `$1`, `$2`, ..."""
    match expression:
        case tree.Path(steps=(*_, str() as last)) | tree.Member(steps=(*_, str() as last)):
            return last
        case tree.Path(alias=alias, steps=()):
            return alias
        case _:
            return None


def _one_character(text: str) -> str:
    if len(text) != 1:
        raise UnsupportedQueryError(f"ESCAPE needs one character, and not {text!r}.")
    return text


def _number(text: str) -> int | float:
    # As in items: a number beyond 2^53 is the nearest double, so that it is found by what was stored.
    number = float(text)
    if math.isinf(number):
        raise UnsupportedQueryError(f"The number {text[:_SHOWN]}... is too large for a double.")
    return number if re.search(r"[.eE]", text) else int(number)


def _unquoted(literal: str) -> str:
    inside = literal[1:-1]
    if literal[0] == "'":
        inside = inside.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inside}"', strict=False))
    except ValueError as error:
        raise UnsupportedQueryError(f"The string {literal} has an escape that does not exist.") from error
