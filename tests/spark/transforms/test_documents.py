"""What is read is what the library wrote, or it is said why not."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import ArrayType, StructType

from exactlyonce.records.channels import Channel
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.ledger import Apart, Entry, Ledger
from exactlyonce.records.library import LibraryRecord
from exactlyonce.records.outputs import OutputRef
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.identity import EntityRef
from spark_jobs.source.port import RAW
from spark_jobs.transforms import schemas
from spark_jobs.transforms.documents import documents
from spark_jobs.transforms.schemas import DOCUMENT, FINDING, LEFT_OUT, LIBRARY, selection
from tests.spark.transforms.dumping import Stored, rows

IN_DOCUMENTS = {"owed": "owes", "held": "held", "kind": "kind"}


def names(type: Any) -> set[str]:
    return {one.name for one in fields(type)}


def element(column: Any) -> StructType:
    assert isinstance(column, ArrayType)
    assert isinstance(column.elementType, StructType)
    return column.elementType


@pytest.mark.parametrize("shape", [*get_args(LibraryRecord), *get_args(Companion)])
def test_every_property_of_a_document_is_read_or_known_to_be_left_out(shape: type[Any]) -> None:
    read = {IN_DOCUMENTS.get(name, name) for name in names(shape) - LEFT_OUT[shape]}
    assert read <= set(DOCUMENT.fieldNames())
    asked = " ".join(column for kind in ("records", "staged", "companions") for column in selection(kind).columns)
    assert not [name for name in LEFT_OUT[shape] - {"outputs"} if f'"{name}"' in asked]
    assert LEFT_OUT[shape] <= names(shape)


def test_every_property_of_a_ledger_is_read_or_known_to_be_left_out() -> None:
    assert names(Ledger) | {"owing_since"} == {*schemas.LEDGER_READ.fieldNames(), *LEFT_OUT[Ledger]}
    entry = element(schemas.LEDGER_READ["entries"].dataType).fieldNames()
    assert names(Entry) - {"owed"} | {"owes"} == {*entry, *LEFT_OUT[Entry]}
    assert names(OutputRef) == {*element(schemas.OUTPUTS).fieldNames()}
    assert names(Place) == {*schemas.PLACE.fieldNames()}
    assert names(Apart) == {*schemas.APART.fieldNames()}
    assert names(Channel) == {*schemas.CHANNEL.fieldNames(), *LEFT_OUT[Channel]}
    assert names(Sequence) == {*element(schemas.SEQUENCES).fieldNames()}
    assert names(Reception) == {*element(schemas.RECEPTIONS).fieldNames()}


def test_no_query_asks_for_a_body() -> None:
    for asked in ("records", "staged", "companions", "entities"):
        columns = selection(asked, ("/tenant",)).columns
        bodies = ("envelope", "before", "events", "reason", "token")
        assert not [column for column in columns if any(f'"{body}"' in column for body in bodies)]
    assert 'c["outputs"]' not in selection("staged").columns
    assert 'c["owed"]' not in selection("companions").columns
    assert 'c["held"]' not in selection("companions").columns


def test_the_two_queries_of_a_container_ask_for_each_document_once(stored: list[Stored]) -> None:
    assert len(list(rows(stored))) == len(stored)
    strange = [Stored(LIBRARY, {"id": "x"}), Stored("shop", {"id": "x", "_kind": 5}, ("/tenant",))]
    assert len(list(rows(strange))) == 2


ENTRY: dict[str, Any] = {
    "message": "web/m-1",
    "tx": "t",
    "version": 1,
    "at": "2026-01-01T00:00:00.5Z",
    "outputs": [{"id": "o", "destination": "d", "place": {"channel": "c", "receiver": "r/k", "number": 3}}],
    "digest": "g",
    "owed": None,
}
LEDGER: dict[str, Any] = {
    "version": 1,
    "entries": [ENTRY],
    "channels": [{"id": "c", "source": "s", "received": [[1, 3]], "marks": "?????"}],
    "apart": {"records": True, "channels": False, "sealed": True, "forgotten": {"mark": 7, "turn": "t"}},
    "deleted": False,
    "schema": 1,
    "type": "",
    "protocol": "outbox",
    "sequences": [],
    "snapshot_every": None,
    "event_sourced": False,
    "receptions": [],
    "kept": [],
    "owing_since": None,
}
SYSTEM = {"_etag": '"1"', "_ts": 7}
ENTITY: dict[str, Any] = {"id": "e", **SYSTEM, "has_ledger": True, "ledger": LEDGER, "partition": ["t", 1, True]}
RECORD: dict[str, Any] = {
    **{name: one for name, one in ENTRY.items() if name != "owed"},
    **SYSTEM,
    "id": "processed:x",
    "pk": '["shop","e"]',
    "entity": '["shop","e"]',
    "kind": "processed",
    "schema": 1,
}
SEAL: dict[str, Any] = {name: RECORD[name] for name in ("id", "_etag", "_ts", "pk", "entity", "schema")} | {
    "kind": "seal"
}
APART: dict[str, Any] = {**SEAL, "kind": "channel", "version": 4, "turn": "", "channel": LEDGER["channels"][0]}
COMPANION: dict[str, Any] = {
    **{name: one for name, one in RECORD.items() if name not in ("pk", "kind")},
    "_kind": "processed",
    "owes_inline": False,
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


OTHER_ENTRY = {**ENTRY, "owed": "staged", "staged": True, "recorded": False, "seen": 7}

READ: dict[str, tuple[str, Any, str | None]] = {
    "a record": (LIBRARY, RECORD, None),
    "a record with what nobody knows": (LIBRARY, {**RECORD, "new": {"a": [1]}, "tags": 5}, None),
    "an entity": ("shop", ENTITY, None),
    "an entity whose entry says all": ("shop", {**ENTITY, "ledger": {**LEDGER, "entries": [OTHER_ENTRY]}}, None),
    "an entity that was not adopted": ("shop", {**ENTITY, "has_ledger": False, "ledger": {}}, None),
    "a seal": (LIBRARY, SEAL, None),
    "a channel": (LIBRARY, APART, None),
    "a channel of nobody": (LIBRARY, {**APART, "channel": {"id": "c", "received": []}}, "no channel.source that can"),
    "a channel without a version": (LIBRARY, without(APART, "version"), "no version that can be read"),
    "a co-located record": ("shop", COMPANION, None),
    "a number that was skipped": ("shop", NUMBERED, None),
    "a newer record": (LIBRARY, {**RECORD, "schema": 2, "version": "two"}, "schema version 2"),
    "a newer ledger": ("shop", {**ENTITY, "ledger": {"schema": 3, "entries": "elsewhere"}}, "schema version 3"),
    "no JSON": (LIBRARY, "x", "no document"),
    "no object": (LIBRARY, [RECORD], "no document"),
    "no ETag": (LIBRARY, without(RECORD, "_etag"), "no document"),
    "an unknown kind": (LIBRARY, {**RECORD, "kind": "held"}, "kind is not known"),
    "no kind": (LIBRARY, without(RECORD, "kind"), "kind is not known"),
    "an unknown companion": ("shop", {**COMPANION, "_kind": "staged"}, "kind is not known"),
    "a record without a version": (LIBRARY, without(RECORD, "version"), "no version that can be read"),
    "a record with text for a version": (LIBRARY, {**RECORD, "version": "1", "tx": None}, "no tx, version that can"),
    "a record at no time": (LIBRARY, {**RECORD, "at": "soon"}, "no at that can be read"),
    "a record without a schema": (LIBRARY, without(RECORD, "schema"), "no schema that can be read"),
    "an output without an id": (LIBRARY, {**RECORD, "outputs": [{"destination": "d"}]}, "outputs cannot be read"),
    "an output without a number": (
        "shop",
        {**COMPANION, "outputs": [{"id": "o", "destination": "d", "place": {"channel": "c", "receiver": "r/k"}}]},
        "outputs cannot be read",
    ),
    "a record in another partition": (LIBRARY, {**RECORD, "pk": '["shop","f"]'}, "another entity"),
    "a record that may owe": ("shop", {**COMPANION, "owes_none": False}, "no owed that can be read"),
    "a number that may be held": ("shop", {**NUMBERED, "holds_none": False}, "no held that can be read"),
    "a number without one": ("shop", {**NUMBERED, "order": {"channel": "c"}}, "no order.number that can be read"),
    "a ledger that is none": ("shop", {**ENTITY, "ledger": {}}, "no schema, version, entries"),
    "an entry without a tx": (
        "shop",
        {**ENTITY, "ledger": {**LEDGER, "entries": [without(ENTRY, "tx")]}},
        "entry of its",
    ),
    "a channel in a ledger without numbers": (
        "shop",
        {**ENTITY, "ledger": {**LEDGER, "channels": [{"id": "c", "source": "s"}]}},
        "channel of its",
    ),
    "a reception without a number": (
        "shop",
        {**ENTITY, "ledger": {**LEDGER, "receptions": [{"channel": "c", "source": "s", "held": []}]}},
        "reception of its",
    ),
    "a reception without a channel": (
        "shop",
        {**ENTITY, "ledger": {**LEDGER, "receptions": [{"source": "s", "next": 1, "held": []}]}},
        "reception of its",
    ),
    "a kept message without a time": (
        "shop",
        {**ENTITY, "ledger": {**LEDGER, "kept": [{"id": "o-1", "tx": "5f-kept"}]}},
        "kept message of its",
    ),
    "an entity without a partition": ("shop", without(ENTITY, "partition"), "partition key"),
}


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> dict[str, Row]:
    """All of these, each with an id that says which it is."""
    found: dict[str, Row] = {}
    for place in (LIBRARY, "shop"):
        raws = [_raw(name, row) for name, (at, row, _) in READ.items() if at == place]
        found |= {
            row["id"]: row for row in documents(spark.createDataFrame([(one,) for one in raws], RAW), place).collect()
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


def test_what_is_no_document_counts_all_the_same(read: dict[str, Row]) -> None:
    assert read[""]["problem"] == "it is no document of the store"
    assert read[""]["place"] == LIBRARY


def test_what_an_entity_says_of_itself_is_read_to_the_letter(read: dict[str, Row]) -> None:
    row = read["an entity"].asDict(recursive=True)
    assert row["entity"] == EntityRef("shop", ("t", 1, True), "an entity").key
    assert (row["kind"], row["schema"], row["ts"], row["ledger"]["version"]) == ("entity", 1, 7, 1)
    (entry,) = row["ledger"]["entries"]
    assert entry["outputs"] == [
        {"id": "o", "destination": "d", "place": {"channel": "c", "receiver": "r/k", "number": 3}}
    ]
    assert (entry["owes"], entry["staged"], entry["recorded"], entry["seen"]) == (None, False, True, None)
    assert entry["at"].microsecond == 500_000
    (other,) = read["an entity whose entry says all"].asDict(recursive=True)["ledger"]["entries"]
    assert (other["owes"], other["staged"], other["recorded"], other["seen"]) == ("staged", True, False, 7)
    assert read["an entity that was not adopted"]["ledger"] is None
    assert read["a number that was skipped"]["held"] is False
    assert read["a newer record"]["message"] == "web/m-1"


def test_the_frames_have_the_declared_columns(planted_documents: DataFrame) -> None:
    assert planted_documents.columns == DOCUMENT.fieldNames()
    assert [one.dataType for one in planted_documents.schema] == [one.dataType for one in DOCUMENT]
    assert FINDING.fieldNames()[: len(schemas.IDENTITY)] == [*schemas.IDENTITY]


def test_a_document_that_was_read_twice_counts_once(spark: SparkSession) -> None:
    elsewhere = {**COMPANION, "entity": '["shop","f"]'}
    newer = {**COMPANION, "_etag": '"2"', "_ts": 8}
    raws = [(json.dumps(one),) for one in (COMPANION, COMPANION, newer, elsewhere, ENTITY, ENTITY)]
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


def test_the_shape_of_numbers_has_no_message_where_it_was_skipped() -> None:
    assert LEFT_OUT[NumberedMessage] == frozenset()
