"""What an entry keeps of an output that it owes: pieces that nothing else tells, and from these the output to the letter."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.outputs import Output
from exactlyonce.records.places import Place
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 11, 21, 10, 0, 2, tzinfo=timezone.utc)
SOURCE = "range/game-7"
DATA = Json.of({"id": "a", "hit": True})
PLACE = Place("0193a7b2c4d1", "board/game-7", 12)
TRACE = (("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"),)
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)


def output(place: Place | None = PLACE, *, source: str = SOURCE, at: datetime = AT, data: Json = DATA) -> Output:
    """As a handler sends it."""
    extensions = (*(() if place is None else place.extensions), *TRACE)
    envelope = Envelope(source, "o-1", "range.hit", data, at, extensions=extensions)
    return Output("o-1", "boards", envelope.to_json(), 1.5, place)


def test_only_the_type_the_data_and_the_trace_are_kept() -> None:
    content = output().content(SOURCE, AT)
    kept = ('"type":"range.hit",', f',"traceparent":"{TRACE[0][1]}","data":{DATA.text}}}')
    assert (content.envelope, content.delay) == (kept, 1.5)


@pytest.mark.parametrize("place", [PLACE, None])
@pytest.mark.parametrize("at", [AT, AT + timedelta(microseconds=7), AT.astimezone(timezone(timedelta(hours=2)))])
def test_the_output_comes_back_to_the_letter(place: Place | None, at: datetime) -> None:
    sent = output(place, at=at)
    content = sent.content(SOURCE, at)
    assert isinstance(content.envelope, tuple)
    assert content.output(sent.ref, SOURCE, at) == sent


@pytest.mark.parametrize(
    "sent",
    [
        output(source="range/other"),
        output(at=AT + timedelta(seconds=1)),
        replace(output(), id="other"),
        replace(output(), place=replace(PLACE, number=13)),
        replace(output(), envelope=Json.of({"id": "o-1"})),
    ],
    ids=["source", "time", "id", "place", "envelope"],
)
def test_an_envelope_that_says_something_else_is_kept_whole(sent: Output) -> None:
    content = sent.content(SOURCE, AT)
    assert content.envelope == sent.envelope
    assert content.output(sent.ref, SOURCE, AT) == sent


def test_data_that_repeats_the_attributes_comes_back() -> None:
    sent = output(data=output().envelope)
    assert sent.content(SOURCE, AT).output(sent.ref, SOURCE, AT) == sent


@given(TEXT, st.builds(Place, TEXT, TEXT, st.integers(1, 2**53 - 1)), st.dictionaries(TEXT, TEXT, max_size=2))
def test_names_of_any_characters_come_back(source: str, place: Place, data: dict[str, str]) -> None:
    sent = output(place, source=source, data=Json.of(data))
    content = sent.content(source, AT)
    assert isinstance(content.envelope, tuple)
    assert content.output(sent.ref, source, AT) == sent
