"""The evaluator: an expression of the tree becomes a Python function from a document to a value.

Logic has three values. False AND anything is false, true OR anything is true; what is then not a boolean makes the result
undefined. A row stays only if WHERE is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from local_cosmos.query import tree
from local_cosmos.query.aggregates import has_one_result
from local_cosmos.query.calculating import calculate
from local_cosmos.query.comparing import compare, equal
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.functions import FUNCTIONS, OF_THE_CLOCK
from local_cosmos.values import UNDEFINED, JsonObject

Evaluator: TypeAlias = Callable[[Any], Any]


Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""The path of each name in the content of a row; an empty path is the whole content."""


@dataclass(frozen=True, slots=True)
class Given:
    """What comes with a query besides its text.

    Attributes:
        parameters: Values by name, the name with its `@`.
        now: Seconds since 1970.
        answer: Makes a function of a subquery, from values by name to the results.
        completing: Adds computed properties to a document; None where the query speaks of none.
    """

    parameters: Mapping[str, Any]
    now: float
    answer: Callable[[tree.Query, Sequence[str], Given], Callable[[Mapping[str, Any]], list[Any]]]
    completing: Callable[[JsonObject], JsonObject] | None = None


class Compiler:
    """Turns expressions of one query into evaluators.

    Args:
        names: What expressions may name.

    Attributes:
        reads: Whether any evaluator made so far looks at what it is given; `COUNT(1)` does not.
    """

    def __init__(self, names: Names, given: Given) -> None:
        self.reads = False
        self._names = names
        self._given = given

    def evaluator(self, expression: tree.Expression) -> Evaluator:  # noqa: C901, PLR0911, PLR0912  # One case per kind of expression.
        """A function from a document to the expression's value, `UNDEFINED` included."""
        match expression:
            case tree.Constant(value):
                return lambda _: value
            case tree.Parameter(name):
                parameter = self.parameter(name)
                return lambda _: parameter
            case tree.Path(alias, steps):
                return self._path(alias, steps)
            case tree.Member(value, steps):
                return _following(self.evaluator(value), self._steps(steps))
            case tree.Compare(operator, left, right):
                one, other = self.evaluator(left), self.evaluator(right)
                return lambda document: compare(operator, one(document), other(document))
            case tree.In(needle, hay):
                return _in(self.evaluator(needle), self._all(hay))
            case tree.Like(text, pattern, escape):
                one, other = self.evaluator(text), self.evaluator(pattern)
                return lambda document: _like(one(document), other(document), escape)
            case tree.And(parts):
                return _decided_by(False, self._all(parts))
            case tree.Or(parts):
                return _decided_by(True, self._all(parts))
            case tree.Not(part):
                return _not(self.evaluator(part))
            case tree.Array(elements):
                values = self._all(elements)
                return lambda document: [v for value in values if (v := value(document)) is not UNDEFINED]
            case tree.Object(properties):
                return self._object(properties)
            case tree.Arithmetic(operator, left, right):
                one, other = self.evaluator(left), self.evaluator(right)
                return lambda document: calculate(operator, one(document), other(document))
            case tree.Choice(condition, then, otherwise):
                decide, one, other = self.evaluator(condition), self.evaluator(then), self.evaluator(otherwise)
                return lambda document: one(document) if decide(document) is True else other(document)
            case tree.Coalesce(first, otherwise):
                one, other = self.evaluator(first), self.evaluator(otherwise)
                return lambda document: v if (v := one(document)) is not UNDEFINED else other(document)
            case tree.Call():
                return self._call(expression)
            case tree.Subquery():
                return self._subquery(expression)

    def naming(self, names: Names) -> Compiler:
        """A compiler for expressions of the same query that may name something else."""
        return Compiler(names, self._given)

    def parameter(self, name: str) -> Any:
        """The value that came with the query."""
        if name not in self._given.parameters:
            raise UnsupportedQueryError(f"The query uses {name}, but no such parameter is given.")
        return self._given.parameters[name]

    def _all(self, expressions: Sequence[tree.Expression]) -> list[Evaluator]:
        return [self.evaluator(expression) for expression in expressions]

    def _object(self, properties: Sequence[tuple[str, tree.Expression]]) -> Evaluator:
        values = [(name, self.evaluator(expression)) for name, expression in properties]
        return lambda document: {name: v for name, value in values if (v := value(document)) is not UNDEFINED}

    def _path(self, alias: str, steps: tree.Steps) -> Evaluator:
        if alias not in self._names:
            known = ", ".join(map(repr, self._names))
            raise UnsupportedQueryError(f"Identifier {alias!r} could not be resolved; known here: {known}.")
        self.reads = True
        return _following(lambda document: document, (*self._names[alias], *self._steps(steps)))

    def _steps(self, steps: tree.Steps) -> tuple[Any, ...]:
        return tuple(self.parameter(step.name) if isinstance(step, tree.Parameter) else step for step in steps)

    def _subquery(self, subquery: tree.Subquery) -> Evaluator:
        if not subquery.kind and not has_one_result(subquery.query):
            raise UnsupportedQueryError(
                "The cardinality of a scalar subquery result set cannot be greater than one: use ARRAY or EXISTS."
            )
        values = [(name, self._path(name, ())) for name in self._names]
        results = self._given.answer(subquery.query, tuple(self._names), self._given)

        def answer(document: Any) -> Any:
            found = results({name: value(document) for name, value in values})
            match subquery.kind:
                case "EXISTS":
                    return bool(found)
                case "ARRAY":
                    return found
            return found[0] if found else UNDEFINED

        return answer

    def _call(self, call: tree.Call) -> Evaluator:
        of_the_clock = OF_THE_CLOCK.get(call.name)
        function = of_the_clock(self._given.now) if of_the_clock else FUNCTIONS.get(call.name)
        if function is None:
            raise UnsupportedQueryError(f"The function {call.name} is not supported here by this emulator.")
        if not function.fewest <= len(call.arguments) <= function.most:
            raise UnsupportedQueryError(f"The function {call.name} does not take {len(call.arguments)} arguments.")
        arguments = self._all(call.arguments)
        return lambda document: function.call(*[argument(document) for argument in arguments])


