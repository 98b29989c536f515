"""The page about what the library adds names every property, and gives the bytes that they take."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce.records.application import Application
from exactlyonce.records.channels import Channel
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Apart, Entry, Ledger, entity_document
from exactlyonce.records.library import ChannelDocument, ParkedMessage, ProcessedRecord, Seal, StagedOutputs
from exactlyonce.records.outputs import OutputRef
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.shapes import shape_json
from tests.packaging.sources import ROOT

PAGE = (ROOT / "docs" / "what-we-add.md").read_text(encoding="utf-8")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ID, TX, DIGEST = "860f61a7-63c2-5821-bd10-24be28829e76", "e3e70682c2094cac629f6fbed82c07cd", "aGlIB4Cv3742fGATNWW1AQ"
CHANNEL = "019b76daa800e3e70682c2094cac0000"


def section(heading: str) -> str:
    """The part of the page below a heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def named(table: str) -> set[str]:
    """The names in the first column of tables."""
    rows = re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_property_of_a_ledger_and_of_an_entry_is_named() -> None:
    page = section("In the document of an entity: `_ledger`")
    ledger, entry = page.split("| property of an entry |")
    assert named(ledger) == {one.name for one in fields(Ledger)} | {"owing_since"}
    assert named(entry) == {one.name for one in fields(Entry)}
    apart = next(line for line in ledger.splitlines() if line.startswith("| `apart`"))
    assert named(f"| {apart.rsplit('|', 2)[1]} |") == {one.name for one in fields(Apart)}


@pytest.mark.parametrize("shape", [ColocatedRecord, StreamEntry, NumberedMessage])
def test_every_property_of_a_companion_is_named(shape: Any) -> None:
    row = next(
        line
        for line in section("Beside the document of an entity: `_kind`").splitlines()
        if f"| `{kind(shape)}` |" in line
    )
    assert set(re.findall(r"`([^`]+)`", row.rsplit(" | ", 1)[1])) == {one.name for one in fields(shape)} - {"kind"}


def test_every_kind_of_document_is_named() -> None:
    shapes = (ProcessedRecord, ChannelDocument, Seal, StagedOutputs, ParkedMessage, Application)
    assert named(section("In the library's container: `kind`")) - {"kind"} == {kind(one) for one in shapes}


def kind(shape: Any) -> str:
    return str(next(one.default for one in fields(shape) if one.name == "kind"))


def size(value: Any) -> int:
    return shape_json(value).size


def test_the_bytes_are_those_that_they_take() -> None:
    body, entry = Json.of({"id": "o-1"}), Entry(f"web/{ID}", TX, 1, AT, (), DIGEST, owed=None)
    ref = OutputRef(ID, "payments", Place(CHANNEL, "payment/o-1", 1))
    added = {
        "all": entity_document(body, Ledger(type="order")).size - body.size,
        "entries": size(entry),
        "output": size(ref),
        "channels": size(Channel(CHANNEL, "payment/o-1", ((1, 1),), "60zQV")),
        "sequences": size(Sequence("payments", "payment/o-1", CHANNEL, 1)),
        "receptions": size(Reception(CHANNEL, "payment/o-1")),
    }
    rows = {name: re.search(rf"^\| `?{name}\b.*", PAGE, re.MULTILINE) for name in added}
    said = {name: list(map(int, re.findall(r"\b\d+\b", row[0]))) for name, row in rows.items() if row is not None}
    assert said == {
        "all": [added["all"]],
        "entries": [added["entries"], added["output"]],
        "channels": [added["channels"]],
        "sequences": [added["sequences"]],
        "receptions": [added["receptions"]],
    }
