"""Going back in the versions of an entity: every earlier state comes back to the letter, or is refused with advice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.stream.protocol import Point, is_whole, part_from, point_before, versions_for, way_back
from exactlyonce.records.companions import StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.frozen_json import Json
from tests.unit.script import AT, ENTITY, work_for

Stream = tuple[StreamEntry, ...]
WORK = work_for()
NAMES = st.sampled_from(["a", "b", "", "/", "~", "~0", "0", "-", "a/b", "ü"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, -0.0, 1e300, 2**60, "", "a", "~1"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=10
)
PADDED = st.builds(lambda values: {"id": "a", "text": "x" * 500, **values}, st.dictionaries(NAMES, VALUES, max_size=4))
"""So long that a patch is shorter."""
POINTS = st.builds(Point, st.none() | PADDED.map(Json.of) | st.dictionaries(NAMES, VALUES).map(Json.of))


def counting(*numbers: int) -> list[Point]:
    return [Point(Json.of({"text": "x" * 200, "total": number})) for number in numbers]


def stream_of(points: list[Point], every: int) -> tuple[Stream, Ledger, Point]:
    """The entries that lead from point to point, the ledger after them, and the entity as it is then."""
    entries = []
    for version, (before, after) in enumerate(pairwise(points), 1):
        way, whole = way_back(before, after, whole=version % every == 0)
        entries.append(entry(version, way, whole=whole))
    return tuple(entries), Ledger(len(entries), snapshot_every=every), points[-1]


def entry(version: int, way: Json, *, whole: bool) -> StreamEntry:
    return StreamEntry(
        entity=ENTITY.key,
        message=f"web/m-{version}",
        tx="tx",
        version=version,
        at=AT,
        envelope=Json("{}"),
        before=way,
        whole=whole,
        outputs=(),
        digest="d",
    )


def part(stream: Stream, version: int, ledger: Ledger) -> Stream:
    """The entries that are needed."""
    first, last = versions_for(version, ledger)
    return stream[first - 1 : last]


@given(st.lists(POINTS, min_size=2, max_size=7), st.integers(1, 4))
def test_every_earlier_point_is_rebuilt_to_the_letter(points: list[Point], every: int) -> None:
    stream, ledger, now = stream_of(points, every)
    for version, before in enumerate(points[:-1], 1):
        needed = part(stream, version, ledger)
        assert point_before(WORK, version, needed, ledger, now) == before
        assert point_before(WORK, version, stream, ledger, now) == before


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 100))
def test_at_most_as_many_entries_are_needed_as_whole_states_are_apart(version: int, more: int, every: int) -> None:
    ledger = Ledger(version + more, snapshot_every=every)
    first, last = versions_for(version, ledger)
    assert first == version <= last <= ledger.version
    assert last - first < every
    assert last % every == 0 or last == ledger.version


@given(POINTS, POINTS)
def test_an_entry_never_holds_more_than_the_whole_state(before: Point, after: Point) -> None:
    way, whole = way_back(before, after, whole=False)
    assert way.size <= before.json.size
    assert whole is (way == before.json)
    assert way_back(before, after, whole=True) == (before.json, True)


def test_a_small_change_of_a_large_state_is_a_small_patch() -> None:
    before, after = counting(1, 2)
    way, whole = way_back(before, after, whole=False)
    assert (way.value, whole) == ([{"op": "replace", "path": "/body/total", "value": 1}], False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1, "b": 2}, {"b": 2}),
    ],
)
def test_a_patch_that_would_change_the_order_of_properties_is_not_used(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    text = {"text": "x" * 200}
    start = Point(Json.of({**before, **text}))
    assert way_back(start, Point(Json.of({**after, **text})), whole=False) == (start.json, True)


def test_a_ledger_that_does_not_say_how_far_apart_whole_states_are_counts_every_one() -> None:
    assert versions_for(3, Ledger(9)) == part_from(3, Ledger(9)) == (3, 3)
    assert is_whole(3, Point(None), Ledger(9))


def refused(version: int, found: Stream, ledger: Ledger, now: Point) -> str:
    with pytest.raises(DamagedDocument) as caught:
        point_before(WORK, version, found, ledger, now)
    assert "account/a" in str(caught.value)
    assert "Nothing was changed" in str(caught.value)
    return str(caught.value)


class TestDamage:
    """A stream of six versions, of which the third and the sixth hold whole states."""

    stream, ledger, now = stream_of(counting(*range(8)), 3)

    @pytest.mark.parametrize("missing", [1, 2, 3])
    def test_a_missing_entry_is_reported_with_what_may_have_happened(self, missing: int) -> None:
        found = tuple(item for item in self.stream if item.version != missing)
        text = refused(1, found, self.ledger, self.now)
        assert "not every version from 1 to 3" in text
        assert "Restore the entries from a backup" in text
        assert "older than the retention" in text

    def test_an_entry_that_is_not_whole_where_it_should_be_is_damage(self) -> None:
        broken = self.changed(3, way_back(*counting(2, 3), whole=False)[0], whole=False)
        text = refused(1, broken, self.ledger, self.now)
        assert "Version 3" in text
        assert "should hold a whole state" in text

    @pytest.mark.parametrize(
        "patch",
        [
            None,
            7,
            "text",
            {},
            [7],
            ["op"],
            [{}],
            [{"op": "jump", "path": "/body"}],
            [{"op": "replace", "path": "/body/nothing", "value": 1}],
            [{"op": "remove", "path": "/body/total/deeper"}],
            [{"op": "test", "path": "/body/total", "value": "other"}],
            [{"op": "replace", "path": "", "value": 7}],
            [{"op": "replace", "path": "/body", "value": 7}],
            [{"op": "remove", "path": "/body"}],
            [{"op": "add", "path": "/other", "value": 1}],
            counting(1)[0].json.value,
        ],
    )
    def test_a_patch_that_does_not_lead_to_a_state_is_damage(self, patch: Any) -> None:
        text = refused(2, self.changed(2, Json.of(patch), whole=False), self.ledger, self.now)
        assert "Version 2" in text
        assert "Restore the entry from a backup" in text

    @pytest.mark.parametrize("state", [[], None, 7, {}, {"body": 7}, {"body": None, "more": 1}])
    def test_a_whole_state_that_is_none_is_damage(self, state: Any) -> None:
        text = refused(3, self.changed(3, Json.of(state), whole=True), self.ledger, self.now)
        assert "Version 3" in text

    def test_an_entry_without_any_way_back_is_damage(self) -> None:
        found = tuple(replace(item, before=None) if item.version == 2 else item for item in self.stream)
        assert "Version 2" in refused(2, found, self.ledger, self.now)

    def test_the_error_quotes_nothing_of_the_state(self) -> None:
        patch = Json.of([{"op": "test", "path": "/body/total", "value": "sEcReT"}])
        assert "sEcReT" not in refused(2, self.changed(2, patch, whole=False), self.ledger, self.now)

    def changed(self, version: int, way: Json, *, whole: bool) -> Stream:
        return tuple(entry(version, way, whole=whole) if item.version == version else item for item in self.stream)
