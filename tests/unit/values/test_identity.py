"""Identities never change by accident: every redelivered message would be published under new ids."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exactlyonce.values.envelope import (
    LONGEST_READABLE,
    LONGEST_TYPE,
    MAX_KEY_BYTES,
    MAX_SOURCE_LENGTH,
    EntityRef,
    Origin,
    PartitionValue,
    is_document_id,
    message_key,
)

PAIRS = st.tuples(st.text(max_size=6), st.text(max_size=6)) | st.tuples(
    st.text("%/2F5a", max_size=4), st.text("%/2F5a", max_size=4)
)
VALUES: st.SearchStrategy[PartitionValue] = st.text(max_size=4) | st.integers() | st.booleans()
REFS = st.builds(EntityRef, st.text(max_size=3), st.tuples(VALUES) | st.tuples(VALUES, VALUES), st.text(max_size=3))
RANGE = EntityRef("range", ("game-7",), "game-7")


def test_message_keys_are_pinned() -> None:
    assert message_key("web", "m-42") == "web/m-42"
    assert message_key("a/b%", "c/d%2F") == "a%2Fb%25/c%2Fd%252F"


@given(PAIRS, PAIRS)
def test_different_messages_have_different_keys(item: tuple[str, str], other: tuple[str, str]) -> None:
    assert (message_key(*item) == message_key(*other)) == (item == other)
    assert message_key(*item).count("/") == 1


@pytest.mark.parametrize("id", ["a", " a", "a b", "ä€🎯", "x" * 255, "🎯" * 255, "'\"<>%&+:;,=[]{}"])
def test_a_value_that_the_service_its_sdks_and_tools_take_is_a_document_id(id: str) -> None:
    assert is_document_id(id)
    assert len(id.encode()) <= 1023


@pytest.mark.parametrize(
    "id", ["", "a/b", "a\\b", "a?b", "a#b", "a\tb", "a\nb", "a\r", "a ", "x" * 256, "\ud800", 7, None, b"a"]
)
def test_any_other_value_is_no_document_id(id: object) -> None:
    assert not is_document_id(id)


def test_entity_keys_are_pinned() -> None:
    assert RANGE.key == '["range","game-7","game-7"]'
    assert EntityRef("order", ("eu", 7, True), 'ü"').key == '["order","eu",7,true,"ü\\""]'


@given(REFS, REFS)
def test_different_entities_have_different_keys(item: EntityRef, other: EntityRef) -> None:
    def parts(ref: EntityRef) -> tuple[object, ...]:
        return (ref.type, tuple((type(part), part) for part in ref.partition), ref.id)

    assert (item.key == other.key) == (parts(item) == parts(other))


def test_sources_are_pinned() -> None:
    assert RANGE.source == str(RANGE) == "range/game-7"
    assert EntityRef("order", ("eu/north", 7), "o 1").source == "order/eu%2Fnorth/=7/o%201"
    assert EntityRef("order", (True, -0.5, "=7"), "o").source == "order/=true/=-0.5/%3D7/o"


@pytest.mark.parametrize(("value", "other"), [(1, "1"), (True, "True"), (True, 1), (0, False), (1.5, "1.5")])
def test_entities_whose_partition_keys_only_look_the_same_differ_in_all_that_names_them(
    value: PartitionValue, other: PartitionValue
) -> None:
    for ref, like in (
        (EntityRef("order", (value,), "o"), EntityRef("order", (other,), "o")),
        (EntityRef("order", ("eu", value), "o"), EntityRef("order", ("eu", other), "o")),
    ):
        assert ref.source != like.source
        assert ref.key != like.key
        assert ref != like
        assert len({ref, like}) == 2


@given(st.data())
def test_different_entities_of_a_type_have_different_sources_and_are_read_back_from_them(data: st.DataObject) -> None:
    values = st.text("1ae/%=~. ", max_size=3) | st.text(max_size=4) | st.integers(-(2**53), 2**53) | st.booleans()
    fractions = st.floats(-(2.0**53), 2.0**53).filter(lambda item: not item.is_integer())
    depth = data.draw(st.integers(1, 3))
    refs = st.builds(
        EntityRef, st.just("order/1"), st.tuples(*[values | fractions] * depth), st.text("1ae/%=~. ", max_size=3)
    )
    one, other = data.draw(refs), data.draw(refs)
    assert (one.source == other.source) == (one.key == other.key)
    assert EntityRef.of_source(one.source) == one


@pytest.mark.parametrize(
    "source",
    ["", "order", "order/=", "order/=x/o", "order/={}/o", "order/=null/o", "order/=[1]/o", f"order/={'[' * 1000}/o"],
)
def test_a_source_under_which_no_entity_sends_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="not the source of an entity"):
        EntityRef.of_source(source)


def test_derived_ids_are_pinned() -> None:
    origin = Origin(RANGE, "web/m-42")
    assert origin.output_id(0) == "9494f4dde5523e240bcc21e5772d12b5"
    assert origin.output_id(1) == "992c908bad94af508fe75fb4d7285d0d"
    assert origin.new_id(0) == "a6a66ad2-5950-5c32-a673-61a8bab131c3"
    assert origin.random().getrandbits(64) == 3899549220598138924


def test_derived_ids_differ_by_entity_message_purpose_and_index() -> None:
    other_entity, other_partition = EntityRef("range", ("game-8",), "game-8"), EntityRef("range", ("x",), "game-7")
    origins = [Origin(ref, key) for ref in (RANGE, other_entity, other_partition) for key in ("web/m-1", "web/m-2")]
    ids = [derive(index) for origin in origins for derive in (origin.output_id, origin.new_id) for index in range(5)]
    assert len(set(ids)) == len(ids) == 60


def test_chance_derives_from_the_origin() -> None:
    one, same, other = (Origin(RANGE, key).random().random() for key in ("web/m-1", "web/m-1", "web/m-2"))
    assert one == same != other


@st.composite
def storable(draw: st.DrawFn) -> EntityRef:
    """Any entity that can be stored: many have sources that are too long to be readable."""
    part = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
    text = st.builds(lambda part, times: part * times, part, st.integers(1, 30))
    partition = tuple(draw(st.lists(text | st.integers(-9, 9) | st.booleans(), min_size=1, max_size=3)))
    id = draw(text.map(lambda part: part[:255]).filter(is_document_id))
    ref = EntityRef(
        draw(st.sampled_from(["order", "日本", "=~", "a/b"])), draw(st.sampled_from([partition, (id,)])), id
    )
    assume(len(ref.key.encode()) <= MAX_KEY_BYTES)
    return ref


@given(storable(), storable())
def test_every_source_is_short_enough_and_names_its_entity_alone(ref: EntityRef, other: EntityRef) -> None:
    assert len(ref.source) <= MAX_SOURCE_LENGTH
    assert ref.source.isascii()
    assert EntityRef.of_source(ref.source) == ref
    assert (ref.source == other.source) == (ref == other)


def test_a_source_is_readable_up_to_its_length_and_then_encoded() -> None:
    readable = EntityRef("order", ("p" * 817,), "o" * 200)
    longer = EntityRef("order", ("p" * 818,), "o" * 200)
    assert (len(readable.source), readable.source[:7]) == (LONGEST_READABLE, "order/p")
    assert longer.source.startswith("order/=~")
    type = "x" * LONGEST_TYPE
    longest = EntityRef(type, ("é" * ((MAX_KEY_BYTES - LONGEST_TYPE - 11 - 255) // 2),), "i" * 255)
    assert MAX_KEY_BYTES - 2 <= len(longest.key.encode()) <= MAX_KEY_BYTES
    assert LONGEST_READABLE < len(longest.source) <= MAX_SOURCE_LENGTH


LONG = EntityRef("order", ("日" * 200,), "日" * 200).source
SHORT = "order/=~WyJvcmRlciIsIm8tMSIsIm8tMSJd"  # Of a short key, which is readable.
BROKEN = ("order/=~", "order/=~W10", "order/=~!!!", "order/=~W1tdLFtdLFtdXQ")


@pytest.mark.parametrize("source", [*BROKEN, SHORT, LONG.replace("order", "other"), f"{LONG}=", f"{LONG}/o"])
def test_a_text_that_only_looks_like_an_encoded_source_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="not the source of an entity"):
        EntityRef.of_source(source)
