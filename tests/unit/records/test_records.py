"""The shapes of everything that is stored, pinned: other versions of the library, Spark and operators read them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce.errors import IdTaken
from exactlyonce.records.answers import Answer
from exactlyonce.records.channels import Channel, Forgotten
from exactlyonce.records.kept import Kept
from exactlyonce.records.ledger import LEDGER, Apart, Entry, Ledger, entity_document, read_entity
from exactlyonce.records.library import (
    ParkedMessage,
    ProcessedRecord,
    StagedOutputs,
    library_document,
    processed_record,
    read_parked,
    read_processed,
    read_staged,
)
from exactlyonce.records.outputs import Content, Output, OutputRef, digest
from exactlyonce.records.places import LARGEST_NUMBER, Place
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.ranges import Ranges, with_number

AT = datetime(2026, 11, 21, 10, 0, 2, tzinfo=timezone.utc)
GAME = EntityRef("range", ("game-7",), "game-7")
PLACE = Place("c1", "board/game-7", 12)
PLACED = {"channel": "c1", "receiver": "board/game-7", "number": 12}
OUTPUT = Output("o-1", "leader-board", Json.of({"specversion": "1.0", "id": "o-1"}), 1.5, PLACE)
OWING = Entry("web/m-43", "9a", 43, AT, (OUTPUT.ref,), "d1", recorded=False, owed=(OUTPUT.content(GAME.source, AT),))
SETTLED = Entry("web/m-42", "5f", 42, AT - timedelta(seconds=2), (), "d2", staged=True, seen=1_700_000_000)
SEQUENCES = (Sequence("leader-board", "board/game-7", "c1", 12, ordered=True),)
LEDGER_43 = Ledger(
    43,
    "0:-1#913",
    (SETTLED, OWING),
    channels=(Channel("c2", "range/game-7", ((1, 40), (42, 42)), "aBcD3"),),
    apart=Apart(records=True, sealed=True),
    type="range",
    sequences=SEQUENCES,
    calls=("o-7",),
    kept=(Kept("o-9", datetime(2036, 7, 1, tzinfo=timezone.utc), "5f-kept"),),
)

TEXT = st.text(max_size=8)
MOMENTS = st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(timezone.utc))  # noqa: DTZ001
COUNTS = st.integers(0, 2**53)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
).map(Json.of)
PLACES = st.none() | st.builds(Place, TEXT, TEXT, COUNTS)
OUTPUTS = st.lists(st.builds(Output, TEXT, TEXT, JSONS, st.floats(0, 1e6), PLACES), max_size=2).map(tuple)
REFERENCES = st.lists(st.builds(OutputRef, TEXT, TEXT, PLACES), max_size=2).map(tuple)
CONTENTS = st.builds(Content, JSONS | st.tuples(TEXT, TEXT), st.floats(0, 1e6))
OWED = REFERENCES.flatmap(
    lambda refs: st.tuples(
        st.just(refs),
        st.none() | st.just("staged") | st.lists(CONTENTS, min_size=len(refs), max_size=len(refs)).map(tuple),
    )
)
ANSWERS = st.builds(Answer, COUNTS, st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple), st.none() | TEXT, TEXT)
ENTRIES = st.builds(
    lambda owed, **parts: Entry(outputs=owed[0], owed=owed[1], **parts),
    OWED,
    message=TEXT,
    tx=TEXT,
    version=COUNTS,
    at=MOMENTS,
    digest=TEXT,
    staged=st.booleans(),
    recorded=st.booleans(),
    seen=st.none() | COUNTS,
    answer=st.none() | ANSWERS,
)
NOTHING: Ranges = ()
RANGES = st.lists(st.integers(1, LARGEST_NUMBER), max_size=3).map(lambda some: reduce(with_number, some, NOTHING))
CHANNELS = st.builds(Channel, TEXT, TEXT, RANGES, TEXT)
RECEPTIONS = st.builds(
    Reception, TEXT, TEXT, COUNTS, RANGES, st.none() | MOMENTS, st.none() | TEXT, st.none() | MOMENTS
)
LEDGERS = st.builds(
    Ledger,
    version=COUNTS,
    token=st.none() | TEXT,
    entries=st.lists(ENTRIES, max_size=3).map(tuple),
    channels=st.lists(CHANNELS, max_size=2).map(tuple),
    apart=st.builds(Apart, st.booleans(), st.booleans(), st.booleans(), st.none() | st.builds(Forgotten, COUNTS, TEXT)),
    deleted=st.just(False),
    protocol=st.sampled_from(["outbox", "colocated", "stream", "resequencer"]),
    sequences=st.lists(st.builds(Sequence, TEXT, TEXT, TEXT, COUNTS, st.booleans()), max_size=2).map(tuple),
    snapshot_every=st.none() | COUNTS,
    event_sourced=st.booleans(),
    receptions=st.lists(RECEPTIONS, max_size=2).map(tuple),
    calls=st.lists(TEXT, max_size=2).map(tuple),
    kept=st.lists(st.builds(Kept, TEXT, MOMENTS, TEXT), max_size=2).map(tuple),
)


STORED = {
    "id": "game-7",
    "gameId": "game-7",
    "target": 42,
    "_ledger": {
        "schema": 1,
        "type": "range",
        "protocol": "outbox",
        "snapshot_every": None,
        "event_sourced": False,
        "receptions": [],
        "calls": ["o-7"],
        "kept": [{"id": "o-9", "due": "2036-07-01T00:00:00Z", "tx": "5f-kept"}],
        "sequences": [
            {
                "destination": "leader-board",
                "receiver": "board/game-7",
                "channel": "c1",
                "last": 12,
                "ordered": True,
            }
        ],
        "version": 43,
        "token": "0:-1#913",
        "owing_since": "2026-11-21T10:00:02Z",
        "deleted": False,
        "channels": [{"id": "c2", "source": "range/game-7", "received": [[1, 40], [42, 42]], "marks": "aBcD3"}],
        "apart": {"records": True, "channels": False, "sealed": True, "forgotten": None},
        "entries": [
            {
                "message": "web/m-42",
                "tx": "5f",
                "version": 42,
                "at": "2026-11-21T10:00:00Z",
                "outputs": [],
                "digest": "d2",
                "staged": True,
                "owed": None,
                "seen": 1_700_000_000,
            },
            {
                "message": "web/m-43",
                "tx": "9a",
                "version": 43,
                "at": "2026-11-21T10:00:02Z",
                "outputs": [{"id": "o-1", "destination": "leader-board", "place": PLACED}],
                "digest": "d1",
                "owed": [{"envelope": '{"specversion":"1.0","id":"o-1"}', "delay": 1.5}],
                "recorded": False,
            },
        ],
    },
}


def test_the_entity_document_is_pinned() -> None:
    document = entity_document(Json.of({"id": "game-7", "gameId": "game-7", "target": 42}), LEDGER_43)
    assert json.loads(document.text) == STORED
    assert list(document.value)[-1] == LEDGER


def test_what_a_read_model_has_received_is_pinned() -> None:
    reception = Reception("c1", "range/game-7", 3, ((5, 6), (8, 8)), gap_since=AT, failing="HandlerFailed", passed=AT)
    ledger = Ledger(2, type="board", protocol="resequencer", receptions=(reception, Reception("c2", "range/game-8")))
    assert entity_document(Json.of({"id": "b"}), ledger).value[LEDGER]["receptions"] == [
        {
            "channel": "c1",
            "source": "range/game-7",
            "next": 3,
            "held": [[5, 6], [8, 8]],
            "gap_since": "2026-11-21T10:00:02Z",
            "failing": "HandlerFailed",
            "passed": "2026-11-21T10:00:02Z",
        },
        {
            "channel": "c2",
            "source": "range/game-8",
            "next": 1,
            "held": [],
            "gap_since": None,
            "failing": None,
            "passed": None,
        },
    ]


def test_the_processed_record_is_pinned() -> None:
    assert library_document(processed_record(GAME, OWING)) == {
        "kind": "processed",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "tx": "9a",
        "version": 43,
        "at": "2026-11-21T10:00:02Z",
        "outputs": [{"id": "o-1", "destination": "leader-board", "place": PLACED}],
        "digest": "d1",
    }


def test_an_answer_goes_from_the_entry_into_the_record_and_is_left_out_where_there_is_none() -> None:
    answer = Answer(201, (("X-a", "b"),), '{"total":1.0}', "f")
    stored = library_document(processed_record(GAME, replace(OWING, answer=answer)))
    assert json.loads(json.dumps(stored["answer"])) == {
        "status": 201,
        "headers": [["X-a", "b"]],
        "body": '{"total":1.0}',
        "asked": "f",
    }
    assert read_processed(stored).answer == answer
    del stored["answer"]
    assert read_processed(stored).answer is None


def test_the_staged_document_is_pinned() -> None:
    envelope = '{"specversion":"1.0","id":"o-1"}'
    assert library_document(StagedOutputs(GAME.key, "web/m-43", "9a", AT, (OUTPUT,))) == {
        "kind": "staged",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "tx": "9a",
        "at": "2026-11-21T10:00:02Z",
        "outputs": [
            {
                "id": "o-1",
                "destination": "leader-board",
                "envelope": envelope,
                "delay": 1.5,
                "place": PLACED,
            }
        ],
    }


def test_the_parked_document_is_pinned() -> None:
    parked = ParkedMessage(GAME.key, "web/m-43", "its handler raised ValueError", AT, OUTPUT.envelope)
    assert library_document(parked) == {
        "kind": "parked",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "reason": "its handler raised ValueError",
        "at": "2026-11-21T10:00:02Z",
        "envelope": '{"specversion":"1.0","id":"o-1"}',
        "destination": None,
        "renewed": None,
        "place": None,
    }


def test_the_digest_is_pinned_and_covers_destination_delay_content_and_order() -> None:
    assert digest(()) == "T1PNoYwrqgwDVLtfmj7L5Q"
    others = [
        Output("other id", OUTPUT.destination, OUTPUT.envelope, OUTPUT.delay),
        Output("o-1", "elsewhere", OUTPUT.envelope, OUTPUT.delay),
        Output("o-1", OUTPUT.destination, OUTPUT.envelope, 2.5),
        Output("o-1", OUTPUT.destination, Json.of({}), OUTPUT.delay),
    ]
    assert [digest((one,)) == digest((OUTPUT,)) for one in others] == [True, False, False, False]
    assert digest((OUTPUT, others[1])) != digest((others[1], OUTPUT))


@given(JSONS.filter(lambda frozen: isinstance(frozen.value, dict)), LEDGERS)
@settings(max_examples=150, deadline=None)
def test_an_entity_document_is_read_back_the_same(body: Json, ledger: Ledger) -> None:
    properties: dict[str, Any] = {name: value for name, value in body.value.items() if name != LEDGER}
    view = read_entity(GAME, entity_document(Json.of(properties), ledger))
    assert (view.body, view.ledger) == (Json.of(properties), ledger)
    assert hash(view.ledger) == hash(ledger)


@given(st.builds(ProcessedRecord, TEXT, TEXT, TEXT, COUNTS, MOMENTS, REFERENCES, TEXT))
@settings(max_examples=100, deadline=None)
def test_a_processed_record_is_read_back_the_same(record: ProcessedRecord) -> None:
    assert read_processed(json.loads(json.dumps(library_document(record)))) == record


@given(st.builds(StagedOutputs, TEXT, TEXT, TEXT, MOMENTS, OUTPUTS))
@settings(max_examples=100, deadline=None)
def test_a_staged_document_is_read_back_the_same(staged: StagedOutputs) -> None:
    assert read_staged(json.loads(json.dumps(library_document(staged)))) == staged


@given(st.builds(ParkedMessage, TEXT, TEXT, TEXT, MOMENTS, JSONS))
@settings(max_examples=100, deadline=None)
def test_a_parked_document_is_read_back_the_same(parked: ParkedMessage) -> None:
    assert read_parked(json.loads(json.dumps(library_document(parked)))) == parked


IDS = st.uuids().map(str)
DELAYS = st.integers(0, 7 * 86_400).map(float)
RECEIVERS = st.sampled_from(["board/b", "order/" + "%C3%BC" * 40])
NUMBERED = st.none() | st.builds(Place, st.just("c" * 32), RECEIVERS, st.sampled_from([1, LARGEST_NUMBER]))


@given(
    st.lists(st.builds(Output, IDS, st.sampled_from(["a", "é-" * 30]), JSONS, DELAYS, NUMBERED), max_size=3).map(tuple)
)
@settings(max_examples=100, deadline=None)
def test_the_size_of_outputs_covers_what_they_take_in_a_document(outputs: tuple[Output, ...]) -> None:
    def size(held: tuple[Output, ...]) -> int:
        return Json.of(library_document(StagedOutputs(GAME.key, "web/m-43", "9a", AT, held))).size

    assert size(outputs) - size(()) <= sum(output.size for output in outputs)


def test_the_body_of_an_entity_passes_through_untouched() -> None:
    body = Json.of({"z": [1.0, {"y": None}], "id": "game-7", "a": "ü"})
    assert read_entity(GAME, entity_document(body, Ledger())).body == body


def test_an_absent_entity_has_an_empty_ledger_and_a_foreign_document_none() -> None:
    assert read_entity(GAME, None).ledger == Ledger()
    foreign = read_entity(GAME, Json.of({"id": "game-7"}))
    assert (foreign.body, foreign.ledger) == (Json.of({"id": "game-7"}), None)


def test_a_document_belongs_to_entities_of_one_type() -> None:
    document = entity_document(Json.of({"id": "game-7"}), LEDGER_43)
    with pytest.raises(IdTaken, match="of type 'range'") as taken:
        read_entity(EntityRef("board", ("game-7",), "game-7"), document)
    assert taken.value.kept == "its id is that of an entity of another type"


def test_a_tombstone_has_a_ledger_and_no_body() -> None:
    view = read_entity(GAME, entity_document(Json.of({"id": "game-7"}), Ledger(3, None, (SETTLED,), deleted=True)))
    assert view.body is None
    assert view.ledger is not None
    assert view.ledger.entries == (SETTLED,)


def test_owing_since_is_the_time_of_the_oldest_entry_that_owes() -> None:
    later = Entry("web/m-44", "9b", 44, AT + timedelta(hours=1), (), "", owed="staged")
    assert Ledger(44, None, (SETTLED, OWING, later)).owing_since == AT
    assert Ledger(42, None, (SETTLED,)).owing_since is None
    assert Ledger(44, None, (SETTLED, OWING, later)).owing == {"9a", "9b"}


def test_an_entry_that_owes_gives_its_outputs_and_one_that_owes_nothing_or_staged_ones_none() -> None:
    assert OWING.owed_outputs(GAME.source) == (OUTPUT,)
    assert [replace(OWING, owed=owed).owed_outputs(GAME.source) for owed in (None, "staged")] == [(), ()]


def test_marking_touches_only_the_transactions_named() -> None:
    marked = LEDGER_43.with_published({"9a", "unknown"})
    assert marked.entries == (SETTLED,)
    assert LEDGER_43.with_published({"5f"}) == LEDGER_43
    assert (marked.version, marked.token) == (43, "0:-1#913")


def test_the_digest_of_outputs_takes_numbers_with_all_their_digits_and_no_order_of_properties() -> None:
    def digest_of(text: str) -> str:
        return digest((Output("o-1", "payments", Json(text)),))

    amount = digest_of('{"amount":99999999999999.99,"to":"a"}')
    assert amount == digest_of('{"to":"a","amount":99999999999999.99}')
    assert amount != digest_of('{"amount":99999999999999.98,"to":"a"}')
