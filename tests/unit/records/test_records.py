"""The shapes of everything that is stored, pinned: other versions of the library, Spark and operators read them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.errors import IdTaken
from exactlyonce.records.ledger import (
    KINDS,
    LEDGER,
    KeptAnswer,
    Ledger,
    Mark,
    Page,
    entity_document,
    read_entity,
    read_page,
    written,
)
from exactlyonce.records.library import (
    Book,
    ParkedMessage,
    RequestDocument,
    StagedOutputs,
    Unparked,
    library_document,
    read_parked,
    read_request,
    read_staged,
)
from exactlyonce.records.outbox import (
    LARGEST_NUMBER,
    Answer,
    Kept,
    OutboxEntry,
    Output,
    OutputRef,
    Pending,
    Place,
    Ranges,
    Reception,
    Sequence,
    digest,
    with_number,
)
from exactlyonce.values.envelope import EntityRef, message_hash
from exactlyonce.values.frozen_json import Json
from tests.unit.bookkeeping import BOOK, tx

AT = datetime(2026, 11, 21, 10, 0, 2, tzinfo=timezone.utc)
SINCE = 1_795_255_202_000
GAME = EntityRef("range", ("game-7",), "game-7")
PLACE = Place("c1", "board/game-7", 12)
PLACED = {"channel": "c1", "receiver": "board/game-7", "number": 12}
OUTPUT = Output("o-1", "leader-board", Json.of({"specversion": "1.0", "id": "o-1"}), 1.5, PLACE)
CAUSE, PAINTED = message_hash("web/m-43"), message_hash("web/m-42")
ANSWER = Answer(201, (("X-a", "b"),), '{"total":1.0}', "f")
MARKS = written(
    (Mark(SINCE - 2_000, PAINTED, "f", False, "aBc+").text, Mark(SINCE, CAUSE, "i", True, "aBc+", "0~").text)
)
OWING = OutboxEntry(
    CAUSE, tx(43), AT, SINCE, (Pending(("hit", "", "}"), 1, 1, 1.5, place=(0, 12)), Pending(Json("{}"), id="o"))
)
LEDGER_43 = Ledger(
    version=43,
    type="range",
    entity=GAME.key,
    token="0:-1#913",
    marks=MARKS,
    to=("audience", "leader-board"),
    complete=SINCE - 9_000,
    left=41,
    cut=40,
    lost=SINCE - 99_000,
    answers=(KeptAnswer(CAUSE, ANSWER),),
    outbox=(OWING,),
    blobs=((PAINTED, tx(42)),),
    sequences=(Sequence("leader-board", "board/game-7", "c1", 12),),
    calls=("o-7",),
    kept=(Kept("o-9", datetime(2036, 7, 1, tzinfo=timezone.utc), "5f-kept"),),
)
PAGE = Page(
    GAME.key,
    3,
    40,
    SINCE - 2_000,
    SINCE,
    MARKS,
    before=SINCE - 9_000,
    to=("audience", "leader-board"),
    hashes=(PAINTED,),
    answers=(KeptAnswer(CAUSE, ANSWER),),
    blobs=(tx(42),),
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
ANSWERS = st.builds(Answer, COUNTS, st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple), st.none() | TEXT, TEXT)
KEPT_ANSWERS = st.lists(st.builds(KeptAnswer, TEXT, ANSWERS), max_size=2).map(tuple)
PENDING = st.builds(
    Pending, JSONS | st.tuples(TEXT, TEXT), COUNTS, st.integers(0, 1), st.floats(0, 1e6), st.none() | TEXT.filter(bool)
)
ENTRIES = st.builds(
    OutboxEntry,
    TEXT,
    TEXT,
    MOMENTS,
    st.none() | COUNTS,
    st.lists(PENDING, max_size=2).map(tuple),
    st.none() | TEXT,
    st.none() | ANSWERS,
)
ANY_MARKS = st.lists(
    st.builds(
        Mark,
        st.integers(0, 2**41),
        TEXT.map(message_hash),
        st.sampled_from(KINDS),
        st.booleans(),
        st.just("aBc+"),
        st.sampled_from(["", "-0~"]),
    ),
    max_size=3,
)
NOTHING: Ranges = ()
RANGES = st.lists(st.integers(1, LARGEST_NUMBER), max_size=3).map(lambda some: reduce(with_number, some, NOTHING))
RECEPTIONS = st.builds(
    Reception, TEXT, TEXT, COUNTS, RANGES, st.none() | MOMENTS, st.none() | TEXT, st.none() | MOMENTS
)
LEDGERS = st.builds(
    lambda marks, left, **parts: Ledger(
        version=len(marks) + left, marks=written(mark.text for mark in marks), left=left, **parts
    ),
    ANY_MARKS,
    COUNTS,
    token=st.none() | TEXT,
    entity=st.sampled_from(["", GAME.key]),
    to=st.just(("audience", "leader-board")),
    complete=st.integers(-1, 2**41),
    answers=KEPT_ANSWERS,
    outbox=st.lists(ENTRIES, max_size=3).map(tuple),
    blobs=st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
    deleted=st.just(False),
    protocol=st.sampled_from(["outbox", "colocated"]),
    sequences=st.lists(st.builds(Sequence, TEXT, TEXT, TEXT, COUNTS), max_size=2).map(tuple),
    snapshot_every=st.none() | COUNTS,
    event_sourced=st.booleans(),
    receptions=st.lists(RECEPTIONS, max_size=2).map(tuple),
    calls=st.lists(TEXT, max_size=2).map(tuple),
    kept=st.lists(st.builds(Kept, TEXT, MOMENTS, TEXT), max_size=2).map(tuple),
)
PAGES = st.builds(
    Page,
    *(TEXT, COUNTS, COUNTS, COUNTS, COUNTS, TEXT),
    before=st.integers(-1, 2**41),
    to=st.lists(TEXT, max_size=2).map(tuple),
    hashes=st.lists(TEXT, max_size=2).map(tuple),
    answers=KEPT_ANSWERS,
    blobs=st.lists(TEXT, max_size=2).map(tuple),
)


STORED_ANSWER = {"status": 201, "headers": [["X-a", "b"]], "body": '{"total":1.0}', "asked": "f"}
STORED = {
    "id": "game-7",
    "gameId": "game-7",
    "target": 42,
    "_ledger": {
        "version": 43,
        "type": "range",
        "entity": '["range","game-7","game-7"]',
        "token": "0:-1#913",
        "marks": MARKS,
        "to": ["audience", "leader-board"],
        "complete": 1_795_255_193_000,
        "left": 41,
        "cut": 40,
        "lost": 1_795_255_103_000,
        "answers": [{"cause": CAUSE, "answer": STORED_ANSWER}],
        "outbox": [
            {
                "cause": CAUSE,
                "tx": f"{BOOK}.0000043",
                "at": 1_795_255_202_000_000,
                "since": 1_795_255_202_000,
                "outputs": [
                    {"envelope": ["hit", "", "}"], "index": 1, "to": 1, "delay": 1.5, "place": [0, 12]},
                    {"envelope": "{}", "id": "o"},
                ],
            },
        ],
        "blobs": [[PAINTED, f"{BOOK}.0000042"]],
        "sequences": [["leader-board", "board/game-7", "c1", 12]],
        "calls": ["o-7"],
        "kept": [{"id": "o-9", "due": "2036-07-01T00:00:00Z", "tx": "5f-kept"}],
        "schema": 1,
    },
}


def test_the_entity_document_is_pinned() -> None:
    document = entity_document(Json.of({"id": "game-7", "gameId": "game-7", "target": 42}), LEDGER_43)
    assert json.loads(document.text) == STORED
    assert list(document.value)[-1] == LEDGER


def test_marks_are_pinned() -> None:
    assert MARKS == "P6xY5Z-XGKVQ71HhbKOrr6YFaBc+.P6xY62F8nKpJu8p82+ZuqCqiaBc+0~"


def test_empty_parts_are_left_out_of_a_ledger() -> None:
    assert entity_document(Json("{}"), Ledger()).value[LEDGER] == {"version": 0, "type": "", "schema": 1}
    assert entity_document(Json("{}"), Ledger(protocol="colocated")).value[LEDGER]["protocol"] == "colocated"


def test_the_shape_of_received_numbers_of_a_read_model_is_pinned() -> None:
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


def test_the_page_is_pinned() -> None:
    assert json.loads(json.dumps(library_document(PAGE))) == {
        "kind": "page",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "number": 3,
        "version": 40,
        "begin": 1_795_255_200_000,
        "until": 1_795_255_202_000,
        "marks": MARKS,
        "before": 1_795_255_193_000,
        "to": ["audience", "leader-board"],
        "hashes": [PAINTED],
        "answers": [{"cause": CAUSE, "answer": STORED_ANSWER}],
        "blobs": [f"{BOOK}.0000042"],
    }


def test_a_page_of_timed_marks_alone_has_nothing_else() -> None:
    page = Page(GAME.key, 3, 40, 1, 2, MARKS)
    assert [*library_document(page)] == ["entity", "number", "version", "begin", "until", "marks", "kind", "schema"]


def test_the_book_is_pinned() -> None:
    assert library_document(Book(BOOK, 12, (7, 9), (7,), ended=True, searched=(3,), written=2)) == {
        "kind": "book",
        "schema": 1,
        "id": BOOK,
        "used": 12,
        "open": [7, 9],
        "stuck": [7],
        "ended": True,
        "within": 600,
        "searched": [3],
        "written": 2,
    }


def test_the_staged_document_is_pinned() -> None:
    envelope = '{"specversion":"1.0","id":"o-1"}'
    assert library_document(StagedOutputs(GAME.key, "web/m-43", "9a-kept", AT, (OUTPUT,))) == {
        "kind": "staged",
        "schema": 1,
        "entity": '["range","game-7","game-7"]',
        "message": "web/m-43",
        "tx": "9a-kept",
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


def test_the_parked_document_and_what_takes_its_place_are_pinned() -> None:
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
    discarded = {"kind": "unparked", "schema": 1, "entity": '["range","game-7","game-7"]', "message": "web/m-43"}
    assert library_document(Unparked(GAME.key, "web/m-43")) == discarded
    assert library_document(Unparked(GAME.key, "web/m-43", "web/m-9")) == {**discarded, "sent": "web/m-9"}


def test_the_document_of_a_request_is_pinned() -> None:
    document = {"kind": "request", "schema": 1, "entity": '["range","game-7","game-7"]', "request": "r-1"}
    times = {"at": "2026-11-21T10:00:02Z"}
    opened = RequestDocument(GAME.key, "r-1", AT, OUTPUT.envelope, None)
    assert library_document(opened) == {**document, **times, "envelope": OUTPUT.envelope.text, "answer": None}
    done = replace(opened, envelope=None, answer=ANSWER)
    stored = json.loads(json.dumps(library_document(done)))
    assert stored == {**document, **times, "envelope": None, "answer": STORED_ANSWER}
    assert read_request(stored) == done


def test_the_digest_is_pinned_and_covers_destination_delay_content_and_order() -> None:
    assert digest(()) == "T1PNoYwrqgwDVLtfmj7L5Q"
    others = [
        Output("other id", OUTPUT.destination, OUTPUT.envelope, OUTPUT.delay),
        Output("o-1", "elsewhere", OUTPUT.envelope, OUTPUT.delay),
        Output("o-1", OUTPUT.destination, OUTPUT.envelope, 2.5),
        Output("o-1", OUTPUT.destination, Json.of({}), OUTPUT.delay),
    ]
    assert [digest((other,)) == digest((OUTPUT,)) for other in others] == [True, False, False, False]
    assert digest((OUTPUT, others[1])) != digest((others[1], OUTPUT))


@given(JSONS.filter(lambda frozen: isinstance(frozen.value, dict)), LEDGERS)
def test_an_entity_document_is_read_back_the_same(body: Json, ledger: Ledger) -> None:
    properties: dict[str, Any] = {name: value for name, value in body.value.items() if name != LEDGER}
    view = read_entity(GAME, entity_document(Json.of(properties), ledger))
    assert (view.body, view.ledger) == (Json.of(properties), ledger)
    assert hash(view.ledger) == hash(ledger)


@given(PAGES)
def test_a_page_is_read_back_the_same(page: Page) -> None:
    assert read_page(json.loads(json.dumps(library_document(page)))) == page


@given(st.builds(StagedOutputs, TEXT, TEXT, TEXT, MOMENTS, OUTPUTS))
def test_a_staged_document_is_read_back_the_same(staged: StagedOutputs) -> None:
    assert read_staged(json.loads(json.dumps(library_document(staged)))) == staged


@given(st.builds(ParkedMessage, TEXT, TEXT, TEXT, MOMENTS, JSONS))
def test_a_parked_document_is_read_back_the_same(parked: ParkedMessage) -> None:
    assert read_parked(json.loads(json.dumps(library_document(parked)))) == parked


IDS = st.uuids().map(str)
DELAYS = st.integers(0, 7 * 86_400).map(float)
RECEIVERS = st.sampled_from(["board/b", "order/" + "%C3%BC" * 40])
NUMBERED = st.none() | st.builds(Place, st.just("c" * 32), RECEIVERS, st.sampled_from([1, LARGEST_NUMBER]))


@given(
    st.lists(st.builds(Output, IDS, st.sampled_from(["a", "é-" * 30]), JSONS, DELAYS, NUMBERED), max_size=3).map(tuple)
)
def test_the_size_of_outputs_covers_what_they_take_in_a_document(outputs: tuple[Output, ...]) -> None:
    def size(held: tuple[Output, ...]) -> int:
        return Json.of(library_document(StagedOutputs(GAME.key, "web/m-43", "9a", AT, held))).size

    assert size(outputs) - size(()) <= sum(output.size for output in outputs)


def test_an_absent_entity_has_an_empty_ledger_and_a_foreign_document_none() -> None:
    assert read_entity(GAME, None).ledger == Ledger()
    foreign = read_entity(GAME, Json.of({"id": "game-7"}))
    assert (foreign.body, foreign.ledger) == (Json.of({"id": "game-7"}), None)


def test_a_document_belongs_to_entities_of_one_type() -> None:
    document = entity_document(Json.of({"id": "game-7"}), replace(LEDGER_43, entity=""))
    with pytest.raises(IdTaken, match="of type 'range'") as taken:
        read_entity(EntityRef("board", ("game-7",), "game-7"), document)
    assert taken.value.kept == "its id is that of an entity of another type"


def test_a_tombstone_has_a_ledger_and_no_body() -> None:
    view = read_entity(GAME, entity_document(Json.of({"id": "game-7"}), replace(LEDGER_43, deleted=True)))
    assert view.body is None
    assert view.ledger is not None
    assert view.ledger.outbox == LEDGER_43.outbox


def test_a_paid_entry_owes_nothing_and_the_ledger_names_the_documents_of_kept_messages() -> None:
    assert LEDGER_43.transactions == {"5f-kept"}


def test_the_digest_of_outputs_takes_numbers_with_all_their_digits_and_no_order_of_properties() -> None:
    def digest_of(text: str) -> str:
        return digest((Output("o-1", "payments", Json(text)),))

    amount = digest_of('{"amount":99999999999999.99,"to":"a"}')
    assert amount == digest_of('{"to":"a","amount":99999999999999.99}')
    assert amount != digest_of('{"amount":99999999999999.98,"to":"a"}')
