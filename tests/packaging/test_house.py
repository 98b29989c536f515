"""The house stays small, and its language plain: limits that hold with every change. A feature pays for its lines."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from devtools.house import (
    docstrings,
    empty_names,
    files_of_a_message,
    paragraphs,
    pronouns,
    rooms,
    splinters,
)
from tests.packaging.sources import ROOT

MOST_MODULES = 154
MOST_FILES_OF_A_MESSAGE = 25
MOST_PRONOUNS = 6.0
"""Pronouns in 100 words of a room's docstrings, and of the pages."""
ALONE = ["exactlyonce.protocols.steps.give_back"]
"""Short modules that one other module imports: this step is the host's, whose mutants unit tests find."""


def test_the_library_has_no_more_modules_than_it_had() -> None:
    assert sum(map(len, rooms().values())) <= MOST_MODULES
    assert splinters() == ALONE


def test_a_message_enters_no_more_files_than_it_did() -> None:
    assert len(files_of_a_message()) <= MOST_FILES_OF_A_MESSAGE


@pytest.mark.parametrize("room", rooms())
def test_docstrings_of_a_room_have_nouns(room: str) -> None:
    assert pronouns(docstrings(rooms()[room])) <= MOST_PRONOUNS


def test_pages_have_nouns() -> None:
    assert pronouns(paragraphs((ROOT / "docs").rglob("*.md"))) <= MOST_PRONOUNS


def test_variables_of_the_library_say_what_they_hold() -> None:
    files = [file for room in rooms().values() for file in room]
    named = {file.name: empty_names(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: found for name, found in named.items() if found} == {}


def test_pronouns_are_counted_in_sentences_only(tmp_path: Path) -> None:
    assert pronouns(["A message that was processed is a copy."]) == pytest.approx(100 / 8)
    assert pronouns(["`which one` is code here, always.", "It is."]) == 0.0
    page = tmp_path / "page.md"
    page.write_text("# What it is\n\n| which |\n\n```\nthat\n```\n\nA ledger holds the marks.\n")
    assert pronouns(paragraphs([page])) == 0.0
    assert empty_names(ast.parse("for one in x: found = one\ndef f(known): ...")) == ["one", "found", "known"]
