"""Companions: their ids, their shapes, pinned, and what is refused when one is read."""

from __future__ import annotations

import hashlib
import json
import traceback
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.errors import DamagedDocument
from exactlyonce.records.companions import (
    ColocatedRecord,
    Companion,
    Event,
    NumberedMessage,
    StreamEntry,
    companion_document,
    entry_id,
    id_of,
    numbered_id,
    read_companion,
    record_id,
)
from exactlyonce.records.outbox import LARGEST_NUMBER, Place
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.unit.records.test_records import AT, COUNTS, GAME, JSONS, MOMENTS, OUTPUT, OUTPUTS, REFERENCES

SECRET = "sEcReT-4711"
TEXT = st.text(min_size=1, max_size=8)
REF = {"id": "o-1", "destination": "leader-board", "place": {"channel": "c1", "receiver": "board/game-7", "number": 12}}
OWED = {**REF, "envelope": '{"specversion":"1.0","id":"o-1"}', "delay": 1.5}
MESSAGE = Json.of({"id": "m-43"})
RECORD = ColocatedRecord(GAME.key, "web/m-43", "9a", 43, AT, (OUTPUT.ref,), "d1", owed=(OUTPUT,), owing_since=AT)
ENTRY = StreamEntry(
    entity=GAME.key,
    message="web/m-43",
    tx="9a",
    version=43,
    at=AT,
    envelope=MESSAGE,
    before=Json('[{"op":"remove"}]'),
    whole=False,
    outputs=(OUTPUT.ref,),
    digest="d1",
    events=(Event("range.hit", Json('{"position":5}')),),
)
NUMBERED = NumberedMessage(GAME.key, Place("c1", "range/game-7", 12), "shooters", "shooters/m-43", AT, MESSAGE)
COMPANIONS = (RECORD, ENTRY, NUMBERED)
ENTITIES = st.builds(EntityRef, st.just("range"), st.tuples(TEXT), TEXT)


def hashed(kind: str, *parts: str) -> str:
    return (
        f"{kind}:~{hashlib.sha256(json.dumps(parts, separators=(',', ':'), ensure_ascii=False).encode()).hexdigest()}"
    )


def refused(document: dict[str, Any], entity: EntityRef = GAME) -> str:
    with pytest.raises(DamagedDocument) as caught:
        read_companion(entity, document)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert str(entity) in str(caught.value)
    assert document["id"] in str(caught.value)
    return str(caught.value)


def test_the_co_located_record_is_pinned() -> None:
    assert companion_document(GAME, RECORD) == {
        "id": "processed:~" + hashlib.sha256(b'["game-7","web/m-43"]').hexdigest(),
        "_kind": "processed",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "tx": "9a",
        "version": 43,
        "at": "2026-11-21T10:00:02Z",
        "outputs": [REF],
        "digest": "d1",
        "owed": [OWED],
        "owing_since": "2026-11-21T10:00:02Z",
    }


def test_the_stream_entry_is_pinned() -> None:
    assert companion_document(GAME, ENTRY) == {
        "id": "entry:~" + hashlib.sha256(b'["game-7","web/m-43"]').hexdigest(),
        "_kind": "entry",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "tx": "9a",
        "version": 43,
        "at": "2026-11-21T10:00:02Z",
        "envelope": '{"id":"m-43"}',
        "before": '[{"op":"remove"}]',
        "whole": False,
        "outputs": [REF],
        "digest": "d1",
        "events": [{"type": "range.hit", "data": '{"position":5}'}],
    }


def test_the_document_of_a_number_is_pinned() -> None:
    assert companion_document(GAME, NUMBERED) == {
        "id": "numbered:game-7:c1:12",
        "_kind": "numbered",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "order": {"channel": "c1", "receiver": "range/game-7", "number": 12},
        "source": "shooters",
        "message": "shooters/m-43",
        "at": "2026-11-21T10:00:02Z",
        "held": '{"id":"m-43"}',
        "late": False,
    }


def test_a_finished_companion_is_written_as_nothing() -> None:
    settled = ColocatedRecord(GAME.key, "web/m-43", "9a", 43, AT, (), "d1", owed=None, owing_since=None)
    released = NumberedMessage(GAME.key, Place("c1", "range/game-7", 12), "shooters", None, AT, None)
    written = [companion_document(GAME, item) for item in (settled, released)]
    assert [(item.get("owed"), item.get("owing_since")) for item in written] == [(None, None)] * 2
    assert (written[1]["message"], written[1]["held"]) == (None, None)
    assert [read_companion(GAME, item) for item in written] == [settled, released]


