"""The page about what the library adds names every property, and gives the bytes that they take."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce.records.application import Application
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import SEPARATOR, Ledger, Mark, Page
from exactlyonce.records.library import Book, ParkedMessage, RequestDocument, StagedOutputs, Unparked
from exactlyonce.records.outbox import Kept, OutboxEntry, Output, Reception, Sequence, kept_by, pending, transaction
from exactlyonce.values.envelope import EntityRef, Envelope, derived_id, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json, shape_json
from tests.packaging.sources import ROOT

PAGE = (ROOT / "docs" / "what-we-add.md").read_text(encoding="utf-8")
AT = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)
SINCE = milliseconds(AT)
ORDER = EntityRef("order", ("o-1",), "o-1")
CAUSE, TX = message_hash("web/860f61a7-63c2-5821-bd10-24be28829e76"), transaction("0123456789abcdef0123", 42)
CHANNEL = "019b76daa800e3e70682c2094cac0000"


def section(heading: str) -> str:
    """The part of the page below a heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def named(table: str) -> set[str]:
    """The names in the first column of tables."""
    rows = re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_property_of_a_ledger_and_of_an_entry_is_named() -> None:
    ledger, entry = section("In the document of an entity: `_ledger`").split("| property of an entry |")
    assert named(ledger) == {field.name for field in fields(Ledger)}
    assert named(entry) == {field.name for field in fields(OutboxEntry)}


@pytest.mark.parametrize("shape", [ColocatedRecord, StreamEntry, NumberedMessage])
def test_every_property_of_a_companion_is_named(shape: Any) -> None:
    row = next(
        line
        for line in section("Beside the document of an entity: `_kind`").splitlines()
        if f"| `{kind(shape)}` |" in line
    )
    assert set(re.findall(r"`([^`]+)`", row.rsplit(" | ", 1)[1])) == {field.name for field in fields(shape)} - {"kind"}


def test_every_kind_of_document_is_named() -> None:
    shapes = (Page, Book, StagedOutputs, RequestDocument, ParkedMessage, Unparked, Application)
    assert named(section("In the library's container: `kind`")) - {"kind"} == {kind(shape) for shape in shapes}


def kind(shape: Any) -> str:
    return str(next(field.default for field in fields(shape) if field.name == "kind"))


def size(value: Any) -> int:
    return shape_json(value).size


def bytes_of(property: str) -> list[int]:
    """The numbers in the second column of a property of the ledger."""
    (row,) = re.findall(rf"^\| `{property}`[^|]* \|([^|]*)\|", PAGE, re.MULTILINE)
    return list(map(int, re.findall(r"\b\d+\b", row)))


def test_a_mark_takes_the_bytes_of_the_page_and_one_more_for_each_message_that_was_sent() -> None:
    marks = [Mark(SINCE, CAUSE, "f", timed=True, content="aGlI", sent=sent) for sent in ("", "0", "01~")]
    fixed, each = bytes_of("marks")
    assert [len(mark.text + SEPARATOR) for mark in marks] == [fixed, fixed + each, fixed + 3 * each]


def test_an_entry_takes_the_bytes_of_the_page_besides_type_and_data_of_its_outputs() -> None:
    entry, type, data = OutboxEntry(CAUSE, TX, AT, SINCE), "shop.charge", Json.of({"order": "o-1"})
    sent = Envelope(ORDER.source, derived_id(ORDER, CAUSE, 1), type, data, AT).with_stable_time(SINCE)
    output = Output(sent.id, "payments", sent.to_json(), index=1)
    content = len(type) + Json.of(data.text).size - len('""')
    assert bytes_of("outbox") == [size(entry), size(pending(output, 1, ORDER, entry, to=1, sequences=())) - content]


def test_the_bytes_are_those_that_the_other_properties_take() -> None:
    left = replace(Ledger(), complete=SINCE, left=48, cut=3)
    taken = {
        "complete": size(left) - size(Ledger()),
        "sequences": size(Sequence("payments", "payment/o-1", CHANNEL, 1)),
        "receptions": size(Reception(CHANNEL, "payment/o-1")),
        "kept": size(Kept(derived_id(ORDER, CAUSE, 1), AT, kept_by(TX))),
        "calls": size(derived_id(ORDER, CAUSE, 1)),
    }
    assert {name: bytes_of(name) for name in taken} == {name: [number] for name, number in taken.items()}
