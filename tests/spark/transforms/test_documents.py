"""What is read is what the library wrote, or it is said why not."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import ArrayType, StructType

from exactlyonce.records.companions import Companion
from exactlyonce.records.ledger import KeptAnswer, Ledger, Mark
from exactlyonce.records.library import LibraryRecord
from exactlyonce.records.outbox import Kept, OutboxEntry, OutputRef, Pending, Place, Reception
from exactlyonce.values.envelope import EntityRef, message_hash
from spark_jobs.source.port import RAW
from spark_jobs.transforms import schemas
from spark_jobs.transforms.schemas import DOCUMENT, FINDING, LEFT_OUT, LIBRARY, selection
from tests.spark.transforms.dumping import Stored, documents, rows

IN_DOCUMENTS = {"owed": "owes", "held": "held", "kind": "kind"}


def names(type: Any) -> set[str]:
    return {field.name for field in fields(type)}


def element(column: Any) -> StructType:
    assert isinstance(column, ArrayType)
    assert isinstance(column.elementType, StructType)
    return column.elementType


def read_of(shape: type[Any]) -> set[str]:
    """The properties of a shape that are not known to be left out."""
    return names(shape) - LEFT_OUT.get(shape.__name__, frozenset())


@pytest.mark.parametrize("shape", [*get_args(LibraryRecord), *get_args(Companion)])
def test_every_property_of_a_document_is_read_or_known_to_be_left_out(shape: type[Any]) -> None:
    read = {IN_DOCUMENTS.get(name, name) for name in read_of(shape)}
    assert read <= set(DOCUMENT.fieldNames())
    asked = " ".join(selection("library" if shape in get_args(LibraryRecord) else "companions").columns)
    used_by_others = {"answer", "before", "until"}
    assert not [name for name in LEFT_OUT.get(shape.__name__, frozenset()) - used_by_others if f'"{name}"' in asked]


def test_nothing_is_left_out_that_no_shape_has() -> None:
    shapes = (*get_args(LibraryRecord), *get_args(Companion), Ledger, OutboxEntry, Pending)
    has = {shape.__name__: names(shape) for shape in shapes}
    assert {name: left_out - has[name] for name, left_out in LEFT_OUT.items() if left_out - has[name]} == {}


def test_every_property_of_a_ledger_is_read_or_known_to_be_left_out() -> None:
    assert read_of(Ledger) == {*schemas.LEDGER_READ.fieldNames()}
    entry = element(schemas.LEDGER_READ["outbox"].dataType)
    assert read_of(OutboxEntry) == {*entry.fieldNames()}
    assert read_of(Pending) == {*element(entry["outputs"].dataType).fieldNames()}
    assert names(KeptAnswer) == {*element(schemas.ANSWERS).fieldNames()}
    assert names(Kept) == {*element(schemas.KEPT).fieldNames()}
    assert names(OutputRef) == {*element(schemas.OUTPUTS).fieldNames()}
    assert names(Place) == {*schemas.PLACE.fieldNames()}
    assert names(Reception) == {*element(schemas.RECEPTIONS).fieldNames()}


def test_no_query_asks_for_a_body() -> None:
    for asked in ("library", "companions", "entities"):
        columns = selection(asked, ("/tenant",)).columns
        bodies = ("envelope", "events", "reason", "token", "outputs" if asked == "library" else "before")
        assert not [column for column in columns if any(f'"{body}"' in column for body in bodies)]
    assert 'c["owed"]' not in selection("companions").columns
    assert 'c["held"]' not in selection("companions").columns


def test_the_queries_of_a_container_ask_for_each_document_once(stored: list[Stored]) -> None:
    assert len(list(rows(stored))) == len(stored)
    strange = [Stored(LIBRARY, {"id": "x"}), Stored("shop", {"id": "x", "_kind": 5}, ("/tenant",))]
    assert len(list(rows(strange))) == 2


MARKS = [Mark(number, message_hash(f"web/m-{number}"), "f", number < 2, "AA==", "-~").text for number in (1, 2)]
ENTRY: dict[str, Any] = {"cause": "c" * 16, "tx": "b.0000001", "at": 1_767_225_600_500_000, "since": 1}
LEDGER: dict[str, Any] = {
    "version": 3,
    "type": "",
    "marks": ".".join(MARKS),
    "left": 1,
    "outbox": [{**ENTRY, "outputs": [{"index": 3, "to": 1, "envelope": "secret"}]}],
    "schema": 1,
}
SYSTEM = {"_etag": '"1"', "_ts": 7}
ENTITY: dict[str, Any] = {"id": "e", **SYSTEM, "has_ledger": True, "ledger": LEDGER, "partition": ["t", 1, True]}
PAGE: dict[str, Any] = {
    **SYSTEM,
    "id": "page:1",
    "pk": '["shop","e"]',
    "entity": '["shop","e"]',
    "kind": "page",
    "schema": 1,
    "number": 1,
    "version": 2,
    "begin": 1,
    "until": 2,
    "marks": ".".join(MARKS),
}
BOOK: dict[str, Any] = {**SYSTEM, "id": "book:b", "pk": "books", "kind": "book", "schema": 1, "used": 3, "open": [2]}
NOTE: dict[str, Any] = {name: PAGE[name] for name in ("_etag", "_ts", "pk", "entity", "schema")} | {
    "kind": "unparked",
    "message": "web/m-1",
    "sent": "web/m-2",
}
COMPANION: dict[str, Any] = {
    **SYSTEM,
    "id": "processed:x",
    "entity": '["shop","e"]',
    "_kind": "processed",
    "schema": 1,
    "message": "web/m-1",
    "tx": "t",
    "version": 1,
    "at": "2026-01-01T00:00:00.5Z",
    "outputs": [{"id": "o", "destination": "d", "place": {"channel": "c", "receiver": "r/k", "number": 3}}],
    "digest": "g",
    "owes": False,
    "owes_none": True,
}
NUMBERED: dict[str, Any] = {
    **{name: COMPANION[name] for name in ("id", "_etag", "_ts", "entity", "at", "schema")},
    "_kind": "numbered",
    "order": {"channel": "c", "receiver": "shop/e", "number": 1},
    "source": "s",
    "late": False,
    "holds": False,
    "holds_none": True,
    "message": None,
}


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def of_ledger(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "shop", {**ENTITY, "ledger": {**LEDGER, **changes}}


READ: dict[str, tuple[str, Any, str | None]] = {
    "a page": (LIBRARY, PAGE, None),
    "a page with what nobody knows": (LIBRARY, {**PAGE, "new": {"a": [1]}, "tags": 5}, None),
    "a book": (LIBRARY, BOOK, None),
    "a note": (LIBRARY, NOTE, None),
    "an entity": ("shop", ENTITY, None),
    "an entity of which all is empty": (
        "shop",
        {**ENTITY, "ledger": {"version": 0, "type": "", "schema": 1}},
        None,
    ),
    "an entity that was not adopted": ("shop", {**ENTITY, "has_ledger": False, "ledger": {}}, None),
    "a co-located record": ("shop", COMPANION, None),
    "a number that was skipped": ("shop", NUMBERED, None),
    "a newer page": (LIBRARY, {**PAGE, "schema": 2, "version": "two"}, "schema version 2"),
    "a newer ledger": (*of_ledger(schema=3, outbox="elsewhere"), "schema version 3"),
    "no JSON": (LIBRARY, "x", "no document"),
    "no object": (LIBRARY, [PAGE], "no document"),
    "no ETag": (LIBRARY, without(PAGE, "_etag"), "no document"),
    "an unknown kind": (LIBRARY, {**PAGE, "kind": "held"}, "kind is not known"),
    "no kind": (LIBRARY, without(PAGE, "kind"), "kind is not known"),
    "an unknown companion": ("shop", {**COMPANION, "_kind": "staged"}, "kind is not known"),
    "a page without a number": (LIBRARY, without(PAGE, "number"), "no number that can be read"),
    "a page without a version": (LIBRARY, without(PAGE, "version"), "no version that can be read"),
    "a page with text for a version": (LIBRARY, {**PAGE, "version": "1", "until": None}, "no version, until that can"),
    "a page without a schema": (LIBRARY, without(PAGE, "schema"), "no schema that can be read"),
    "a page with half a mark": (LIBRARY, {**PAGE, "marks": MARKS[0][:20]}, "marks cannot be read"),
    "a page in another partition": (LIBRARY, {**PAGE, "pk": '["shop","f"]'}, "another entity"),
    "a page with an answer to nobody": (LIBRARY, {**PAGE, "answers": [{"answer": {}}]}, "an answer of it"),
    "a book without open numbers": (LIBRARY, without(BOOK, "open"), "no open that can be read"),
    "a book elsewhere": (LIBRARY, {**BOOK, "pk": '["shop","e"]'}, "another entity"),
    "a record without a version": ("shop", without(COMPANION, "version"), "no version that can be read"),
    "a record at no time": ("shop", {**COMPANION, "at": "soon"}, "no at that can be read"),
    "an output without an id": ("shop", {**COMPANION, "outputs": [{"destination": "d"}]}, "outputs cannot be read"),
    "an output without a number": (
        "shop",
        {**COMPANION, "outputs": [{"id": "o", "destination": "d", "place": {"channel": "c", "receiver": "r/k"}}]},
        "outputs cannot be read",
    ),
    "a record that may owe": ("shop", {**COMPANION, "owes_none": False}, "no owed that can be read"),
    "a number that may be held": ("shop", {**NUMBERED, "holds_none": False}, "no held that can be read"),
    "a number without one": ("shop", {**NUMBERED, "order": {"channel": "c"}}, "no order.number that can be read"),
    "a ledger that is none": ("shop", {**ENTITY, "ledger": {}}, "no schema, version, type that can"),
    "a ledger of another entity": (*of_ledger(entity='["shop","f"]'), None),
    "a plain ledger of another entity": (
        "shop",
        {**ENTITY, "partition": ["t"], "ledger": {**LEDGER, "entity": '["shop","f"]'}},
        "a copy of the ledger of another",
    ),
    "a ledger that lacks marks": (*of_ledger(left=0), "are not its version"),
    "a ledger of which too many left": (*of_ledger(version=1, left=-1), "more marks have left than there were"),
    "a ledger with a mark of no kind": (*of_ledger(marks=MARKS[0].replace("f", "x"), left=2), "marks of its ledger"),
    "an entry without a tx": (*of_ledger(outbox=[without(ENTRY, "tx")]), "entry of its"),
    "a first output of an entry": (*of_ledger(outbox=[{**ENTRY, "outputs": [{"envelope": "secret"}]}]), None),
    "an answer to nobody": (*of_ledger(answers=[{"answer": {"status": 200}}]), "answer of its"),
    "a reception without a number": (
        *of_ledger(receptions=[{"channel": "c", "source": "s", "held": []}]),
        "reception of its",
    ),
    "a reception without a channel": (
        *of_ledger(receptions=[{"source": "s", "next": 1, "held": []}]),
        "reception of its",
    ),
    "a kept message without a time": (*of_ledger(kept=[{"id": "o-1", "tx": "5f-kept"}]), "kept message of its"),
    "an entity without a partition": ("shop", without(ENTITY, "partition"), "partition key"),
}


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> dict[str, Row]:
    """All of these, each with an id that says which it is."""
    found: dict[str, Row] = {}
    for place in (LIBRARY, "shop"):
        raws = [_raw(name, row) for name, (at, row, _) in READ.items() if at == place]
        found |= {
            row["id"]: row for row in documents(spark.createDataFrame([(raw,) for raw in raws], RAW), place).collect()
        }
    return found


def _raw(name: str, row: Any) -> str:
    return (
        json.dumps({**row, "id": name}) if isinstance(row, dict) else (row if isinstance(row, str) else json.dumps(row))
    )


@pytest.mark.parametrize("name", [name for name, (_, row, _) in READ.items() if isinstance(row, dict)])
def test_a_document_is_explained_or_it_is_said_why_not(read: dict[str, Row], name: str) -> None:
    problem, expected = read[name]["problem"], READ[name][2]
    assert (problem is None) == (expected is None), problem
    assert expected is None or expected in problem


def test_a_row_that_is_no_document_counts_all_the_same(read: dict[str, Row]) -> None:
    assert read[""]["problem"] == "it is no document of the store"
    assert read[""]["place"] == LIBRARY


def test_the_document_of_an_entity_is_read_to_the_letter(read: dict[str, Row]) -> None:
    row = read["an entity"].asDict(recursive=True)
    assert row["entity"] == EntityRef("shop", ("t", 1, True), "an entity").key
    assert (row["kind"], row["schema"], row["ts"], row["ledger"]["version"]) == ("entity", 1, 7, 3)
    assert row["ledger"]["marks"] == ".".join(MARKS)
    (entry,) = row["ledger"]["outbox"]
    assert entry["outputs"] == [{"index": 3}]
    assert entry["at"] == 1_767_225_600_500_000
    empty = read["an entity of which all is empty"].asDict(recursive=True)["ledger"]
    assert {name: item for name, item in empty.items() if item not in ([], "", 0)} == {
        "protocol": "outbox",
        "schema": 1,
        "complete": -1,
        "entity": None,
    }
    assert read["an entity that was not adopted"]["ledger"] is None
    assert read["a number that was skipped"]["held"] is False
    assert read["a book"]["entity"] == "books"


def test_the_frames_have_the_declared_columns(planted_documents: DataFrame) -> None:
    assert planted_documents.columns == DOCUMENT.fieldNames()
    assert [item.dataType for item in planted_documents.schema] == [item.dataType for item in DOCUMENT]
    assert FINDING.fieldNames()[: len(schemas.IDENTITY)] == [*schemas.IDENTITY]


def test_a_document_that_was_read_twice_counts_once(spark: SparkSession) -> None:
    elsewhere = {**COMPANION, "entity": '["shop","f"]'}
    newer = {**COMPANION, "_etag": '"2"', "_ts": 8}
    raws = [(json.dumps(item),) for item in (COMPANION, COMPANION, newer, elsewhere, ENTITY, ENTITY)]
    found = documents(spark.createDataFrame(raws, RAW), "shop").collect()
    assert sorted((row["kind"], row["entity"]) for row in found) == [
        ("entity", '["shop","t",1,true,"e"]'),
        ("processed", '["shop","e"]'),
        ("processed", '["shop","f"]'),
    ]


def test_keys_of_entities_are_the_librarys_own(spark: SparkSession) -> None:
    refs = [EntityRef("a/b", ("ä", 'q"\\', 1.5), "\u2028é\u001f"), EntityRef("s", (False,), "0")]
    raws = [
        (json.dumps({**ENTITY, "id": ref.id, "partition": ref.partition, "ledger": {**LEDGER, "type": ref.type}}),)
        for ref in refs
    ]
    found = documents(spark.createDataFrame(raws, RAW), "shop").collect()
    assert {row["entity"] for row in found} == {ref.key for ref in refs}
