"""Fingerprints of requests: the same for a retry, another one for another request."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exactlyonce.hosting.requests.asker import fingerprint


def json_of(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | numbers | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )


WHOLE = json_of(st.integers())
JSON = json_of(st.integers() | st.floats(allow_nan=False, allow_infinity=False))


def of_body(body: bytes) -> str:
    return fingerprint("POST", "/api/orders/o-1", body)


def turned(value: Any) -> Any:
    """The same value with its properties in another order."""
    if isinstance(value, dict):
        return {name: turned(part) for name, part in reversed(value.items())}
    return [turned(part) for part in value] if isinstance(value, list) else value


@given(JSON)
def test_blanks_escapes_and_the_order_of_properties_do_not_count(value: Any) -> None:
    other = json.dumps(turned(value), indent=2, ensure_ascii=False).encode(errors="surrogatepass")
    assert of_body(json.dumps(value).encode()) == of_body(other)


@given(WHOLE, WHOLE)
@example([1, 2], [2, 1])
def test_bodies_that_differ_have_fingerprints_that_differ(item: Any, other: Any) -> None:
    texts = [json.dumps(value, sort_keys=True) for value in (item, other)]
    prints = [of_body(json.dumps(value).encode()) for value in (item, other)]
    assert (texts[0] == texts[1]) == (prints[0] == prints[1])


@pytest.mark.parametrize(
    "numbers", [("1", "1.0", "1e0", "10E-1"), ("0", "-0", "0.0", "-0e5"), ("1e23", "1" + "0" * 23)]
)
def test_the_spelling_of_a_number_does_not_count(numbers: tuple[str, ...]) -> None:
    assert len({of_body(f'{{"a":[{number}]}}'.encode()) for number in numbers}) == 1


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@given(NUMBERS, NUMBERS)
@example("0.1", "0.1000000000000000055")  # The same double.
@example("1.5", "99999999999999.99")
def test_numbers_that_differ_have_fingerprints_that_differ(text: str, other: str) -> None:
    assert (of_body(text.encode()) == of_body(other.encode())) == (Decimal(text) == Decimal(other))
    assert of_body(text.encode()) != of_body(f'"{text}"'.encode())


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_json_counts_as_it_is(body: bytes) -> None:
    assert of_body(body) == of_body(body)
    assert of_body(body) != of_body(body + b" ")


def test_method_and_path_count_and_are_told_apart() -> None:
    assert fingerprint("post", "/a", b"{}") == fingerprint("POST", "/a", b"{}")
    assert len({fingerprint(*item) for item in (("POST", "/a", b""), ("PUT", "/a", b""), ("POST", "/b", b""))}) == 3
    assert len(fingerprint("POST", "/\u00e9", b"")) == 64
