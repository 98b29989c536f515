"""JSON as a value that nobody can change."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from exactlyonce.values.frozen_json import Json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_what_is_frozen_comes_back_the_same(value: Any) -> None:
    frozen = Json.of(value)
    assert frozen.value == value
    assert Json.of(frozen.value) == frozen
    assert frozen.size == len(frozen.text.encode())


def test_text_is_compact_and_keeps_the_order_of_properties() -> None:
    assert Json.of({"b": 1, "a": [1.0, "ü"]}).text == '{"b":1,"a":[1.0,"ü"]}'


@given(st.dictionaries(st.text(), VALUES, max_size=3), st.text(), VALUES)
@settings(max_examples=100, deadline=None)
def test_one_more_property_comes_last(properties: dict[str, Any], name: str, value: Any) -> None:
    properties.pop(name, None)
    assert Json.of(properties).plus(name, Json.of(value)) == Json.of({**properties, name: value})


def test_a_value_taken_out_is_a_copy() -> None:
    frozen = Json.of({"a": []})
    frozen.value["a"].append(1)
    assert frozen.value == {"a": []}


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Json.of(1).text = "2"  # type: ignore[misc]


def test_equal_texts_are_equal_and_hash_alike() -> None:
    assert len({Json.of({"a": 1}), Json.of({"a": 1}), Json.of({"a": 2})}) == 2


def test_size_and_digest_are_those_of_utf_8() -> None:
    assert Json.of("ü").size == 4
    assert Json.of({}).digest == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], "\ud800", {"\ud800": 1}])
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Json.of(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="Circular"):
        Json.of(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", {"a": object}])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Json.of(value)


class Holder(BaseModel):
    held: Json


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_in_a_record_it_is_a_string_that_keeps_the_text_to_the_letter(value: Any) -> None:
    holder = Holder.model_validate({"held": Json.of(value).text})
    assert holder.model_dump()["held"] == Json.of(value).text
    assert Holder.model_validate_json(holder.model_dump_json()) == holder


@pytest.mark.parametrize("held", ['{"broken":', {"not": "a string"}, 7])
def test_in_a_record_nothing_else_passes_for_it(held: Any) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"held": held})
