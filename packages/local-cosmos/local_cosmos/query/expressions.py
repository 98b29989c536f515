"""The evaluator: an expression of the tree becomes a Python function from a document to a value.

Logic has three values. False AND anything is false, true OR anything is true; what is then not a boolean makes the result
undefined. A row stays only if WHERE is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from local_cosmos.query.calculating import calculate
from local_cosmos.query.comparing import compare, equal
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.functions import FUNCTIONS
from local_cosmos.query.tree import (
    And,
    Arithmetic,
    Array,
    Call,
    Compare,
    Constant,
    Expression,
    In,
    Like,
    Not,
    Object,
    Or,
    Parameter,
    Path,
)
from local_cosmos.values import UNDEFINED

Evaluator: TypeAlias = Callable[[Any], Any]


class Compiler:
    """Turns expressions of one query into evaluators.

    Args:
        names: Where in the content of a row is what a name stands for; the whole of it for an empty path.
        parameters: Values by name, the name with its `@`.
    """

    def __init__(self, names: Mapping[str, tuple[str, ...]], parameters: Mapping[str, Any]) -> None:
        self._names = names
        self._parameters = parameters

    def evaluator(self, expression: Expression) -> Evaluator:  # noqa: C901, PLR0911, PLR0912  # One case per kind of expression.
        """A function from a document to the expression's value, `UNDEFINED` included."""
        match expression:
            case Constant(value):
                return lambda _: value
            case Parameter(name):
                parameter = self.parameter(name)
                return lambda _: parameter
            case Path():
                return self._path(expression)
            case Compare(operator, left, right):
                one, other = self.evaluator(left), self.evaluator(right)
                return lambda document: compare(operator, one(document), other(document))
            case In(needle, hay):
                return _in(self.evaluator(needle), self._all(hay))
            case Like(text, pattern):
                one, other = self.evaluator(text), self.evaluator(pattern)
                return lambda document: _like(one(document), other(document))
            case And(parts):
                return _decided_by(False, self._all(parts))
            case Or(parts):
                return _decided_by(True, self._all(parts))
            case Not(part):
                return _not(self.evaluator(part))
            case Array(elements):
                values = self._all(elements)
                return lambda document: [v for value in values if (v := value(document)) is not UNDEFINED]
            case Object(properties):
                return self._object(properties)
            case Arithmetic(operator, left, right):
                one, other = self.evaluator(left), self.evaluator(right)
                return lambda document: calculate(operator, one(document), other(document))
            case Call():
                return self._call(expression)

    def parameter(self, name: str) -> Any:
        """The value that came with the query."""
        if name not in self._parameters:
            raise UnsupportedQueryError(f"The query uses {name}, but no such parameter is given.")
        return self._parameters[name]

    def _all(self, expressions: Sequence[Expression]) -> list[Evaluator]:
        return [self.evaluator(expression) for expression in expressions]

    def _object(self, properties: Sequence[tuple[str, Expression]]) -> Evaluator:
        values = [(name, self.evaluator(expression)) for name, expression in properties]
        return lambda document: {name: v for name, value in values if (v := value(document)) is not UNDEFINED}

    def _path(self, path: Path) -> Evaluator:
        if path.alias not in self._names:
            known = ", ".join(map(repr, self._names))
            raise UnsupportedQueryError(f"Identifier {path.alias!r} could not be resolved; known here: {known}.")
        steps = (*self._names[path.alias], *path.steps)

        def follow(document: Any) -> Any:
            value = document
            for step in steps:
                if isinstance(value, dict):
                    value = value.get(step, UNDEFINED)
                elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                    value = value[step]
                else:
                    return UNDEFINED
            return value

        return follow

    def _call(self, call: Call) -> Evaluator:
        function = FUNCTIONS.get(call.name)
        if function is None:
            raise UnsupportedQueryError(f"The function {call.name} is not supported here by this emulator.")
        if not function.fewest <= len(call.arguments) <= function.most:
            raise UnsupportedQueryError(f"The function {call.name} does not take {len(call.arguments)} arguments.")
        arguments = self._all(call.arguments)
        return lambda document: function.call(*[argument(document) for argument in arguments])


def _in(needle: Evaluator, hay: Sequence[Evaluator]) -> Evaluator:
    def found(document: Any) -> Any:
        sought = needle(document)
        if sought is UNDEFINED:
            return UNDEFINED
        return any(equal(sought, value(document)) for value in hay)

    return found


def _decided_by(decisive: bool, parts: Sequence[Evaluator]) -> Evaluator:
    """AND (decided by false) and OR (decided by true)."""

    def combined(document: Any) -> Any:
        result: Any = not decisive
        for part in parts:
            value = part(document)
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                result = UNDEFINED
        return result

    return combined


def _not(part: Evaluator) -> Evaluator:
    def negated(document: Any) -> Any:
        value = part(document)
        return not value if isinstance(value, bool) else UNDEFINED

    return negated


def _like(text: Any, pattern: Any) -> Any:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return UNDEFINED
    return _like_pattern(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    if re.search(r"[\[\]^]", pattern):
        raise UnsupportedQueryError("LIKE with character classes is not supported by this emulator.")
    first, *rest = ("".join("." if sign == "_" else re.escape(sign) for sign in part) for part in pattern.split("%"))
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    # Each part takes the first place where it fits and keeps it: looking for others would take exponential time.
    kept = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{kept}.*{last}", re.DOTALL)
