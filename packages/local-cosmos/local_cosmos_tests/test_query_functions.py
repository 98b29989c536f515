"""Every built-in function and operator: what the service's documentation says of it, as `docs/functions.md` has it."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import given, run
from local_cosmos.query.functions import FUNCTIONS, OF_THE_CLOCK, patterns
from local_cosmos.query.parser import parse_query
from local_cosmos.values import UNDEFINED, parse, serialise

NOW: Final = 1_597_360_794.25
"""23:19:54.25 on 13 August 2020, UTC."""
PARAMETERS: Final = {"@list": [1, 2], "@name": "a", "@place": 1}
EXAMPLES_PAGE, _, REFUSED_PAGE = (
    (Path(__file__).parents[1] / "docs" / "functions.md").read_text(encoding="utf-8").partition("## Refused by name")
)
EXAMPLES: Final = [
    (expression, json.loads(result) if result else UNDEFINED)
    for expression, result in re.findall(
        r"^\| `(.+)` \| (?:`(.+)`|\*undefined\*) \|$", EXAMPLES_PAGE.replace("\\|", "|"), re.MULTILINE
    )
]
REFUSED: Final = re.findall(r"^- `(\w+)`$", REFUSED_PAGE, re.MULTILINE)


def value(expression: str) -> Any:
    """What an expression comes to; `UNDEFINED` if there is no result."""
    rows = run(parse_query(f"SELECT VALUE {expression}"), given(PARAMETERS, NOW), (), 10, None).rows
    return parse(rows[0]) if rows else UNDEFINED


@pytest.mark.parametrize(("expression", "expected"), EXAMPLES, ids=[expression for expression, _ in EXAMPLES])
def test_an_expression_is_what_the_documentation_says(expression: str, expected: Any) -> None:
    result = value(expression)
    assert (result, type(result)) == (expected, type(expected))


def test_every_function_has_an_example() -> None:
    assert EXAMPLES_PAGE.count("\n| `") == len(EXAMPLES)
    called = set(re.findall(r"(\w+)\(", EXAMPLES_PAGE.upper()))
    assert {*FUNCTIONS, *OF_THE_CLOCK} <= called


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_that_is_not_here_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=name):
        value(f"{name}(1)")


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