def _following(start: Evaluator, steps: Sequence[Any]) -> Evaluator:
    """What is found by steps from a value."""

    def follow(document: Any) -> Any:
        value = start(document)
        for step in steps:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step, UNDEFINED)
            elif isinstance(value, list) and type(step) is int and 0 <= step < len(value):
                value = value[step]
            else:
                return UNDEFINED
        return value

    return follow


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


def _like(text: Any, pattern: Any, escape: str) -> Any:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return UNDEFINED
    return _like_pattern(pattern, escape).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    first, *rest = _like_parts(pattern, escape)
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    # Each part takes the first place where it fits and keeps it: looking for others would take exponential time.
    kept = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{kept}.*{last}", re.DOTALL)


def _like_parts(pattern: str, escape: str) -> list[str]:
    """The parts between the `%`, as regular expressions."""
    parts, place = [""], 0
    while place < len(pattern):
        sign, place = pattern[place], place + 1
        if sign == escape and place < len(pattern):
            parts[-1] += re.escape(pattern[place])
            place += 1
        elif sign == "[" and (end := pattern.find("]", place + 1)) > 0:
            parts[-1] += _character_class(pattern[place:end])
            place = end + 1
        elif sign == "%":
            parts.append("")
        else:
            parts[-1] += "." if sign == "_" else re.escape(sign)
    return parts


def _character_class(inside: str) -> str:
    """One of these characters, or of none of them after `^`; `a-f` is a range."""
    negated = inside.startswith("^") and len(inside) > 1
    characters = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", inside[negated:])
    try:
        return re.compile(f"[{'^' if negated else ''}{characters}]").pattern
    except re.error as error:
        raise UnsupportedQueryError(f"LIKE has no character class [{inside}]: {error}.") from error