@pytest.mark.parametrize(
    ("id", "plain"),
    [
        (numbered_id(GAME, "c1", 12), True),
        (numbered_id(GAME, "a" * 181, 12), True),  # 200 characters
        (numbered_id(GAME, "a" * 182, 12), False),
        (numbered_id(GAME, "range/game-7", 12), False),
        (numbered_id(GAME, "Ü", 12), False),
        (numbered_id(GAME, "", 12), False),
        (numbered_id(EntityRef("range", ("a",), "a:b"), "c", 1), False),
        (record_id(GAME, "web/m-43"), False),
        (entry_id(GAME, "web/m-43"), False),
    ],
)
def test_an_id_holds_its_values_where_ids_may_hold_them_and_else_their_hash(id: str, plain: bool) -> None:
    assert (":~" not in id) is plain
    assert len(id) <= 200


def test_a_hashed_id_is_pinned() -> None:
    assert numbered_id(GAME, "range/ü", 12) == hashed("numbered", "game-7", "range/ü", "12")


PARTS = st.text("a:~.", max_size=3)
PLACES = st.tuples(PARTS.filter(bool), PARTS, st.integers(1, 12))


@given(PLACES, PLACES)
def test_ids_differ_where_anything_differs(item: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    def id_at(place: tuple[str, str, int]) -> str:
        entity, channel, number = place
        return numbered_id(EntityRef("range", ("p",), entity), channel, number)

    assert (id_at(item) == id_at(other)) is (item == other)


@given(PARTS.filter(bool), PARTS, PARTS.filter(bool), PARTS)
def test_entities_that_share_a_partition_do_not_collide(entity: str, message: str, other: str, its: str) -> None:
    one, two = EntityRef("range", ("p",), entity), EntityRef("range", ("p",), other)
    for make in (record_id, entry_id):
        assert (make(one, message) == make(two, its)) is ((entity, message) == (other, its))
    assert record_id(one, message) != entry_id(one, message)


FACTS: dict[str, st.SearchStrategy[Any]] = {
    "entity": st.just(""),
    "message": TEXT,
    "tx": TEXT,
    "version": COUNTS,
    "at": MOMENTS,
    "outputs": REFERENCES,
    "digest": TEXT,
}
RECORDS = st.builds(ColocatedRecord, **FACTS, owed=st.none() | OUTPUTS, owing_since=st.none() | MOMENTS)
EVENTS = st.lists(st.builds(Event, TEXT, JSONS), max_size=2).map(tuple)
ENTRIES = st.builds(
    StreamEntry,
    **FACTS,
    envelope=JSONS,
    before=st.none() | JSONS,
    whole=st.booleans(),
    events=st.none() | EVENTS,
)
NUMBERS = st.builds(
    NumberedMessage,
    st.just(""),
    st.builds(Place, TEXT, TEXT, st.integers(1, LARGEST_NUMBER)),
    TEXT,
    st.none() | TEXT,
    MOMENTS,
    st.none() | JSONS,
)


@given(ENTITIES, RECORDS | ENTRIES | NUMBERS)
def test_a_written_companion_is_read_again(entity: EntityRef, companion: Any) -> None:
    whole = replace(companion, entity=entity.key)
    document = json.loads(json.dumps(companion_document(entity, whole)))
    assert document["id"] == id_of(entity, whole)
    assert read_companion(entity, document) == whole


@pytest.mark.parametrize("kind", [None, "", "staged", "Entry", 7, ["entry"], {"entry": 1}])
def test_a_document_of_no_known_kind_is_not_the_librarys(kind: Any) -> None:
    text = refused({**companion_document(GAME, ENTRY), "_kind": kind, "secret": SECRET})
    assert "Give the document another id" in text
    without = companion_document(GAME, ENTRY)
    del without["_kind"]
    assert refused(without) == text


@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_companion_of_another_entity_is_refused(companion: Companion) -> None:
    other = EntityRef("range", ("game-8",), "game-8")
    assert "the content of another companion" in refused(companion_document(GAME, companion), other)
    neighbour = EntityRef("range", ("game-7",), "other")
    assert "the content of another companion" in refused(
        {**companion_document(GAME, companion), "entity": neighbour.key}
    )


@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_companion_under_another_id_is_refused(companion: Companion) -> None:
    document = companion_document(GAME, companion)
    assert "Restore the companion from a backup" in refused({**document, "id": document["id"][:-1]})


@pytest.mark.parametrize(
    ("companion", "property", "other"),
    [
        (RECORD, "message", "web/m-44"),
        (ENTRY, "message", "web/m-44"),
        (NUMBERED, "order", {"channel": "c2", "receiver": "range/game-7", "number": 12}),
        (NUMBERED, "order", {"channel": "c1", "receiver": "range/game-7", "number": 13}),
    ],
)
def test_a_companion_about_something_else_than_its_id_says_is_refused(
    companion: Companion, property: str, other: Any
) -> None:
    assert "the content of another companion" in refused({**companion_document(GAME, companion), property: other})
