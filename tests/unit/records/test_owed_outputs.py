"""Outputs in entries: to the letter what the handler sent, however little of it is stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.outbox import OutboxEntry, Output, Pending, Place, Sequence, pending
from exactlyonce.values.envelope import DATAREF, STABLE_TIME, EntityRef, Envelope, derived_id, stable_text
from exactlyonce.values.frozen_json import Json, read_shape, write_shape

ENTITY = EntityRef("order", ("eu",), 'o/"1')
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
CAUSE = "0123456789abcdef"
TO = ("other", "queue")
SEQUENCES = (Sequence("queue", "reader/0", "a", 3), Sequence("queue", "reader/r", "c", 9))
moments = st.integers(3 * 10**14, 4 * 10**15).map(lambda micro: EPOCH + timedelta(microseconds=micro))
sinces = st.integers(0, 4_000_000_000_000)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
trace = st.sampled_from([(), (("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"),)])
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=9).filter(
    lambda name: name not in ("specversion", "id", "source", "type", "time", "subject", "data", "channel", STABLE_TIME)
)
extensions = st.dictionaries(names, st.one_of(st.booleans(), st.integers(0, 9), st.just('a "text"')), max_size=3)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[Output, OutboxEntry, int]:
    """An output as handlers make it, or in some way another one; its entry, and its index."""
    entry = OutboxEntry(CAUSE, "b" * 20 + ".0000001", draw(moments), draw(sinces))
    index = draw(st.integers(0, 300))
    id = derived_id(ENTITY, CAUSE, draw(st.sampled_from([index, index + 1])))
    time = draw(st.sampled_from([entry.at, None, datetime(2000, 1, 1, tzinfo=timezone.utc)]))
    since = draw(st.sampled_from([entry.since or 0, (entry.since or 0) + 1]))
    stable = ((STABLE_TIME, stable_text(since)),) if draw(st.booleans()) else ()
    place = draw(
        st.sampled_from([None, Place("c", "reader/r", 7), Place("other", "reader/r", 7), Place("c", "reader/x", 7)])
    )
    placed = dict(() if place is None else place.extensions)
    more = tuple(sorted({**draw(extensions), **dict(draw(trace)), **dict(stable), **placed}.items()))
    source = draw(st.sampled_from([ENTITY.source, "else/where"]))
    data = Json.of(draw(st.one_of(values, st.just({STABLE_TIME: stable_text(since), "time": "x"}))))
    envelope = Envelope(source, id, draw(st.sampled_from(["said", 'a"b'])), data, time, extensions=more)
    return Output(id, "queue", envelope.to_json(), draw(st.sampled_from([0.0, 2.5])), place), entry, index


@given(outputs())
def test_an_output_comes_back_to_the_letter(item: tuple[Output, OutboxEntry, int]) -> None:
    output, bare, index = item
    entry = replace(bare, outputs=(pending(output, index, ENTITY, bare, to=1, sequences=SEQUENCES),))
    stored = read_shape(OutboxEntry, write_shape(entry), "An entry")
    full = stored.without_sequences(ENTITY, TO, SEQUENCES)
    for kept, sequences in ((stored, SEQUENCES), (full, ())):
        (owed,) = kept.owed_outputs(ENTITY, TO, sequences)
        assert owed == output
        assert owed.envelope.text == output.envelope.text


def test_the_place_of_an_output_is_what_its_envelope_says() -> None:
    bare = OutboxEntry(CAUSE, "b" * 20 + ".0000001", EPOCH)
    place = Place("c1", "board/=7/b", 3)
    envelope = Envelope("else/where", "o-1", "said", Json.of({"channel": "c"}), extensions=place.extensions).to_json()
    entry = replace(
        bare, outputs=(pending(Output("o-1", "queue", envelope, place=place), 2, ENTITY, bare, to=0, sequences=()),)
    )
    assert "place" not in write_shape(entry)["outputs"][0]
    (owed,) = entry.owed_outputs(ENTITY, ("queue",), ())
    assert (owed.id, owed.place) == ("o-1", place)


def test_properties_that_follow_from_the_entry_are_not_stored() -> None:
    at, since = datetime(2026, 1, 1, tzinfo=timezone.utc), 1_767_225_600_000
    bare = OutboxEntry(CAUSE, "b" * 20 + ".0000001", at, since)
    id, stable, place = derived_id(ENTITY, CAUSE, 0), (STABLE_TIME, stable_text(since)), Place("c", "reader/r", 7)

    def kept(entry: OutboxEntry, *more: tuple[str, str], place: Place | None = None) -> Pending:
        attributes = tuple(sorted((*more, *(() if place is None else place.extensions))))
        envelope = Envelope(ENTITY.source, id, "said", Json.of(1), at, extensions=attributes)
        return pending(
            Output(id, "queue", envelope.to_json(), place=place), 0, ENTITY, entry, to=0, sequences=SEQUENCES
        )

    data = "1}"
    assert kept(replace(bare, since=None)) == Pending(("said", data))
    assert kept(bare, stable) == Pending(("said", "", data))
    assert kept(bare, stable, place=place) == Pending(("said", "", data), place=(1, 7))
    assert kept(bare, stable, (DATAREF, "a"), place=place) == Pending(("said", ',"dataref":"a"', data), place=(1, 7))
    assert write_shape(bare)["at"] == 1_767_225_600_000_000
