"""Every built-in function and operator: what the service's documentation says of it, by its examples and its remarks."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import given, run
from local_cosmos.query.functions import FUNCTIONS, patterns
from local_cosmos.query.parser import parse_query
from local_cosmos.values import UNDEFINED, parse, serialise
from local_cosmos_tests.documented_functions import NOW, PARAMETERS, SUBJECTS

ALL = [example for examples in SUBJECTS.values() for example in examples]


def value(expression: str) -> Any:
    """What an expression comes to; `UNDEFINED` if there is no result."""
    rows = run(parse_query(f"SELECT VALUE {expression}"), given(PARAMETERS, NOW), (), 10, None).rows
    return parse(rows[0]) if rows else UNDEFINED


@pytest.mark.parametrize(("expression", "expected"), ALL, ids=[expression for expression, _ in ALL])
def test_an_expression_is_what_the_documentation_says(expression: str, expected: Any) -> None:
    found = value(expression)
    assert (found, type(found)) == (expected, type(expected))


ODD: tuple[Any, ...] = (UNDEFINED, None, True, -1, 1.5, 10**30, "", "é[", [], [[], 1], {}, {"a": None})


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("REGEX")])
def test_whatever_the_arguments_a_function_answers_or_is_undefined(name: str) -> None:
    function = FUNCTIONS[name]
    for one, other in product(ODD, ODD):
        for count in range(function.fewest, min(function.most, 4) + 1):
            found = function.call(*(one, other, one, other, one, other, one)[:count])
            assert found is UNDEFINED or serialise(found)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("NOPE(1)", "NOPE"),
        ("LEFT('a')", "LEFT"),
        ("REGEXMATCH('a', '(')", "regular expression"),
        ("REGEXMATCH('a', 'a', 'q')", "modifier"),
        ("'a' LIKE 'b' ESCAPE 'xy'", "ESCAPE"),
        ("'a' LIKE '[z-a]'", "character class"),
        ("(SELECT VALUE x FROM x IN @list)", "x"),
        ("c.order", "order"),
    ],
)
def test_what_cannot_be_is_refused_by_name(expression: str, named: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=named):
        value(expression)


@pytest.mark.simplified(service="an engine of its own; here that of Python, with two seconds")
@pytest.mark.parametrize(("text", "pattern"), [("a" * 40, "^(a+)+$b"), ("a" * 40, "^(a|a)*b")])
def test_a_regular_expression_that_takes_for_ever_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, pattern: str
) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.3)
    with pytest.raises(UnsupportedQueryError, match="takes longer"):
        patterns.matches(text, pattern)
    monkeypatch.undo()
    assert patterns.matches("aaab", "^(a+)+b$")
