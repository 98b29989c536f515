"""The tables of mutants speak of the code as it is: every mutant was found, or they say why it need not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verification.mutants import outside
from verification.mutants.outside import fails, file_and_name
from verification.mutants.reviewed import Tables
from verification.mutants.source import Mutant, all_mutants

TABLES = Tables.read()
DUE = 907
"""Mutants that nobody has looked for since their functions were written: `make model` does, and fails until there are none."""
AGAIN = "Look for those that changed: python -m verification.mutants --changed --write"


@pytest.fixture(scope="module")
def mutants() -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in all_mutants()}


def test_every_mutant_was_found_or_is_listed_and_its_function_is_as_it_was(mutants: dict[str, Mutant]) -> None:
    assert {name: mutant.key for name, mutant in mutants.items()} == TABLES.keys, AGAIN
    assert len(mutants) == len(TABLES.found) + len(TABLES.harmless) + len(TABLES.outside) + len(TABLES.due)


def test_no_more_mutants_are_due_than_were() -> None:
    assert len(TABLES.due) <= DUE


@pytest.mark.parametrize("test", dict.fromkeys(TABLES.outside.values()))
def test_every_unit_test_that_stands_in_for_the_checker_exists(test: str) -> None:
    file, name = file_and_name(test)
    assert f"def {name}(" in file.read_text(encoding="utf-8")


def test_a_unit_test_stands_in_for_the_checker_only_if_it_fails_with_the_mutant(mutants: dict[str, Mutant]) -> None:
    order = "test_total_order.py::test_a_message_waits_until_every_source_has_passed_its_time"
    other = "test_truncation.py::test_an_entity_of_another_protocol_is_refused"
    mutant = mutants[next(name for name, test in TABLES.outside.items() if test == order)]
    assert [fails(test, mutant) for test in (order, other)] == [True, False]


def test_a_unit_test_that_never_ends_with_a_mutant_fails(
    mutants: dict[str, Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "_usual", lambda _test: 0.1)
    test = "test_truncation.py::test_an_entity_of_another_protocol_is_refused"
    endless = replace(
        next(iter(mutants.values())), module="exactlyonce.protocols.steps.clean", original="while True: pass", text=""
    )
    assert fails(test, replace(endless, start=0, end=0))


def test_every_reason_is_a_sentence() -> None:
    assert all(reason.endswith(".") and len(reason) > 20 for reason in TABLES.harmless.values())
