"""JSON as a value that nobody can change."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from exactlyonce.values.frozen_json import MAX_NESTING, Json, changed_by_doubles, is_json, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_a_frozen_value_comes_back_the_same(value: Any) -> None:
    frozen = Json.of(value)
    assert frozen.value == value
    assert Json.of(frozen.value) == frozen
    assert frozen.size == len(frozen.text.encode())


def test_text_is_compact_and_keeps_the_order_of_properties() -> None:
    assert Json.of({"b": 1, "a": [1.0, "ü"]}).text == '{"b":1,"a":[1.0,"ü"]}'


@given(st.dictionaries(st.text(), VALUES, max_size=3), st.text(), VALUES)
def test_a_further_property_comes_last(properties: dict[str, Any], name: str, value: Any) -> None:
    properties.pop(name, None)
    assert Json.of(properties).plus(name, Json.of(value)) == Json.of({**properties, name: value})


def test_json_is_a_value_that_nobody_can_change() -> None:
    assert len({Json.of({"a": 1}), Json.of({"a": 1}), Json.of({"a": 2})}) == 2
    frozen = Json.of({"a": []})
    frozen.value["a"].append(1)
    assert frozen.value == {"a": []}
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.text = "2"  # type: ignore[misc]


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], "\ud800", {"\ud800": 1}, CIRCULAR])
def test_a_value_that_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Json.of(value)


NO_TYPES = [object(), {1, 2}, b"bytes", {"a": object}, Decimal("NaN"), {1: Decimal(1), "a": {2, 3}}]


@pytest.mark.parametrize("value", NO_TYPES)
def test_a_type_that_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Json.of(value)


def test_size_and_digest_are_those_of_utf_8() -> None:
    assert Json.of("ü").size == 4
    assert Json.of({}).digest == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


class Holder(BaseModel):
    held: Json


@given(VALUES)
def test_in_a_record_it_is_a_string_that_keeps_the_text_to_the_letter(value: Any) -> None:
    holder = Holder.model_validate({"held": Json.of(value).text})
    assert holder.model_dump()["held"] == Json.of(value).text
    assert Holder.model_validate_json(holder.model_dump_json()) == holder


@pytest.mark.parametrize("held", ['{"broken":', {"not": "a string"}, 7])
def test_in_a_record_nothing_else_passes_for_it(held: Any) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"held": held})


DIGITS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


def beyond_doubles(digits: str) -> bool:
    number, exact = float(digits), Decimal(digits)
    return number in (float("inf"), float("-inf")) or (number == 0) != (exact == 0)


@given(DIGITS)
def test_a_number_keeps_its_digits_or_is_refused(digits: str) -> None:
    body = f'{{"a":[{digits}]}}'
    if "." not in digits and "e" not in digits.lower():
        assert read_json(body) == {"a": [int(digits)]}
    elif beyond_doubles(digits):
        with pytest.raises(ValueError, match="beyond every double"):
            read_json(body)
    else:
        (number,) = read_json(body)["a"]
        assert Decimal(str(number)) == Decimal(digits)
        frozen = Json.of(read_json(body))
        assert frozen.value == read_json(body)
        assert Json.of(frozen.value) == frozen
        assert Decimal(frozen.text[6:-2]) == Decimal(digits)
        assert changed_by_doubles(body) == (None if isinstance(number, float) else "a.0")


@given(VALUES)
def test_written_json_is_read_as_it_was(value: Any) -> None:
    assert read_json(Json.of(value).text) == value
    assert read_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        ("1e2", 100.0),
        ("5.0", 5.0),
        ("-0", 0),
        ("0e999999999999999999999", 0.0),
        ("1234567890123456789.0", 1234567890123456789),
        ("12345678901234567890e0", 12345678901234567890),
        ("9007199254740993", 9007199254740993),
        ("1e22", 1e22),
    ],
)
def test_a_whole_number_is_whole_however_it_is_written(digits: str, number: float) -> None:
    assert read_json(digits) == number


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Expecting value"),
        (b"{", "property name"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        (b"1e400", "beyond every double"),
        (b"-1e99999999999999999999999", "beyond every double"),
        (b"1e-99999999999999999999999", "beyond every double"),
        (b"0." + b"1" * 1_000, "more than 1000 characters"),
        (b"1" * 100_000, "digits"),
        (b'{"a":1,"a":1}', "property twice"),
        (b'[{"b":{"a":1,"\\u0061":2}}]', "property twice"),
        (b'"\\ud800"', "half a surrogate pair"),
        (b'{"\\udfff":1.00000000000000000001}', "half a surrogate pair"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xff\xfe[\x00]\x00", "not UTF-8"),
        (b"[\x00]\x00", "Expecting value"),
        (b"[" * 100_000, "levels"),
        (b"[" * (MAX_NESTING + 1) + b"]" * (MAX_NESTING + 1), "levels"),
        ('{"a":' * (MAX_NESTING + 1) + "1" + "}" * (MAX_NESTING + 1), "levels"),
        ("\ud800", "half a surrogate pair"),
        ('"\ud800"', "half a surrogate pair"),
    ],
    ids=lambda part: str(part[:30]),
)
def test_json_that_not_every_parser_reads_alike_is_refused(body: bytes | str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        read_json(body)
    assert str(caught.value).endswith(".")
    assert caught.value.__cause__ is None
    assert type(caught.value) is ValueError  # That of the parser carries the whole text.


@pytest.mark.parametrize("body", [b'\xef\xbb\xbf{"a":"\xc3\xa9"}', '\ufeff{"a":"é"}', '{"a":"\\u00e9"}'])
def test_a_byte_order_mark_is_passed_over(body: bytes | str) -> None:
    assert read_json(body) == {"a": "é"}
    assert changed_by_doubles(body) is None


def test_pairs_of_surrogates_and_brackets_in_texts_are_taken() -> None:
    assert read_json('["\\ud83c\\udfaf"]') == ["🎯"]
    assert read_json(json.dumps(["[" * 500])) == ["[" * 500]
    deep = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert Json.of(read_json(deep)).text == deep


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"a":{"b.c":[1.5,{"d":0.10000000000000000001}]}}', "a.b.c.1.d"),
        ("0.10000000000000000001", "the whole"),
        ('{"a":1234567890123456789.0}', "a"),
        ('{"a":1234567890123456789,"b":1.50,"c":6.02214076e23}', None),
    ],
)
def test_the_place_of_a_number_that_doubles_change_is_named(body: str, place: str | None) -> None:
    assert changed_by_doubles(body) == changed_by_doubles(body.encode()) == place


KINDS = ("application/json", "Text/JSON ; charset=utf-8", "application/problem+json")
OTHERS = ("", "text/plain", "application/jsonl", "application/json-seq", "json")


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_kinds_of_json_are_told_from_others(kind: str) -> None:
    assert is_json(kind) is (kind in KINDS)
