"""Every effect, condition and comparison of the strategies has a reason: without it the checker finds what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.modelcheck.mutants.finding import COSTS, QUIET, all_mutants, find
from devtools.modelcheck.mutants.reviewed import read_found, read_outside
from devtools.modelcheck.mutants.scenarios import STATES, WORLDS
from devtools.modelcheck.search import explore
from tests.model.harmless_mutants import HARMLESS

MUTANTS = {mutant.name: mutant for mutant in all_mutants()}
FOUND = read_found()
OUTSIDE = read_outside()
UNIT = Path(__file__).parents[1] / "unit"
QUICK = 1_000
"""Most states of a search that every test run repeats; `make model` repeats all."""
AGAIN = "Look for them again: python -m devtools.modelcheck.mutants --write"


def test_every_mutant_was_found_or_is_listed_as_harmless() -> None:
    assert set(MUTANTS) == FOUND.keys() | HARMLESS.keys() | OUTSIDE.keys(), AGAIN
    assert len(MUTANTS) == len(FOUND) + len(HARMLESS) + len(OUTSIDE)


@pytest.mark.parametrize("test", dict.fromkeys(OUTSIDE.values()))
def test_every_unit_test_that_stands_in_for_the_checker_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (UNIT / file).read_text(encoding="utf-8")


def test_every_reason_is_a_sentence() -> None:
    assert all(reason.endswith(".") and len(reason) > 20 for reason in HARMLESS.values())


def test_the_shipped_strategy_stands_wherever_mutants_fall() -> None:
    for world in WORLDS:
        report = explore(world, liveness=True)
        assert report.violation is None, "\n".join(report.story)
        assert report.complete
        assert report.stuck == 0
        assert report.states == STATES[world.name]


@pytest.mark.parametrize("world", [*WORLDS, None], ids=lambda world: world.name if world else QUIET)
def test_mutants_are_found_where_they_were(world: object) -> None:
    name = getattr(world, "name", QUIET)
    worlds = [one for one in WORLDS if one is world]
    quick = [mutant for mutant, verdict in FOUND.items() if verdict.world == name and verdict.states <= QUICK]
    assert [mutant for mutant in quick if find(MUTANTS[mutant], worlds).world != name] == [], AGAIN


def test_some_mutants_only_cost_more() -> None:
    assert any(verdict.how.startswith(COSTS) for verdict in FOUND.values())
