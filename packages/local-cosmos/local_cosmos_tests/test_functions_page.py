"""The page of functions has every one of the documentation, with the examples that the tests run."""

from __future__ import annotations

import pytest

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.functions import FUNCTIONS, OF_THE_CLOCK
from local_cosmos_tests.functions_page import DOCUMENTED, PAGE, REFUSED, examples_of, page
from local_cosmos_tests.test_query_functions import value

HERE = {*FUNCTIONS, *OF_THE_CLOCK}


def test_the_page_is_made_of_the_examples() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "Run `python -m local_cosmos_tests.functions_page`."


def test_every_function_has_an_example() -> None:
    assert [name for name in sorted(HERE) if not examples_of(name)] == []


def test_every_documented_function_is_here_or_refused() -> None:
    assert sorted(HERE - DOCUMENTED) == ["IS_BOOLEAN"]
    assert sorted(DOCUMENTED - HERE) == sorted(REFUSED)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_function_that_is_not_here_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=name):
        value(f"{name}(1)")
