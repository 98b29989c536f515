"""What cannot be understood is refused, never guessed at, and never dropped by the next save."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from exactlyonce.errors import DamagedDocument, NewerSchema
from exactlyonce.records.companions import companion_document, read_companion
from exactlyonce.records.ledger import LEDGER, Ledger, entity_document, read_entity, read_page, split
from exactlyonce.records.library import (
    Book,
    ParkedMessage,
    RequestDocument,
    StagedOutputs,
    library_document,
    read_book,
    read_parked,
    read_request,
    read_staged,
)
from exactlyonce.records.outbox import Reception
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.unit.bookkeeping import BOOK
from tests.unit.records.test_companions import ENTRY, NUMBERED, RECORD
from tests.unit.records.test_records import ANSWER, AT, GAME, LEDGER_43, OUTPUT, PAGE

SECRET = "sEcReT-4711"
RECEPTION = Reception("c1", "range/game-7", 3, ((5, 6), (8, 8)), gap_since=AT, failing="HandlerFailed")
RECEIVING = replace(LEDGER_43, snapshot_every=20, receptions=(RECEPTION,))
DOCUMENTS: dict[str, tuple[Callable[[Any], object], dict[str, Any]]] = {
    "ledger": (
        lambda raw: read_entity(GAME, Json.of({"id": "game-7", LEDGER: raw})),
        entity_document(Json.of({"id": "game-7"}), RECEIVING).value[LEDGER],
    ),
    "page": (read_page, Json.of(library_document(PAGE)).value),
    "book": (read_book, library_document(Book(BOOK, 12, (7, 9), (7,), ended=True, searched=(3,), written=2))),
    "staged": (read_staged, library_document(StagedOutputs(GAME.key, "web/m-43", "9a", AT, (OUTPUT,)))),
    "parked": (read_parked, library_document(ParkedMessage(GAME.key, "web/m-43", "why", AT, Json.of({"id": "m-43"})))),
    "request": (read_request, Json.of(library_document(RequestDocument(GAME.key, "r-1", AT, None, ANSWER))).value),
    "co-located": (partial(read_companion, GAME), companion_document(GAME, RECORD)),
    "entry": (partial(read_companion, GAME), companion_document(GAME, ENTRY)),
    "numbered": (partial(read_companion, GAME), companion_document(GAME, NUMBERED)),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every property but those inside an envelope, which may hold anything."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*path, step)
        if step != "envelope":
            yield from places(inner, (*path, step))


def changed(raw: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    found = copied = copy.deepcopy(raw)
    for step in path[:-1]:
        found = found[step]
    change(found, path[-1])
    return copied


COMPANIONS = ("co-located", "entry", "numbered")
ABSENT = {
    "ledger": "answers calls complete cut entity kept left lost marks outbox receptions sequences snapshot_every to token "
    "blobs outbox.outputs outbox.since outbox.outputs.delay outbox.outputs.id outbox.outputs.index "
    "outbox.outputs.place outbox.outputs.to",
    "page": "answers before blobs hashes to",
    "book": "ended searched stuck written",
}
"""What is left out where it is empty."""
CONTRADICTED = {"marks", "left", "sequences", "to"}
"""Those of them without which the rest of the ledger contradicts itself."""
NAMES = (("id",), ("_kind",))
"""By what a companion is known: see `test_companions`."""
CASES = [
    (name, path)
    for name, (_, raw) in DOCUMENTS.items()
    for path in places(raw)
    if (name not in COMPANIONS and path[-1] != "envelope") or (name in COMPANIONS and path not in NAMES)
]


def refused(name: str, raw: Any) -> str:
    read, _ = DOCUMENTS[name]
    with pytest.raises(DamagedDocument) as caught:
        read(raw)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize(("name", "path"), CASES)
def test_a_property_of_another_type_is_damage(name: str, path: tuple[Any, ...]) -> None:
    def swap(found: Any, step: Any) -> None:
        found[step] = 7.5 if isinstance(found[step], (str, list, dict)) else [SECRET]

    damage: Any = {"pin": SECRET}
    for change in (swap, lambda found, step: found.__setitem__(step, damage)):
        assert "backup" in refused(name, changed(DOCUMENTS[name][1], path, change))


@pytest.mark.parametrize(
    "time", [1_700_000_000, "1700000000", "2026-01-01", "2026-01-01T99:00:00Z", "soon after lunch", None]
)
@pytest.mark.parametrize(("name", "path"), [case for case in CASES if case[1][-1] == "at" and case[0] != "ledger"])
def test_a_time_is_a_date_with_a_time_of_day_and_nothing_else(name: str, path: tuple[Any, ...], time: Any) -> None:
    raw = changed(DOCUMENTS[name][1], path, lambda found, step: found.__setitem__(step, time))
    assert "at: " in refused(name, raw)


@pytest.mark.parametrize("time", [1.5, True, "1700000000", "2026-01-01T00:00:00Z", 10**30, None])
def test_a_time_of_an_entry_is_a_number_of_microseconds_and_nothing_else(time: Any) -> None:
    path = ("outbox", 0, "at")
    raw = changed(DOCUMENTS["ledger"][1], path, lambda found, step: found.__setitem__(step, time))
    assert "at: " in refused("ledger", raw)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_property_that_is_missing_is_damage_even_if_it_has_a_default_but_for_what_is_left_out(name: str) -> None:
    read, document = DOCUMENTS[name]
    absent, contradicted = set(), set()
    for path in (path for kind, path in CASES if kind == name and isinstance(path[-1], str)):
        properties = ".".join(step for step in path if isinstance(step, str))
        try:
            read(changed(document, path, lambda found, step: found.pop(step)))
        except DamagedDocument as error:
            if f"{path[-1]}: Field required" in str(error):
                continue
            contradicted.add(properties)
        absent.add(properties)
    assert absent == set(ABSENT.get(name, "").split())
    assert contradicted == (CONTRADICTED if name == "ledger" else set())


FIRST, SECOND = split(LEDGER_43.marks)


@pytest.mark.parametrize(
    ("ledger", "said"),
    [
        (replace(LEDGER_43, version=44), "2 marks and 41 that have left are not its version, 44"),
        (replace(LEDGER_43, version=1, left=-1), "-1 marks have left"),
        (replace(LEDGER_43, cut=44), "41 marks have left in 44 pages, at version 43"),
        (replace(LEDGER_43, marks=f"{SECOND}.{FIRST}"), "in no order"),
        (replace(LEDGER_43, marks=f"{FIRST[:20]}.{SECOND}"), "a mark is cut off"),
        (replace(LEDGER_43, marks=f"{FIRST}.{SECOND}2"), "a destination that its list does not have"),
        (replace(LEDGER_43, to=("audience",)), "a destination that its list does not have"),
        (replace(LEDGER_43, sequences=()), "a sequence that its list does not have"),
        (replace(LEDGER_43, entity=EntityRef("range", ("game-8",), "game-8").key), "a copy of the ledger of"),
        (Ledger(1, protocol="stream"), "what its stream holds"),
        (Ledger(1, protocol="resequencer"), "what was received"),
    ],
)
def test_a_ledger_that_contradicts_itself_is_refused(ledger: Ledger, said: str) -> None:
    assert said in refused("ledger", entity_document(Json("{}"), ledger).value[LEDGER])


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path[:-1]) for name, path in CASES if path[-1] in ("tx", "destination", "schema")],
)
def test_an_unknown_property_is_refused_since_the_next_save_would_drop_it(name: str, path: tuple[Any, ...]) -> None:
    raw = changed(DOCUMENTS[name][1], (*path, "news"), lambda found, step: found.__setitem__(step, SECRET))
    assert "news" in refused(name, raw)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in COMPANIONS])
@pytest.mark.parametrize("raw", [None, 7, SECRET, [], True, {}])
def test_another_kind_of_value_is_damage(name: str, raw: Any) -> None:
    if name != "ledger" or raw is not None:  # A ledger of null counts as none: whether it was removed is looked into.
        refused(name, raw)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_newer_schema_is_refused_with_the_advice_to_upgrade(name: str) -> None:
    read, raw = DOCUMENTS[name]
    with pytest.raises(NewerSchema, match=r"2.*Upgrade"):
        read({**raw, "schema": 2, "news": 1})


def test_the_kinds_of_records_are_not_mistaken_for_each_other() -> None:
    for one, other in permutations(("page", "book", "staged", "parked", "request"), 2):
        refused(one, DOCUMENTS[other][1])
    for one, other in permutations(COMPANIONS, 2):
        refused(one, {**DOCUMENTS[one][1], "_kind": DOCUMENTS[other][1]["_kind"]})


def test_an_error_about_a_ledger_names_its_entity() -> None:
    assert "range/game-7" in refused("ledger", {"version": SECRET})


@pytest.mark.parametrize(
    ("received", "read"),
    [
        ([], True),
        ([[1, 2**53 - 1]], True),
        ([[1, 4], [6, 6]], True),
        ([[1, 4], [5, 6]], False),
        ([[1, 4], [3, 6]], False),
        ([[4, 1]], False),
        ([[6, 6], [1, 4]], False),
        ([[0, 4]], False),
        ([[1, 2**53]], False),
    ],
)
def test_numbers_that_contradict_one_another_are_refused(received: list[list[int]], read: bool) -> None:
    reader, document = DOCUMENTS["ledger"]
    raw = copy.deepcopy(document)
    raw["receptions"][0]["held"] = received
    if read:
        reader(raw)
        return
    with pytest.raises(DamagedDocument, match=r"receptions.0.held: .*ranges that ascend from 1 on"):
        reader(raw)
